"""Separation quality: TL-NMF, JD+NMF and the cosine transform, on made mixtures and on a real recording."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from nonneg._optional import is_installed
from nonneg._typing import FloatArray
from nonneg.applications import SourceSeparation
from nonneg.datasets import load_armstrong, load_nonstationary440, music_notes
from nonneg.estimators.frame_input import variances
from nonneg.exceptions import NonnegWarning
from nonneg.metrics import separation_scores
from reproduction.experiment import Experiment, Setting
from reproduction.registry import TITLES
from reproduction.tlnmf.separation_exhibits import METHODS, summarize

NAME = "tlnmf/separation"
INITS = {"tl": "dct", "jd": "random", "dct": "dct"}
WINDOWS: dict[str, Any] = {"tukey": ("tukey", 0.1), "sine": "sine"}
SIMULATIONS, TAKES = (1, 2), (0, 1, 2)
# The real recording: a part to learn from and the part behind it, in seconds.
BEGIN, LEARN, TEST = 20.0, 10.0, 5.0
N_COMPONENTS = 10

SHOWS = f"""
Beyond the figures of Zhang, Soubies & Fevotte, who say (Section V-C) that a learnt transform lets sources be
separated significantly better than the fixed grid of a cosine or Fourier transform, without numbers.

*Made mixtures*: the authors' two notes (440 and 466.16 Hz, two partials each, simulations 1 and 2), whose
sources are known. Frames of 200 samples with half overlap, K = 2 components, one a source; eps0 is a tenth of
the mean variance; 100 iterations, the best of three starts (TL-NMF from the cosine transform, JD+NMF from
random transforms, both with random factors); Wiener masks in the transform, overlap-add. Once for each of
three takes alone (S = 1), once for the ten takes as realizations (S = 10). SDR, SIR and SAR allow a factor
between source and estimate; the last column allows a filter of 512 samples (`mir_eval`), which for
notes of two partials is ill-conditioned. The worse of the two sources counts.

*Real recording*: Louis Armstrong, {LEARN:g} s in frames of 512 samples, K = {N_COMPONENTS}. The true sources
are not known, so that no SDR can be had. What can be measured: that the sources sum to the recording; the
objective C a coefficient, which for orthogonal transforms is a negative log-likelihood of the same data and
so can be compared; the same on the {TEST:g} s behind, which no method has seen (transform and templates as
learnt, activations of each frame fitted); and the time.

Times are those of all iterations of all starts, and of the whole fit.

*What was chosen on these very mixtures*: the share of eps0, the Tukey window, and TL-NMF's start. The first
full run started TL-NMF from a joint diagonalizer and gave, for single takes and the Tukey window, 27.6 +- 14
dB (least 9.0), below JD+NMF; the cosine transform was then taken for TL-NMF. So that the comparison is fair,
JD+NMF is shown from that start too, and the better of its two starts counts: from the same start the methods
separate these notes equally well, and what mattered was the start.
"""


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return the settings: one a mixture, number of realizations, window and method."""
    if quick:
        common = {"part": "mixtures", "set": "notes", "simulation": 0, "window": "tukey", "takes": [0]}
        # The joint diagonalizer alone needs more of them.
        lengths = {"tl": 12, "jd": 25, "dct": 12}
        return [
            common | {"method": name, "iterations": lengths[name], "starts": 1, "threads": 1}
            for name in METHODS
        ]
    common = {"iterations": 100, "starts": 3, "threads": 1}
    mixtures: list[dict[str, Any]] = [
        {"part": "mixtures", "set": "nonstationary440", "simulation": simulation, "window": window}
        | {"takes": takes, "method": method}
        | common
        for simulation in SIMULATIONS
        for takes in [*([take] for take in TAKES), list(range(10))]
        for window in WINDOWS
        for method in METHODS
    ]
    real = [
        {"part": "recording", "set": "armstrong", "window": "tukey", "method": method, "learn": LEARN}
        | {"test": TEST, "iterations": 100, "starts": 1, "threads": 1}
        for method in METHODS
    ]
    # JD+NMF from the start that TL-NMF has.
    same_start = [
        setting | {"init": "dct"}
        for setting in mixtures
        if setting["method"] == "jd" and setting["window"] == "tukey" and len(setting["takes"]) == 1
    ]
    return [*mixtures, *real, *same_start]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Separate one mixture, or learn from the recording."""
    return [_mixture(setting) if setting["part"] == "mixtures" else _recording(setting)]


def _separation(setting: Setting, n_sources: int, frame_length: int) -> SourceSeparation:
    return SourceSeparation(
        n_sources,
        frame_length=frame_length,
        window=WINDOWS[setting["window"]],
        method=setting["method"],
        n_starts=setting["starts"],
        init=setting.get("init", INITS[setting["method"]]),
        max_iter=setting["iterations"],
        tol=0.0,
        random_state=0,
    )


def _signals(setting: Setting) -> tuple[FloatArray, FloatArray, int]:
    """Return takes (n_takes, n_samples) and their sources (n_sources, n_takes, n_samples)."""
    if setting["set"] == "notes":
        data = music_notes(max(setting["takes"]) + 1, rng=setting["simulation"])
        return (
            data.signals[setting["takes"]],
            data.notes.swapaxes(0, 1)[:, setting["takes"]],
            data.sample_rate,
        )
    recording = load_nonstationary440(simulation=setting["simulation"])
    assert recording.sources is not None
    return recording.signals[setting["takes"]], recording.sources[:, setting["takes"]], recording.rate


def _mixture(setting: Setting) -> dict[str, Any]:
    signals, true, rate = _signals(setting)
    separation = _separation(setting, 2, 200)
    started = time.perf_counter()
    separation.fit(signals, rate)
    fit_seconds = time.perf_counter() - started
    found = separation.separate(signals)
    # The worse of the two sources, and the mean over takes.
    scores = [
        separation_scores(true[:, take], found[:, take], distortion="gain") for take in range(len(signals))
    ]
    result = separation.model_.result_
    return {
        "n_takes": len(signals),
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
    """Return C a coefficient of frames that were not learnt from."""
    model = separation.model_
    frames = separation.framing_.split(signal)
    W = model.transform(frames)
    V = variances(frames, model.transform_)
    modelled = W @ model.components_ + model.eps0_
    return float(np.mean((V + model.eps0_) / modelled + np.log(modelled)))


def _seconds(result: Any) -> float:
    seconds = result.history.seconds[-1]
    if result.factorization_history is not None and len(result.factorization_history):
        seconds += result.factorization_history.seconds[-1]
    return float(seconds)


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    SHOWS,
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=(*(f"audio_nonstationary440/sim{at}.npz" for at in SIMULATIONS), "audio_armstrong"),
    quick_data_sets=(),
    side_by_side=False,
)
