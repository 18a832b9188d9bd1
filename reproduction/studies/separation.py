"""Groupings of components in `SourceSeparation`: proposals, judges and true groups, by family of mixtures."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nonneg._optional import is_installed
from nonneg._typing import FloatArray
from nonneg.applications import SourceSeparation
from nonneg.applications.audio.grouping import GROUPINGS, PROPOSALS, energy_shares, group_components
from nonneg.applications.audio.methods import bin_frequencies
from nonneg.metrics import separation_scores
from reproduction.artifacts import Artifact, Measured, Paragraph, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES
from reproduction.studies.mixtures import FAMILIES, FAMILY, mixture, stft_nmf, training, true_groups

NAME = "studies/separation"
RULES = {
    **{name: f"grouping={name!r}" for name in GROUPINGS[1:]},
    "energies": "the proposal with the most equal energies",
    "auto": "grouping='auto' (default): the proposal with the least differences within sources",
}
"""Rules that group components without knowing the sources."""
METHODS = RULES | {
    "oracle": "true groups",
    "trained": "training recordings",
    "sklearn-kl": "STFT-NMF (scikit-learn, KL)",
    "sklearn-frobenius": "STFT-NMF (scikit-learn, Frobenius)",
}
BASELINES = {"sklearn-kl": "kullback-leibler", "sklearn-frobenius": "frobenius"}
# Proposals and judges were compared on draws 2000 to 2002 before one was taken.
FIRST_DRAW, N_DRAWS = 2003, 8
N_SOLOS, N_TRAINED_DRAWS = 4, 2
# Kinds whose sources can be recorded alone.
TRAINED = ("speech+drums", "piano+bass", "violin+plucked", "armstrong+drums")
LONGEST = 2.0  # seconds for 10 s of sound
ROUNDING = 1e-12
FIRST_CALL = """
import sys, time, warnings
import numpy as np
from nonneg.applications import SourceSeparation
from reproduction.data import instrument_sound
warnings.simplefilter("ignore")
rate = int(sys.argv[1])
signal = sum(instrument_sound(name, 10.0, rate=rate, rng=at) for at, name in enumerate(("piano", "drums")))
for _ in range(2):
    started = time.process_time()
    SourceSeparation(2, random_state=0, n_jobs=1).fit_separate(signal, rate)
    print(time.process_time() - started)
"""


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per mixture and per sampling rate."""
    common = {"part": "mixtures", "seconds": 8.0, "threads": 1}
    if quick:
        return [
            common | {"mixture": kind, "draw": FIRST_DRAW, "seconds": 2.0}
            for kind in ("piano+drums", "notes")
        ]
    return [
        *({"part": "time", "rate": rate, "threads": 1} for rate in (22050, 44100)),
        *(
            common | {"mixture": kind, "draw": draw}
            for draw in range(FIRST_DRAW, FIRST_DRAW + N_DRAWS)
            for kind in FAMILY
        ),
        *(
            common | {"part": "trained", "mixture": kind, "draw": draw}
            for draw in range(FIRST_DRAW, FIRST_DRAW + N_TRAINED_DRAWS)
            for kind in TRAINED
        ),
    ]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Separate one mixture by every rule, or take the time."""
    if setting["part"] == "time":
        command = [sys.executable, "-c", FIRST_CALL, str(setting["rate"])]
        first, second = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        return [{"first_call": float(first), "second_call": float(second)}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _trained(setting) if setting["part"] == "trained" else _mixture(setting)


def _mixture(setting: Setting) -> list[dict[str, Any]]:
    true, rate = mixture(setting["mixture"], setting["draw"], setting["seconds"])
    signal = true.sum(axis=0)
    started = time.process_time()
    separation = SourceSeparation(2, random_state=0)
    sources = separation.fit_separate(signal, rate)
    taken = time.process_time() - started
    W, H = separation.activations_, separation.model_.components_
    frequencies = bin_frequencies(separation.framing_, separation.model_, rate)
    labels = {by: group_components(W, H, 2, by=by, frequencies=frequencies)[0] for by in GROUPINGS[1:]}
    largest = {by: energy_shares(W, H, labels[by]).max() for by in PROPOSALS}
    labels["energies"] = labels[min(PROPOSALS, key=lambda by: largest[by])]
    labels["oracle"] = true_groups(separation, true)
    records = [
        {"method": "auto", "seconds_taken": taken, "frame_length": separation.framing_.frame_length}
        | {"residual": float(np.abs(sources.sum(axis=0) - signal).max() / np.abs(signal).max())}
        | scores(true, sources, filtered=True)
    ]
    for rule, one in labels.items():
        if set(one.tolist()) == {0, 1}:
            found = separation.regroup({f"{at}": np.flatnonzero(one == at) for at in (0, 1)}).separate(signal)
            records.append({"method": rule} | scores(true, found, filtered=False))
    for method, beta_loss in BASELINES.items():
        found = stft_nmf(signal, rate, beta_loss)
        records.append({"method": method} | scores(true, found, filtered=False))
    return records


def _trained(setting: Setting) -> list[dict[str, Any]]:
    kind, draw, seconds = setting["mixture"], setting["draw"], setting["seconds"]
    true, rate = mixture(kind, draw, seconds)
    separation = SourceSeparation(random_state=0)
    solos = training(kind, draw, seconds, N_SOLOS)
    sources = separation.fit_separate(true.sum(axis=0), rate, training=solos)
    return [{"method": "trained"} | scores(true, sources, filtered=True)]


def scores(true: FloatArray, found: FloatArray, *, filtered: bool) -> dict[str, Any]:
    """Return mean SDR over the sources in decibels: with a gain, and with filters by mir_eval."""
    if not found.any(axis=1).all():  # a silent source has no ratios
        return {"gain_sdr": None, "sdr": None}
    result = {"gain_sdr": float(np.mean(separation_scores(true, found, distortion="gain").sdr))}
    if filtered and is_installed("mir_eval"):
        result["sdr"] = float(np.mean(separation_scores(true, found, distortion="filter").sdr))
    return result


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the tables, and the claims."""
    mixtures = [record for record in records if record["part"] in ("mixtures", "trained")]
    times = [record for record in records if record["part"] == "time"]
    artifacts: list[Artifact] = []
    means = family_means(mixtures)
    if mixtures:
        artifacts += [_family_table(means), _kind_table(mixtures), _left_out_table(means)]
    if times:
        listed = ", ".join(
            f"{record['first_call']:.2f} s (then {record['second_call']:.2f} s) at {record['rate']} Hz"
            for record in times
        )
        artifacts.append(Paragraph(f"CPU time of the first call for 10 s of sound, one thread: {listed}."))
    return [*artifacts, *_verdicts(means, mixtures, times)]


def family_means(records: Sequence[Record], score: str = "gain_sdr") -> dict[tuple[str, str], float]:
    """Return the mean score by family and method; every kind of a family counts the same."""
    kinds = {
        key: mean_and_spread([record.get(score) for record in group])[0]
        for key, group in grouped(records, "mixture", "method").items()
    }
    means = {}
    for family, members in FAMILIES.items():
        for method in METHODS:
            found = (kinds.get((kind, method)) for kind in members)
            values = [value for value in found if value is not None]
            if values:
                means[family, method] = float(np.mean(values))
    return means


def _family_table(means: Mapping[tuple[str, str], float]) -> Table:
    columns = {"method": "method", **{family: family for family in FAMILIES}}
    rows = [
        {"method": title, **{family: means.get((family, method)) for family in FAMILIES}}
        for method, title in METHODS.items()
        if any((family, method) in means for family in FAMILIES) and method != "trained"
    ]
    caption = "Mean SDR (a gain allowed) in dB by family of mixtures: every kind counts the same."
    return Table(caption, columns, rows, 3)


def _kind_table(records: Sequence[Record]) -> Table:
    groups = grouped(records, "mixture", "method")
    rows = []
    for kind in FAMILY:
        for method in ("auto", "oracle", "trained", *BASELINES):
            if group := groups.get((kind, method)):
                row: dict[str, Any] = {"mixture": kind, "method": METHODS[method], "n": len(group)}
                for score in ("gain_sdr", "sdr"):
                    row[score] = Measured(*mean_and_spread([record.get(score) for record in group]))
                rows.append(row)
    columns = {
        "mixture": "mixture",
        "method": "method",
        "n": "draws",
        "gain_sdr": "SDR, gain (dB)",
        "sdr": "SDR, filter (dB)",
    }
    caption = (
        "Mean and standard deviation over draws of the means over both sources. The first SDR allows a gain, "
        "the second a filter of 512 samples (mir_eval)."
    )
    return Table(caption, columns, rows, 3)


def left_out(means: Mapping[tuple[str, str], float]) -> list[dict[str, Any]]:
    """Return for every family the rule that is best on the others, and what it reaches on this one."""
    families = [family for family in FAMILIES if all((family, rule) in means for rule in RULES)]
    rows = []
    for family in families:
        others = [other for other in families if other != family]
        if others:
            best = max(RULES, key=lambda rule: float(np.mean([means[other, rule] for other in others])))
            rows.append(
                {
                    "family": family,
                    "rule": RULES[best],
                    "chosen": means[family, best],
                    "auto": means[family, "auto"],
                }
            )
    return rows


def _left_out_table(means: Mapping[tuple[str, str], float]) -> Table:
    columns = {
        "family": "family",
        "rule": "rule that is best on the other families",
        "chosen": "its SDR here (dB)",
        "auto": "default (dB)",
    }
    return Table("Leave one family out.", columns, left_out(means), 3)


def _verdicts(
    means: Mapping[tuple[str, str], float], mixtures: Sequence[Record], times: Sequence[Record]
) -> list[Verdict]:
    gains = {
        family: means[family, "auto"] - max(means[family, method] for method in BASELINES)
        for family in FAMILIES
        if all((family, method) in means for method in ("auto", *BASELINES))
    }
    worst = min(gains, key=lambda family: gains[family]) if gains else None
    residual = max((record["residual"] for record in mixtures if "residual" in record), default=None)
    slow = max((record["first_call"] for record in times), default=None)
    blind = {(one["mixture"], one["draw"]): one["gain_sdr"] for one in mixtures if one["method"] == "auto"}
    trained = [
        one["gain_sdr"] - blind[one["mixture"], one["draw"]]
        for one in mixtures
        if one["method"] == "trained" and (one["mixture"], one["draw"]) in blind
    ]
    return [
        Verdict(
            "training recordings do not lower the mean SDR",
            float(np.mean(trained)) >= 0 if trained else None,
            f"{np.mean(trained):+.1f} dB on {len(trained)} mixtures" if trained else "not run",
        ),
        Verdict(
            "every family: the mean SDR of the default is above that of the better STFT-NMF of scikit-learn",
            min(gains.values()) > 0 if len(gains) == len(FAMILIES) else None,
            f"the smallest gain is {gains[worst]:.1f} dB ({worst})" if worst else "not run",
        ),
        Verdict(
            "the sources sum to the recording to rounding",
            None if residual is None else residual <= ROUNDING,
            "not run" if residual is None else f"largest relative difference {residual:.1e}",
        ),
        Verdict(
            f"10 s of sound take at most {LONGEST:g} s of CPU time from the first call on",
            None if slow is None else slow <= LONGEST,
            "not run" if slow is None else f"{slow:.2f} s",
        ),
    ]


def cost(setting: Setting) -> float:
    """Return relative costs."""
    return {"time": 1.0, "trained": 3.0}.get(setting["part"], 2.0)


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
