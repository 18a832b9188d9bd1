"""The choice between a learned and a fixed transform, by the likelihood of held-out frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from nonneg._arguments import checked_checkpoint
from nonneg._arrays import to_device, to_float64
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.certificates.plain_values import PlainValues
from nonneg.iteration.progress import announce
from nonneg.transforms.covariances import frame_covariances
from nonneg.transforms.encoding import averaged_frames, coefficient_variances, encode, mean_objectives
from nonneg.transforms.learn import learn_transform
from nonneg.transforms.result import TransformResult

# Held out: every third of this many blocks, or of as many as have this number of frames. Blocks, because
# neighboring frames share samples; many, because a recording changes.
MOST_BLOCKS = 24
FRAMES_PER_BLOCK = 4
# The learned transform must be better than the fixed one in a two-sided test at the usual level of 5%, by
# Student's t over the blocks.
CONFIDENCE = 0.975


@dataclass(frozen=True)
class TransformChoice(PlainValues):
    """The transform that was chosen, and by which numbers.

    Attributes
    ----------
    name : str
        What was chosen: "learned" or "dct".
    candidates : tuple of str
        "dct" and "learned"; "dct" alone if there are too few frames to choose by.
    held_out : tuple of float
        C per coefficient of frames that were held out, for each candidate; smaller is better.
    standard_error : float
        Of the difference of the two, over the held-out blocks.
    n_train, n_held_out : int
        Frames learned from, and frames held out.
    """

    name: str
    candidates: tuple[str, ...]
    held_out: tuple[float, ...]
    standard_error: float
    n_train: int
    n_held_out: int


def learn_frames(
    Y: Array, n_components: int, *, method: str, init: Any, **options: Any
) -> tuple[TransformResult, TransformChoice | None]:
    """Learn from frames by a method, or by "auto"."""
    init = tuple(init) if isinstance(init, list) else init
    if method == "auto":
        return learn_chosen(Y, n_components, init="dct" if init is None else init, **options)
    if method == "dct" and not isinstance(init, tuple):
        init = "dct"
    data = frame_covariances(averaged_frames(Y, options.pop("average_frames")))
    return learn_transform(data, n_components, method=method, init=init, **options), None


def learn_chosen(
    Y: Array,
    n_components: int,
    *,
    init: Any,
    average_frames: int,
    checkpoint: str | None,
    method_params: Mapping[str, Any] | None,
    **options: Any,
) -> tuple[TransformResult, TransformChoice]:
    """Learn from a part of the frames, choose by the others, and fit the chosen transform to all."""
    folder = checked_checkpoint(checkpoint)

    def fitted(frames: Array, name: str, *, learned: bool, init: Any = init) -> TransformResult:
        # A fixed transform has only the parameters of its factors.
        params = {
            name: value for name, value in (method_params or {}).items() if learned or name == "n_nmf_updates"
        }
        return learn_transform(
            frame_covariances(averaged_frames(frames, average_frames)),
            n_components,
            method="tl" if learned else "dct",
            init=init if learned else "dct",
            checkpoint=None if folder is None else str(folder / name),
            method_params=params,
            **options,
        )

    train, blocks = held_out_blocks(int(Y.shape[1]))
    if not blocks or average_frames > min(len(train), min(len(block) for block in blocks)):
        choice = TransformChoice("dct", ("dct",), (), 0.0, int(Y.shape[1]), 0)
    else:
        # Given activations are those of all frames.
        initial = init[0] if isinstance(init, tuple) else init
        candidates = (
            fitted(Y[:, train, :], "reference", learned=False),
            fitted(Y[:, train, :], "training", learned=True, init=initial),
        )
        objectives = [
            [_objective(Y[:, block, :], candidate, options["eps0"], average_frames) for block in blocks]
            for candidate in candidates
        ]
        choice = chosen(np.array(objectives), [len(block) for block in blocks], len(train))
    statement = choice_statement(choice)
    announce(f"transform: {statement.sentence}", options["verbose"])
    result = fitted(Y, "all", learned=choice.name == "learned")
    return replace(result, certificate=Certificate((*result.certificate, statement))), choice


def held_out_blocks(n_frames: int) -> tuple[IntArray, list[IntArray]]:
    """Return frames to learn from, and blocks to hold out; neighbors of the latter are in neither."""
    n_blocks = min(n_frames // FRAMES_PER_BLOCK, MOST_BLOCKS) // 3 * 3
    if n_blocks < 6:  # a single block held out has no spread
        return np.arange(n_frames), []
    edges = np.linspace(0, n_frames, n_blocks + 1).round().astype(np.intp)
    blocks = [np.arange(edges[number], edges[number + 1]) for number in range(2, n_blocks, 3)]
    free = np.ones(n_frames, dtype=bool)
    for block in blocks:
        free[max(block[0] - 1, 0) : block[-1] + 2] = False
    return np.flatnonzero(free), blocks


def chosen(objectives: FloatArray, sizes: list[int], n_train: int) -> TransformChoice:
    """Take the learned transform if it is better than the fixed one with confidence."""
    weights = np.asarray(sizes) / sum(sizes)
    fixed, learned = objectives @ weights
    gains = objectives[0] - objectives[1]
    error = float(np.sqrt(np.square(gains - gains @ weights) @ weights / (len(sizes) - 1)))
    # C is a mean of logarithms: differences beyond the digits of float32 are rounding.
    rounding = float(np.finfo(np.float32).eps) * max(1.0, abs(float(fixed)))
    margin = stdtrit(len(sizes) - 1, CONFIDENCE) * error + rounding
    clear = bool(np.isfinite([fixed, learned]).all() and fixed - learned > margin)
    return TransformChoice(
        "learned" if clear else "dct",
        ("dct", "learned"),
        (float(fixed), float(learned)),
        error,
        n_train,
        int(sum(sizes)),
    )


def choice_statement(choice: TransformChoice) -> Statement:
    """Say what was chosen and why."""
    why = ""
    if not choice.held_out:
        why = (
            f"{choice.n_train} frames are too few to hold out blocks of {FRAMES_PER_BLOCK} (or of as many as "
            "are averaged)"
        )
    elif not np.isfinite(choice.held_out).all():
        why = f"C of the {choice.n_held_out} held-out frames is not finite"
    if why:
        sentence = f"The DCT is kept: {why}. Nothing is known about whether a learned transform pays off."
        return Statement("transform-choice", sentence, None, None, Verdict.NOT_VERIFIABLE)
    is_learned = choice.name == "learned"
    gain = choice.held_out[0] - choice.held_out[1]
    sentence = (
        f"{'The learned transform is used' if is_learned else 'The DCT is kept'}: on "
        f"{choice.n_held_out} held-out frames the objective of the learned one is {abs(gain):.3g} "
        f"{'lower' if gain > 0 else 'higher'} per coefficient than that of the DCT, with a standard error of "
        f"{choice.standard_error:.2g}{'' if is_learned or gain <= 0 else ': not clearly lower'}."
    )
    quantities = {
        f"held_out_{name}": value for name, value in zip(choice.candidates, choice.held_out, strict=True)
    }
    quantities["standard_error"] = choice.standard_error
    number = choice.held_out[1 if is_learned else 0]
    return Statement("transform-choice", sentence, number, choice.held_out[0], Verdict.HOLDS, quantities)


def _objective(Y: Array, result: TransformResult, eps0: float, width: int) -> float:
    """Return C per coefficient of frames for a transform and templates; activations are the best ones."""
    transform, components = (to_device(part, Y, Y.dtype) for part in (result.transform, result.H))
    W = encode(coefficient_variances(averaged_frames(Y, width), transform), components, eps0)
    rows = mean_objectives(coefficient_variances(Y, transform), W, components, eps0)
    return float(np.mean(to_float64(rows)))
