"""How well the default of `SourceSeparation` separates, beside the usual STFT-NMF and learned transforms."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from nonneg import TransformNMF
from nonneg._optional import is_installed
from nonneg._typing import FloatArray
from nonneg.applications import SourceSeparation
from nonneg.applications.audio import Framing, LappedFraming
from nonneg.datasets import instrument_sound, load_armstrong
from nonneg.metrics import separation_scores
from reproduction.artifacts import Artifact, Paragraph, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES
from reproduction.studies.mixtures import (
    CHOOSING,
    REPORTING,
    librosa_hpss,
    librosa_nmf,
    mixture,
    score_rows,
    score_table,
    stft_nmf,
    torch_nmf,
    true_groups,
)

NAME = "studies/separation"
METHODS = {
    "default": "default",
    "oracle": "default, true groups",
    "cqt": "method='cqt'",
    "harmonic-percussive": "grouping='harmonic-percussive'",
    "sklearn-kl": "STFT-NMF (scikit-learn, KL)",
    "sklearn-frobenius": "STFT-NMF (scikit-learn, Frobenius)",
    "librosa-nmf": "librosa.decompose",
    "librosa-hpss": "librosa.effects.hpss",
    "torchnmf": "STFT-NMF (torchnmf, KL)",
    "transform": "method='transform'",
    "lapped": "method='transform', lapped",
}
BASELINES = ("sklearn-kl", "sklearn-frobenius")
PEERS = {
    "librosa-nmf": ("librosa", librosa_nmf),
    "librosa-hpss": ("librosa", librosa_hpss),
    "torchnmf": ("torchnmf", torch_nmf),
}
# Draws that report: those below 1000 chose, and 1000 to 1007 were on an earlier page.
FIRST_DRAW, N_DRAWS = 2000, 16
# Peers beyond scikit-learn and variants of our own: fewer draws.
N_PEER_DRAWS = 4
# Learned transforms take longer: fewer draws, and shorter frames than by default.
N_TRANSFORM_DRAWS = 1
TRANSFORM: dict[str, Any] = {"frame_length": 256, "n_init": 1, "max_iter": 40}
# The real recording: parts to learn from, and the part after each.
BEGINS, LEARN, TEST = (20.0, 60.0), 10.0, 5.0
N_COMPONENTS = 10
LONGEST = 2.0  # seconds for 10 s of sound
ROUNDING = 1e-12


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per mixture, part of the recording, and length of time."""
    common = {"part": "mixtures", "methods": "spectrograms", "seconds": 8.0, "threads": 1}
    if quick:
        return [
            common | {"mixture": kind, "draw": FIRST_DRAW, "seconds": 3.0}
            for kind in ("piano+drums", "notes")
        ]

    def mixtures(n_draws: int, methods: str, kinds: Sequence[str]) -> list[dict[str, Any]]:
        return [
            common | {"mixture": kind, "draw": draw, "methods": methods}
            for draw in range(FIRST_DRAW, FIRST_DRAW + n_draws)
            for kind in kinds
        ]

    choices = [
        {"part": "choice", "begin": begin, "lapped": lapped, "length": 512, "threads": 1}
        for begin in BEGINS
        for lapped in (False, True)
    ]
    times = [{"part": "time", "rate": rate, "threads": 1} for rate in (11025, 22050, 44100)]
    return [
        *mixtures(N_DRAWS, "spectrograms", REPORTING),
        *times,
        *choices,
        *mixtures(N_TRANSFORM_DRAWS, "transforms", REPORTING),
        *mixtures(N_PEER_DRAWS, "variants", REPORTING),
        *mixtures(N_PEER_DRAWS, "spectrograms", CHOOSING),
        *mixtures(N_PEER_DRAWS, "peers", REPORTING),
    ]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Separate one mixture by every method, choose a transform, or take the time."""
    parts = {"mixtures": _mixture, "choice": _choice, "time": _time}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parts[setting["part"]](setting)


def _mixture(setting: Setting) -> list[dict[str, Any]]:
    true, rate = mixture(setting["mixture"], setting["draw"], setting["seconds"])
    signal = true.sum(axis=0)
    records = []

    def scored(method: str, found: FloatArray, seconds: float, **more: Any) -> None:
        records.append(
            {"method": method, "seconds_taken": seconds, "largest_share": _largest(found), **more}
            | _scores(true, found)
            | {"residual": float(np.abs(found.sum(axis=0) - signal).max() / np.abs(signal).max())}
        )

    def timed(method: str, separate: Callable[[], FloatArray], **more: Any) -> None:
        started = time.perf_counter()
        found = separate()
        scored(method, found, time.perf_counter() - started, **more)

    if setting["methods"] == "peers":
        for method, (module, separate) in PEERS.items():
            if is_installed(module):
                timed(method, partial(separate, signal, rate))
        return records
    if setting["methods"] == "variants":
        variants: dict[str, dict[str, Any]] = {
            "cqt": {"method": "cqt"},
            "harmonic-percussive": {"grouping": "harmonic-percussive"},
        }
        for method, options in variants.items():
            timed(method, partial(SourceSeparation(2, random_state=0, **options).fit_separate, signal, rate))
        return records
    if setting["methods"] == "transforms":
        for method in ("transform", "lapped"):
            started = time.perf_counter()
            separation = SourceSeparation(
                2, method="transform", lapped=method == "lapped", random_state=0, **TRANSFORM
            )
            found = separation.fit_separate(signal, rate)
            scored(method, found, time.perf_counter() - started, choice=separation.model_.choice_.name)
        return records
    started = time.perf_counter()
    separation = SourceSeparation(2, random_state=0)
    found = separation.fit_separate(signal, rate)
    taken = time.perf_counter() - started
    n_components = len(separation.groups_)
    scored("default", found, taken, n_components=n_components, frame_length=separation.framing_.frame_length)
    if n_components > 2:
        separation.groups_ = true_groups(separation, true)
    if set(separation.groups_.tolist()) == {0, 1}:
        scored("oracle", separation.separate(signal), taken)
    for beta_loss, method in zip(("kullback-leibler", "frobenius"), BASELINES, strict=True):
        timed(method, partial(stft_nmf, signal, rate, beta_loss))
    return records


def _scores(true: FloatArray, found: FloatArray) -> dict[str, Any]:
    """Return means over the sources, in decibels: with filters by mir_eval, and with gains."""
    kinds = [("gain", "gain_"), *([("filter", "")] if is_installed("mir_eval") else [])]
    result: dict[str, Any] = {"sdr": None, "sir": None, "sar": None}
    if not found.any(axis=1).all():  # a silent source has no ratios
        return result | {"gain_sdr": None, "gain_sir": None, "gain_sar": None}
    for kind, prefix in kinds:
        scores = separation_scores(true, found, distortion=kind)
        for name in ("sdr", "sir", "sar"):
            result[prefix + name] = float(np.mean(getattr(scores, name)))
    return result


def _largest(found: FloatArray) -> float:
    energies = np.square(found).sum(axis=1)
    return float(energies.max() / energies.sum())


def _choice(setting: Setting) -> list[dict[str, Any]]:
    """Choose a transform on a part of the recording, and test all candidates on the part that follows."""
    recording = load_armstrong()
    first, middle, last = (
        round(at * recording.rate)
        for at in (setting["begin"], setting["begin"] + LEARN, setting["begin"] + LEARN + TEST)
    )
    length = setting["length"]
    framing: Any = LappedFraming(length) if setting["lapped"] else Framing(length, None, ("tukey", 0.1))
    reference = "dct-iv" if setting["lapped"] else "dct"
    seen = framing.split(recording.signals[0, first:middle])
    unseen = framing.split(recording.signals[0, middle:last])
    records = []
    for method in ("auto", "tl", "dct"):
        started = time.perf_counter()
        model = TransformNMF(
            N_COMPONENTS, method=method, reference=reference, init=reference, max_iter=100, random_state=0
        ).fit(seen)
        taken = time.perf_counter() - started
        line: dict[str, Any] = {"method": method, "seconds_taken": taken}
        line |= {"seen": -model.score(seen), "unseen": -model.score(unseen)}
        if method == "auto":
            line |= {"fraction": model.choice_.fraction, "held_out": list(model.choice_.held_out)}
        records.append(line)
    return records


def _time(setting: Setting) -> list[dict[str, Any]]:
    """Take the CPU time of the default for 10 s of sound on one thread, the better of two runs."""
    rate = setting["rate"]
    names = ("piano", "drums")
    signal = sum(instrument_sound(name, 10.0, rate=rate, rng=at) for at, name in enumerate(names))
    taken = []
    for _ in range(3):  # the first one compiles
        started = time.process_time()
        SourceSeparation(2, random_state=0, n_jobs=1).fit_separate(signal, rate)
        taken.append(time.process_time() - started)
    return [{"seconds_taken": min(taken[1:])}]


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the tables, and the claims."""
    mixtures = [record for record in records if record["part"] == "mixtures"]
    choices = [record for record in records if record["part"] == "choice"]
    times = [record for record in records if record["part"] == "time"]
    artifacts: list[Artifact] = []
    if mixtures:
        for kinds, caption in (
            (REPORTING, "Mixtures that had no part in choosing anything"),
            (CHOOSING, "New draws of the kinds of mixtures used to choose the settings"),
        ):
            rows = score_rows(mixtures, kinds, METHODS)
            if rows:
                artifacts.append(score_table(rows, caption))
    if choices:
        artifacts.append(_choice_table(choices))
    if times:
        listed = ", ".join(f"{record['seconds_taken']:.2f} s at {record['rate']} Hz" for record in times)
        artifacts.append(Paragraph(f"CPU time of the default for 10 s of sound, one thread: {listed}."))
    return [*artifacts, *_verdicts(mixtures, choices, times)]


def _choice_table(records: Sequence[Record]) -> Table:
    rows = []
    for (begin, lapped), group in grouped(records, "begin", "lapped").items():
        found = {record["method"]: record for record in group}
        chosen = found["auto"]
        rows.append(
            {
                "begin": begin,
                "frames": "lapped" if lapped else "overlapping",
                "fraction": chosen["fraction"],
                "held_out": " ".join(f"{value:.4f}" for value in chosen["held_out"]),
                **{
                    f"{method}_{part}": found[method][part]
                    for method in ("dct", "tl", "auto")
                    for part in ("seen", "unseen")
                },
                "seconds": chosen["seconds_taken"],
            }
        )
    columns = {
        "begin": "begin (s)",
        "frames": "frames",
        "fraction": "chosen",
        "held_out": "C of held-out frames, at 0, 0.25, 0.5, 0.75, 1",
        "dct_seen": "DCT, seen",
        "tl_seen": "learned, seen",
        "auto_seen": "chosen, seen",
        "dct_unseen": "DCT, unseen",
        "tl_unseen": "learned, unseen",
        "auto_unseen": "chosen, unseen",
        "seconds": "time (s)",
    }
    caption = (
        "The real recording: C per coefficient (smaller is better) of the 10 s that were learned from, and "
        "of the 5 s after them, for the cosine transform, the learned one, and the one that held-out frames "
        "chose. The choice is the fraction of the geodesic from the cosine transform to the learned one."
    )
    return Table(caption, columns, rows, 5)


def _means(records: Sequence[Record], score: str = "sdr") -> dict[tuple[str, str], float]:
    groups = grouped(records, "mixture", "method")
    means = {key: mean_and_spread([record[score] for record in group])[0] for key, group in groups.items()}
    return {key: value for key, value in means.items() if value is not None}


def _verdicts(
    mixtures: Sequence[Record], choices: Sequence[Record], times: Sequence[Record]
) -> list[Verdict]:
    means = _means(mixtures)
    kinds = [kind for kind in REPORTING if (kind, "default") in means]
    best = {kind: max(means.get((kind, method), -np.inf) for method in BASELINES) for kind in kinds}
    gains = {kind: means[kind, "default"] - best[kind] for kind in kinds}
    whole = set(kinds) == set(REPORTING)
    worst = min(gains, key=lambda kind: gains[kind]) if gains else None
    exact = [record["residual"] for record in mixtures if record["method"] in ("default", "cqt", "lapped")]
    residual = max(exact, default=None)
    slow = max((record["seconds_taken"] for record in times), default=None)
    pairs = [
        ({record["method"]: record["unseen"] for record in group}, group)
        for group in grouped(choices, "begin", "lapped").values()
    ]
    return [
        Verdict(
            "every kind of mixture that had no part in choosing: the mean SDR of the default is above that "
            "of the better STFT-NMF of scikit-learn",
            min(gains.values()) > 0 if whole else None,
            f"the smallest gain is {gains[worst]:.1f} dB ({worst})" if worst else "not run",
        ),
        Verdict(
            "the sources sum to the recording to rounding, with the STFT, the constant-Q transform and "
            "lapped frames",
            None if residual is None else residual <= ROUNDING,
            "not run" if residual is None else f"largest relative difference {residual:.1e}",
        ),
        Verdict(
            f"10 s of sound take at most {LONGEST:g} s of CPU time",
            None if slow is None else slow <= LONGEST,
            "not run" if slow is None else f"{slow:.2f} s",
        ),
        Verdict(
            "the real recording: the chosen transform explains the following 5 s at least as well as the "
            "cosine transform, in every part",
            all(found["auto"] <= found["dct"] + 1e-9 for found, _ in pairs) if pairs else None,
            ", ".join(f"{found['auto']:.4f} ({found['dct']:.4f})" for found, _ in pairs) or "not run",
        ),
    ]


def cost(setting: Setting) -> float:
    """Return relative costs: learned transforms take long."""
    learned = setting.get("methods") == "transforms"
    return {"choice": 100.0, "time": 10.0}.get(setting["part"], 40.0 if learned else 8.0)


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=("audio_nonstationary440/sim1.npz", "audio_nonstationary440/sim2.npz", "audio_armstrong"),
    quick_data_sets=(),
    cost=cost,
)
