"""The choice among a learned transform, a fixed one and blends, by the likelihood of held-out frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from nonneg._arguments import checked_checkpoint
from nonneg._arrays import to_device, to_float64, to_numpy
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.transforms.covariances import frame_covariances
from nonneg.transforms.encoding import (
    activations_per_frame,
    averaged_frames,
    coefficient_variances,
    encode,
    mean_objectives,
)
from nonneg.transforms.initialization import FIXED
from nonneg.transforms.learn import learn_transform
from nonneg.transforms.result import TransformResult
from nonneg.transforms.rotations.geodesic import geodesic, matched_atoms

FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Candidates: fractions of the geodesic from the fixed to the learned transform."""
# Held out: every third of this many blocks, or of as many as have this number of frames. Blocks, because
# neighboring frames share samples; many, because a recording changes.
MOST_BLOCKS = 24
FRAMES_PER_BLOCK = 4
# A transform must be better than the fixed one with this confidence, by Student's t over the blocks.
CONFIDENCE = 0.975
# Smaller differences of C per coefficient, which is a mean of logarithms, are rounding in single precision.
ROUNDING = 1e-6


@dataclass(frozen=True)
class TransformChoice:
    """Which transform was chosen, and by which numbers.

    Attributes
    ----------
    fraction : float
        Of the geodesic from the fixed transform (0) to the learned one (1).
    fractions : tuple of float
        The candidates.
    held_out : tuple of float
        C per coefficient of frames that were held out, for each candidate; smaller is better.
    standard_errors : tuple of float
        Of the differences from the fixed transform, over the held-out blocks.
    n_train, n_held_out : int
        Frames learned from, and frames held out.
    reference : str
        The fixed transform.
    """

    fraction: float
    fractions: tuple[float, ...]
    held_out: tuple[float, ...]
    standard_errors: tuple[float, ...]
    n_train: int
    n_held_out: int
    reference: str = "dct"

    @property
    def name(self) -> str:
        """What was chosen: "learned", the name of the fixed transform, or "blend"."""
        return {0.0: self.reference, 1.0: "learned"}.get(self.fraction, "blend")

    def as_dict(self) -> dict[str, Any]:
        """Return plain values.

        Returns
        -------
        dict
            The attributes, with lists for tuples.
        """
        return {key: list(value) if isinstance(value, tuple) else value for key, value in vars(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TransformChoice:
        """Build a choice from what `as_dict` gave.

        Parameters
        ----------
        values : mapping
            Plain values.

        Returns
        -------
        TransformChoice
            Equal to the one they came from.
        """
        plain: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
        }
        return cls(**plain)


def learn_frames(
    Y: Array, n_components: int, *, method: str, reference: str, init: Any, **options: Any
) -> tuple[TransformResult, TransformChoice | None]:
    """Learn from frames by a method, or by "auto"; a fixed transform is the reference."""
    init = tuple(init) if isinstance(init, list) else init
    if method == "auto":
        init = reference if init is None else init
        return learn_chosen(Y, n_components, reference=reference, init=init, **options)
    if method == "dct" and not isinstance(init, tuple):
        init = reference
    averages = options.pop("average_frames"), options.pop("averaging")
    data = frame_covariances(averaged_frames(Y, *averages))
    return learn_transform(data, n_components, method=method, init=init, **options), None


def learn_chosen(
    Y: Array,
    n_components: int,
    *,
    reference: str,
    eps0: float,
    average_frames: int,
    averaging: str,
    checkpoint: str | None,
    method_params: Mapping[str, Any] | None,
    **options: Any,
) -> tuple[TransformResult, TransformChoice]:
    """Learn from a part of the frames, choose by the others, and fit the chosen transform to all."""
    folder = checked_checkpoint(checkpoint)

    def fitted(frames: Array, name: str, method: str, **changes: Any) -> TransformResult:
        params = method_params if method == "tl" else _for_fixed(method_params)
        place = None if folder is None else str(folder / name)
        given = options | {"eps0": eps0, "method": method, "checkpoint": place, "method_params": params}
        data = frame_covariances(averaged_frames(frames, average_frames, averaging))
        return learn_transform(data, n_components, **(given | changes))

    def refitted(frames: Array, name: str, transform: FloatArray) -> TransformResult:
        params = _for_fixed(method_params) | {"n_rotation_updates": 0}
        return fitted(frames, name, "tl", init=transform, n_init=1, method_params=params)

    train, blocks = held_out_blocks(int(Y.shape[1]))
    if not blocks or average_frames > min(len(train), min(len(block) for block in blocks)):
        choice = TransformChoice(0.0, (0.0,), (), (), int(Y.shape[1]), 0, reference)
    else:
        # Given activations are those of all frames.
        init = options.get("init")
        init = init[0] if isinstance(init, tuple) else init
        learned = fitted(Y[:, train, :], "training", "tl", init=init)
        fixed = FIXED[reference](int(Y.shape[2]))
        path = _path(fixed, learned.transform)

        def scored(t: float) -> FloatArray:
            result = learned
            if t == 0:
                result = fitted(Y[:, train, :], "reference", "dct", init=reference)
            elif t < 1:
                result = refitted(Y[:, train, :], f"blend-{t:g}", path(t))
            return np.array(
                [_objective(Y[:, block, :], result, eps0, average_frames, averaging) for block in blocks]
            )

        choice = _chosen(
            np.stack([scored(t) for t in FRACTIONS]), [len(block) for block in blocks], len(train), reference
        )
    if choice.fraction == 0:
        result = fitted(Y, "all", "dct", init=reference)
    else:
        result = fitted(Y, "all", "tl")
        if choice.fraction < 1:
            path = _path(FIXED[reference](int(Y.shape[2])), result.transform)
            result = refitted(Y, "blended", path(choice.fraction))
    statements = (*result.certificate, choice_statement(choice))
    return replace(result, certificate=Certificate(statements)), choice


def held_out_blocks(n_frames: int) -> tuple[IntArray, list[IntArray]]:
    """Return frames to learn from, and blocks to hold out; neighbors of the latter are in neither."""
    n_blocks = min(n_frames // FRAMES_PER_BLOCK, MOST_BLOCKS) // 3 * 3
    if n_blocks < 6:  # a single block held out has no spread
        return np.arange(n_frames), []
    edges = np.linspace(0, n_frames, n_blocks + 1).round().astype(np.intp)
    blocks = [np.arange(edges[at], edges[at + 1]) for at in range(2, n_blocks, 3)]
    free = np.ones(n_frames, dtype=bool)
    for block in blocks:
        free[max(block[0] - 1, 0) : block[-1] + 2] = False
    return np.flatnonzero(free), blocks


def choice_statement(choice: TransformChoice) -> Statement:
    """Say what was chosen and why."""
    if not choice.held_out:
        sentence = (
            f"The {choice.reference.upper()} is kept: {choice.n_train} frames are too few to hold out blocks "
            f"of {FRAMES_PER_BLOCK} (or of as many as are averaged), so nothing is known about whether a "
            "learned transform would pay off."
        )
        return Statement("transform-choice", sentence, None, None, Verdict.NOT_VERIFIABLE)
    if not np.isfinite(choice.held_out).all():
        sentence = (
            f"The {choice.reference.upper()} is kept: C of the {choice.n_held_out} held-out frames is not "
            "finite, so nothing is known about whether a learned transform would pay off. Use other units."
        )
        return Statement("transform-choice", sentence, None, None, Verdict.NOT_VERIFIABLE)
    at = choice.fractions.index(choice.fraction)
    fixed, learned, best = choice.held_out[0], choice.held_out[-1], choice.held_out[at]
    what = {
        choice.reference: f"The {choice.reference.upper()} is kept",
        "learned": "The learned transform is used",
    }.get(
        choice.name,
        f"A blend at {choice.fraction:g} of the way from the fixed to the learned transform is used",
    )
    sentence = (
        f"{what}: on {choice.n_held_out} held-out frames C per coefficient is {fixed:.5g} for the "
        f"{choice.reference.upper()}, {learned:.5g} for the learned transform and {best:.5g} for the "
        f"chosen one. {_compared(choice, at)}"
    )
    quantities = {
        f"held_out_{t:g}": value for t, value in zip(choice.fractions, choice.held_out, strict=True)
    }
    quantities |= {"fraction": choice.fraction, "standard_error": choice.standard_errors[at]}
    return Statement("transform-choice", sentence, best, fixed, Verdict.HOLDS, quantities)


def _compared(choice: TransformChoice, at: int) -> str:
    """Say why a candidate was chosen: rounded values may be equal, and the least one is not always taken."""
    best = at or int(np.argmin(choice.held_out))
    if best == 0:
        return "No candidate has less."
    less = choice.held_out[0] - choice.held_out[best]
    what = "It" if at else "The learned transform"
    if not at and best < len(choice.fractions) - 1:
        what = f"A blend at {choice.fractions[best]:g} of the way"
    return (
        f"{what} has {less:.3g} less than the {choice.reference.upper()}, with a standard error of "
        f"{choice.standard_errors[best]:.2g} over the blocks{'' if at else ': not clearly less'}."
    )


def _chosen(objectives: FloatArray, sizes: list[int], n_train: int, reference: str) -> TransformChoice:
    """Take the best candidate if it is better than the fixed transform with confidence."""
    weights = np.asarray(sizes) / sum(sizes)
    means = objectives @ weights
    differences = objectives - objectives[0]
    spread = np.square(differences - (differences @ weights)[:, None]) @ weights
    errors = np.sqrt(spread / (len(sizes) - 1))
    at = int(np.argmin(means))
    margin = stdtrit(len(sizes) - 1, CONFIDENCE) * errors[at] + ROUNDING * max(1.0, abs(means[0]))
    if not (np.isfinite(means).all() and means[at] < means[0] - margin):
        at = 0
    return TransformChoice(
        FRACTIONS[at],
        FRACTIONS,
        tuple(means.tolist()),
        tuple(errors.tolist()),
        n_train,
        int(sum(sizes)),
        reference,
    )


def _objective(Y: Array, result: TransformResult, eps0: float, width: int, averaging: str) -> float:
    """Return C per coefficient of frames for a transform and templates; activations are the best ones."""
    transform, components = (to_device(part, Y, Y.dtype) for part in (result.transform, result.H))
    averaged = averaged_frames(Y, width, averaging)
    W = encode(coefficient_variances(averaged, transform), components, eps0)
    W = activations_per_frame(W, int(Y.shape[1]), width, averaging)
    rows = mean_objectives(coefficient_variances(Y, transform), W, components, eps0)
    return float(np.mean(to_float64(rows)))


def _path(fixed: FloatArray, learned: Array) -> Any:
    near, _ = matched_atoms(to_numpy(learned).astype(np.float64), fixed)
    return geodesic(fixed, near)


def _for_fixed(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Keep the parameters that a fixed transform has as well."""
    return {name: value for name, value in (params or {}).items() if name == "n_nmf_updates"}
