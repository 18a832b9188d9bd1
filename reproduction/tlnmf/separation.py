"""Separation quality of TL-NMF, JD+NMF and the DCT, on synthetic mixtures and a real recording."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._optional import is_installed
from nonneg._typing import FloatArray
from nonneg.applications import SourceSeparation
from nonneg.datasets import load_armstrong, music_notes
from nonneg.exceptions import NonnegWarning
from nonneg.metrics import separation_scores
from nonneg.transforms.encoding import coefficient_variances
from nonneg.transforms.result import TransformResult
from reproduction.artifacts import Artifact, Measured, Table, Verdict
from reproduction.data import load_nonstationary440
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES

NAME = "tlnmf/separation"
INITS = {"tl": "dct", "jd": "random", "dct": "dct"}
WINDOWS: dict[str, Any] = {"tukey": ("tukey", 0.1), "sine": "sine"}
SIMULATIONS, RECORDINGS = (1, 2), (0, 1, 2)
# The real recording: a training part and the test part after it, in seconds.
BEGIN, LEARN, TEST = 20.0, 10.0, 5.0
N_COMPONENTS = 10
METHODS = {"tl": "TL-NMF", "jd": "JD+NMF", "dct": "DCT IS-NMF"}
# Gain in dB over the fixed transform that counts as significant.
GAIN = 10.0
# Maximum time for a fit of 100 iterations, in seconds.
LONGEST = 60.0
ROUNDING = 1e-12


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per mixture, number of realizations, window and method."""
    if quick:
        common = {"part": "mixtures", "set": "notes", "simulation": 0, "window": "tukey", "recordings": [0]}
        # The joint diagonalizer alone needs more of them.
        lengths = {"tl": 12, "jd": 25, "dct": 12}
        return [
            common | {"method": name, "iterations": lengths[name], "n_init": 1, "threads": 1}
            for name in METHODS
        ]
    common = {"iterations": 100, "n_init": 3, "threads": 1}
    mixtures: list[dict[str, Any]] = [
        {"part": "mixtures", "set": "nonstationary440", "simulation": simulation, "window": window}
        | {"recordings": recordings, "method": method}
        | common
        for simulation in SIMULATIONS
        for recordings in [*([recording] for recording in RECORDINGS), list(range(10))]
        for window in WINDOWS
        for method in METHODS
    ]
    real = [
        {"part": "recording", "set": "armstrong", "window": "tukey", "method": method, "learn": LEARN}
        | {"test": TEST, "iterations": 100, "n_init": 1, "threads": 1}
        for method in METHODS
    ]
    # JD+NMF from the initialization of TL-NMF.
    same_init = [
        setting | {"init": "dct"}
        for setting in mixtures
        if setting["method"] == "jd" and setting["window"] == "tukey" and len(setting["recordings"]) == 1
    ]
    return [*mixtures, *real, *same_init]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Separate one mixture, or learn from the recording."""
    return [_mixture(setting) if setting["part"] == "mixtures" else _recording(setting)]


def _separation(setting: Setting, n_sources: int, frame_length: int) -> SourceSeparation:
    return SourceSeparation(
        n_sources,
        frame_length=frame_length,
        window=WINDOWS[setting["window"]],
        method=setting["method"],
        n_init=setting["n_init"],
        init=setting.get("init", INITS[setting["method"]]),
        max_iter=setting["iterations"],
        tol=0.0,
        random_state=0,
    )


def _signals(setting: Setting) -> tuple[FloatArray, FloatArray, int]:
    """Return recordings (n_recordings, n_samples) and their sources (n_sources, n_recordings, n_samples)."""
    if setting["set"] == "notes":
        data = music_notes(max(setting["recordings"]) + 1, rng=setting["simulation"])
        return (
            data.signals[setting["recordings"]],
            data.notes.swapaxes(0, 1)[:, setting["recordings"]],
            data.sample_rate,
        )
    recording = load_nonstationary440(simulation=setting["simulation"])
    assert recording.sources is not None
    return (
        recording.signals[setting["recordings"]],
        recording.sources[:, setting["recordings"]],
        recording.rate,
    )


def _mixture(setting: Setting) -> dict[str, Any]:
    signals, true, rate = _signals(setting)
    separation = _separation(setting, 2, 200)
    started = time.perf_counter()
    separation.fit(signals, rate)
    fit_seconds = time.perf_counter() - started
    found = separation.separate(signals)
    # The worse of the two sources, and the mean over recordings.
    scores = [
        separation_scores(true[:, recording], found[:, recording], distortion="gain")
        for recording in range(len(signals))
    ]
    result = separation.model_.result_
    assert isinstance(result, TransformResult)
    return {
        "n_recordings": len(signals),
        "sdr": float(np.mean([score.sdr.min() for score in scores])),
        "sir": float(np.mean([score.sir.min() for score in scores])),
        "sar": float(np.mean([score.sar.min() for score in scores])),
        "filtered_sdr": _filtered(true[:, 0], found[:, 0]),
        "residual": float(np.abs(found.sum(axis=0) - signals).max() / np.abs(signals).max()),
        "objective": result.objective,
        "divergence": result.divergence,
        "seconds": _seconds(result),
        "fit_seconds": fit_seconds,
    }


def _filtered(true: FloatArray, found: FloatArray) -> float | None:
    if not is_installed("mir_eval"):
        return None
    with warnings.catch_warnings():
        # That SIR and SAR are not to be trusted here: they are not used.
        warnings.simplefilter("ignore", NonnegWarning)
        return float(separation_scores(true, found).sdr.min())


def _recording(setting: Setting) -> dict[str, Any]:
    recording = load_armstrong()
    first = round(BEGIN * recording.rate)
    middle = first + round(setting["learn"] * recording.rate)
    signal = recording.signals[0, first:middle]
    unseen = recording.signals[0, middle : middle + round(setting["test"] * recording.rate)]
    separation = _separation(setting, N_COMPONENTS, 512)
    started = time.perf_counter()
    separation.fit(signal, recording.rate)
    fit_seconds = time.perf_counter() - started
    found = separation.separate(signal)
    result = separation.model_.result_
    assert isinstance(result, TransformResult)
    return {
        "objective": result.objective / result.variances.size,
        "divergence": result.divergence / result.variances.size,
        "unseen_objective": _unseen_objective(separation, unseen),
        "residual": float(np.abs(found.sum(axis=0) - signal).max() / np.abs(signal).max()),
        "seconds": _seconds(result),
        "fit_seconds": fit_seconds,
        "iterations_done": result.n_iter,
        "n_frames": result.variances.shape[0],
    }


def _unseen_objective(separation: SourceSeparation, signal: FloatArray) -> float:
    """Return C per coefficient of frames that were not learned from."""
    model = separation.model_
    frames = separation.framing_.split(signal)
    W = model.transform(frames)
    V = coefficient_variances(frames, model.transform_)
    modelled = W @ model.components_ + model.eps0_
    return float(np.mean((V + model.eps0_) / modelled + np.log(modelled)))


def _seconds(result: Any) -> float:
    seconds = result.history.seconds[-1]
    if result.factorization_history is not None and len(result.factorization_history):
        seconds += result.factorization_history.seconds[-1]
    return float(seconds)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the tables, and the claims."""
    mixtures = [record for record in records if record["part"] == "mixtures"]
    recording = [record for record in records if record["part"] == "recording"]
    artifacts: list[Artifact] = []
    if mixtures:
        artifacts.append(_mixture_table(mixtures))
    if recording:
        artifacts.append(_recording_table(recording))
    return [*artifacts, *_mixture_verdicts(mixtures), *_recording_verdicts(recording, records)]


def _mixture_table(records: Sequence[Record]) -> Table:
    rows = []
    for (n_recordings, window, method, init), group in sorted(
        grouped(records, "n_recordings", "window", "method", "init").items(),
        key=lambda item: (
            item[0][0],
            item[0][1] != "tukey",
            list(METHODS).index(item[0][2]),
            item[0][3] or "",
        ),
    ):
        name = METHODS[method] + (f", from the {init.upper()}" if init else "")
        row: dict[str, Any] = {"S": n_recordings, "window": window, "method": name, "n": len(group)}
        for name in ("sdr", "sir", "sar", "filtered_sdr"):
            row[name] = Measured(*mean_and_spread([record[name] for record in group]))
        row["least"] = min(record["sdr"] for record in group)
        for name in ("seconds", "fit_seconds"):
            row[name] = mean_and_spread([record[name] for record in group])[0]
        rows.append(row)
    columns = {
        "S": "S",
        "window": "window",
        "method": "method",
        "n": "mixtures",
        "sdr": "SDR (dB)",
        "least": "lowest SDR (dB)",
        "sir": "SIR (dB)",
        "sar": "SAR (dB)",
        "filtered_sdr": "SDR, filter (dB)",
        "seconds": "iterations (s)",
        "fit_seconds": "fit (s)",
    }
    caption = (
        "Synthetic mixtures: mean and standard deviation over mixtures (at S = 10 the mean over ten "
        "recordings) of the scores of the worse source. Windows: Tukey with a taper of one tenth, as in the "
        "paper, or sine."
    )
    return Table(caption, columns, rows, 3)


def _recording_table(records: Sequence[Record]) -> Table:
    order = list(METHODS)
    rows = [
        {
            "method": METHODS[record["method"]],
            "objective": record["objective"],
            "divergence": record["divergence"],
            "unseen": record["unseen_objective"],
            "residual": record["residual"],
            "seconds": record["seconds"],
            "fit_seconds": record["fit_seconds"],
        }
        for record in sorted(records, key=lambda record: order.index(record["method"]))
    ]
    columns = {
        "method": "method",
        "objective": "C per coefficient",
        "divergence": "I per coefficient",
        "unseen": "C, unseen part",
        "residual": "sum of sources minus recording",
        "seconds": "iterations (s)",
        "fit_seconds": "fit (s)",
    }
    return Table("The real recording: how well the models explain it (smaller is better).", columns, rows, 5)


def _mean(
    records: Sequence[Record],
    method: str,
    *,
    alone: bool,
    window: str = "tukey",
    init: str | None = None,
) -> float | None:
    group = [
        record["sdr"]
        for record in records
        if (record["method"], record["window"], record.get("init")) == (method, window, init)
        and (record["n_recordings"] == 1) == alone
    ]
    return mean_and_spread(group)[0]


def _mixture_verdicts(records: Sequence[Record]) -> list[Verdict]:
    # The quick setting makes a few iterations on notes of its own, and can tell nothing.
    real = [record for record in records if record["set"] != "notes"]
    single = {method: _mean(real, method, alone=True) for method in METHODS}
    many = {method: _mean(real, method, alone=False) for method in METHODS}
    best = [
        value
        for window in ("tukey", "sine")
        if (value := _mean(real, "dct", alone=True, window=window)) is not None
    ]
    fixed = max(best) if len(best) == 2 else None
    diagonalized = [single["jd"], _mean(real, "jd", alone=True, init="dct")]
    two_stage = max((value for value in diagonalized if value is not None), default=None)
    return [
        Verdict(
            f"one realization: TL-NMF separates at least {GAIN:g} dB better (SDR) than the cosine transform "
            "in the better of its windows",
            None if single["tl"] is None or fixed is None else single["tl"] >= fixed + GAIN,
            _decibels(single["tl"], fixed),
        ),
        Verdict(
            "one realization: TL-NMF separates at least as well as JD+NMF from its better initialization",
            None if single["tl"] is None or None in diagonalized else single["tl"] >= (two_stage or 0.0),
            _decibels(single["tl"], two_stage),
        ),
        Verdict(
            "ten realizations: TL-NMF and JD+NMF separate equally well, to 1 dB",
            None if many["tl"] is None or many["jd"] is None else abs(many["tl"] - many["jd"]) <= 1.0,
            _decibels(many["tl"], many["jd"]),
        ),
    ]


def _recording_verdicts(recording: Sequence[Record], records: Sequence[Record]) -> list[Verdict]:
    found = {record["method"]: record for record in recording}
    learned, fixed = found.get("tl"), found.get("dct")
    both = learned is not None and fixed is not None
    worst = max(record["residual"] for record in records)
    return [
        Verdict(
            "the sources sum to the recording to rounding, in every trial",
            worst <= ROUNDING,
            f"largest relative difference {worst:.1e}",
        ),
        Verdict(
            "the real recording: TL-NMF explains frames it has not seen better than the cosine transform",
            learned["unseen_objective"] < fixed["unseen_objective"] if learned and fixed else None,
            f"C per coefficient {learned['unseen_objective']:.4f} and {fixed['unseen_objective']:.4f}"
            if learned and fixed
            else "not run",
        ),
        Verdict(
            f"10 s of sound in frames of 512: 100 iterations of TL-NMF take at most {LONGEST:g} s",
            learned["seconds"] <= LONGEST if both and learned else None,
            f"{learned['seconds']:.0f} s, the whole fit {learned['fit_seconds']:.0f} s"
            if learned
            else "not run",
        ),
    ]


def _decibels(first: float | None, second: float | None) -> str:
    if first is None or second is None:
        return "not run"
    return f"{first:.1f} and {second:.1f} dB"


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=(*(f"audio_nonstationary440/sim{at}.npz" for at in SIMULATIONS), "audio_armstrong"),
    quick_data_sets=(),
    parallel=False,
)
