"""Templates from solo recordings beside the true groups of the default's components, and fixed templates."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.decomposition import NMF, non_negative_factorization

from nonneg._optional import is_installed
from nonneg._typing import FloatArray
from nonneg.applications import SourceSeparation
from nonneg.applications.audio import STFT
from nonneg.datasets import instrument_sound, load_armstrong
from nonneg.metrics import separation_scores
from reproduction.artifacts import Artifact, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES
from reproduction.studies.mixtures import RATE, SECONDS, mixture, score_rows, score_table, true_groups

NAME = "studies/separation-trained"
CHOOSING = ("piano+drums", "speech+bass", "plucked+bass", "violin+drums", "speech+piano")
"""Chose the number of templates and the weight of their priors, in draws below 1000."""
REPORTING = (
    "bass+drums",
    "speech+drums",
    "plucked+drums",
    "violin+plucked",
    "piano+bass",
    "violin+bass",
    "armstrong+drums",
    "armstrong+bass",
)
"""Had no part in choosing anything about training."""
METHODS = {
    "trained": "training recordings",
    "oracle": "no training, true groups",
    "default": "no training",
    "fixed": "fixed templates (scikit-learn)",
}
FIRST_DRAW, N_DRAWS, N_CHOOSING_DRAWS = 1000, 5, 2
# The peer takes long, and so do shorter training recordings of many mixtures.
N_OTHER_DRAWS = 1
# Training recordings are this many other draws of the instrument, of as many seconds as the mixture each.
N_SOLOS = 8
FEWER_SOLOS = (1, 2)
N_TEMPLATES = 40
WITHIN = 1.0  # decibels
ROUNDING = 1e-12


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per mixture, and per mixture and length of the training recordings."""
    common = {"part": "mixtures", "seconds": SECONDS, "n_solos": N_SOLOS, "threads": 1}
    if quick:
        small = common | {"mixture": "piano+drums", "draw": FIRST_DRAW, "seconds": 2.0, "n_solos": 1}
        return [small, small | {"part": "peer"}]
    mixtures = [
        common | {"mixture": kind, "draw": draw}
        for kinds, n_draws in ((REPORTING, N_DRAWS), (CHOOSING, N_CHOOSING_DRAWS))
        for draw in range(FIRST_DRAW, FIRST_DRAW + n_draws)
        for kind in kinds
    ]
    few = [
        common | {"mixture": kind, "draw": draw}
        for draw in range(FIRST_DRAW, FIRST_DRAW + N_OTHER_DRAWS)
        for kind in REPORTING
    ]
    shorter = [
        setting | {"part": "lengths", "n_solos": n_solos} for setting in few for n_solos in FEWER_SOLOS
    ]
    return [*mixtures, *(setting | {"part": "peer"} for setting in few), *shorter]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Separate one mixture."""
    kind, draw, seconds = setting["mixture"], setting["draw"], setting["seconds"]
    true, rate = mixture(kind, draw, seconds)
    signal = true.sum(axis=0)
    solos = training(kind, draw, seconds, setting["n_solos"])
    records: list[dict[str, Any]] = []

    def scored(method: str, found: FloatArray, taken: float) -> None:
        residual = float(np.abs(found.sum(axis=0) - signal).max() / np.abs(signal).max())
        records.append(
            {"method": method, "seconds_taken": taken, "residual": residual} | _scores(true, found)
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        if setting["part"] == "peer":
            found = fixed_templates(signal, list(solos.values()), rate)
            scored("fixed", found, time.perf_counter() - started)
            return records
        found = SourceSeparation(random_state=0).fit_separate(signal, rate, training=solos)
        scored("trained", found, time.perf_counter() - started)
        if setting["part"] == "lengths":
            return records
        started = time.perf_counter()
        separation = SourceSeparation(2, random_state=0)
        found = separation.fit_separate(signal, rate)
        taken = time.perf_counter() - started
        scored("default", found, taken)
        groups = true_groups(separation, true) if len(separation.groups_) > 2 else separation.groups_
        if set(groups.tolist()) == {0, 1}:
            scored("oracle", separation.regroup(groups).separate(signal), taken)
    return records


def training(kind: str, draw: int, seconds: float, n_solos: int) -> dict[str, FloatArray]:
    """Return recordings of each source alone: other draws, or other parts of the real recording."""
    return {
        name: np.concatenate([_solo(name, draw, at, number, seconds) for number in range(n_solos)])
        for at, name in enumerate(kind.split("+"))
    }


def _solo(name: str, draw: int, at: int, number: int, seconds: float) -> FloatArray:
    if name != "armstrong":
        rng = np.random.default_rng([draw, at, 5000 + number])
        return instrument_sound(name, seconds, rate=RATE, rng=rng)
    # The mixture has part `draw % 12`; these are neither it nor its neighbors.
    first = round((3.0 + seconds * ((draw + 2 + number) % 12)) * RATE)
    return load_armstrong().signals[0, first : first + round(seconds * RATE)]


def fixed_templates(signal: FloatArray, solos: Sequence[FloatArray], rate: int) -> FloatArray:
    """Separate as Smaragdis, Raj & Shashanka (2007), by templates that stay as training left them."""
    stft = STFT(1 << round(np.log2(2048 / 22050 * rate)))
    options: dict[str, Any] = {"solver": "mu", "beta_loss": "kullback-leibler", "max_iter": 100}
    templates = []
    for solo in solos:
        model = NMF(N_TEMPLATES, init="random", random_state=0, **options)
        templates.append(model.fit(np.abs(stft.analyze(solo)[0])).components_)
    coefficients = stft.analyze(signal)[0]
    H = np.concatenate(templates)
    W, _, _ = non_negative_factorization(
        np.abs(coefficients), H=H, n_components=len(H), init="custom", update_H=False, **options
    )
    parts = [np.square(W[:, at : at + N_TEMPLATES] @ H[at : at + N_TEMPLATES]) for at in (0, N_TEMPLATES)]
    total = np.maximum(parts[0] + parts[1], 1e-300)
    return np.stack([stft.synthesize(coefficients * part / total, len(signal)) for part in parts])


def _scores(true: FloatArray, found: FloatArray) -> dict[str, Any]:
    """Return means over the sources in decibels, and whether the sources came in their order."""
    kinds = [("gain", "gain_"), *([("filter", "")] if is_installed("mir_eval") else [])]
    result: dict[str, Any] = {"sdr": None, "sir": None, "sar": None, "gain_sdr": None, "in_order": None}
    if not found.any(axis=1).all():  # a silent source has no ratios
        return result
    for kind, prefix in kinds:
        scores = separation_scores(true, found, distortion=kind)
        result["in_order"] = bool((np.asarray(scores.permutation) == np.arange(len(true))).all())
        for name in ("sdr", "sir", "sar"):
            result[prefix + name] = float(np.mean(getattr(scores, name)))
    return result


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the tables, and the claims."""
    full = [record for record in records if record["part"] != "lengths"]
    artifacts: list[Artifact] = []
    for kinds, caption in (
        (REPORTING, "Mixtures that had no part in choosing anything about training"),
        (
            CHOOSING,
            "New draws of the mixtures used to choose templates, priors and transpositions",
        ),
    ):
        if rows := score_rows(full, kinds, METHODS):
            artifacts.append(score_table(rows, caption))
    if any(record["part"] == "lengths" for record in records):
        artifacts.append(_length_table(records))
    return [*artifacts, *_verdicts(full)]


def _length_table(records: Sequence[Record]) -> Table:
    """Return the mean SDR for each length of the training recordings, over the same draws."""
    last = FIRST_DRAW + N_OTHER_DRAWS
    few = [record for record in records if record["draw"] < last and record["mixture"] in REPORTING]
    groups = grouped([record for record in few if record["method"] == "trained"], "mixture", "n_solos")
    oracle = grouped([record for record in few if record["method"] == "oracle"], "mixture")
    lengths = (*FEWER_SOLOS, N_SOLOS)
    rows = []
    for kind in REPORTING:
        row: dict[str, Any] = {"mixture": kind}
        for n_solos in lengths:
            group = groups.get((kind, n_solos), [])
            row[f"of_{n_solos}"] = mean_and_spread([record["sdr"] for record in group])[0]
        row["oracle"] = mean_and_spread([record["sdr"] for record in oracle.get((kind,), [])])[0]
        rows.append(row)
    columns = {"mixture": "mixture"}
    columns |= {f"of_{n_solos}": f"{n_solos * SECONDS:.0f} s" for n_solos in lengths}
    columns["oracle"] = "no training, true groups"
    caption = "SDR (dB) by the length of the training recordings, the first draw of each mixture."
    return Table(caption, columns, rows, 3)


def _gains(records: Sequence[Record], score: str, other: str) -> dict[str, float]:
    """Return by how much training is better than another method, over the draws of both."""
    gains = {}
    for (kind,), group in grouped(records, "mixture").items():
        found = {(record["method"], record["draw"]): record[score] for record in group}
        both = [
            (found["trained", draw], value)
            for (method, draw), value in found.items()
            if method == other and value is not None and found.get(("trained", draw)) is not None
        ]
        if both:
            gains[kind] = float(np.mean([one - two for one, two in both]))
    return gains


def _verdicts(records: Sequence[Record]) -> list[Verdict]:
    whole = {record["mixture"] for record in records} == {*REPORTING, *CHOOSING}
    found = []
    for kinds, words in (
        (REPORTING, "every kind of test mixture"),
        (CHOOSING, "every kind of mixture used to choose, new draws"),
    ):
        for score, name in (("sdr", "SDR"), ("gain_sdr", "SDR that allows a gain only")):
            gains = {kind: gain for kind, gain in _gains(records, score, "oracle").items() if kind in kinds}
            least = min(gains, key=lambda kind: gains[kind]) if gains else None
            found.append(
                Verdict(
                    f"{words}: the mean {name} with training recordings is within {WITHIN:g} dB of that of "
                    "the true groups, or above it",
                    gains[least] >= -WITHIN if least and whole else None,
                    f"the smallest difference is {gains[least]:+.1f} dB ({least})" if least else "not run",
                )
            )
    fixed = {kind: gain for kind, gain in _gains(records, "sdr", "fixed").items() if kind in REPORTING}
    mean = float(np.mean(list(fixed.values()))) if fixed else None
    found.append(
        Verdict(
            "test mixtures: the mean SDR is above that of fixed templates",
            None if mean is None or not whole else mean > 0,
            "not run"
            if mean is None
            else f"{mean:+.1f} dB on average, from {min(fixed.values()):+.1f} to {max(fixed.values()):+.1f}",
        )
    )
    trained = [record for record in records if record["method"] == "trained"]
    residual = max((record["residual"] for record in trained), default=None)
    found.append(
        Verdict(
            "the sources sum to the recording to rounding",
            None if residual is None else residual <= ROUNDING,
            "not run" if residual is None else f"largest relative difference {residual:.1e}",
        )
    )
    named = [record["in_order"] for record in trained if record["in_order"] is not None]
    found.append(
        Verdict(
            "every source has the name of its training recording",
            None if not named or not whole else all(named),
            f"{sum(named)} of {len(named)} mixtures" if named else "not run",
        )
    )
    return found


def cost(setting: Setting) -> float:
    """Return relative costs."""
    return {"mixtures": 12.0, "peer": 35.0, "lengths": 8.0}[setting["part"]]


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=("audio_armstrong",),
    quick_data_sets=(),
    cost=cost,
)
