"""What the certificate of MERIT says about right and wrong answers, and how many anchors there are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from nonneg.certificates.certificate import Verdict as Said
from nonneg.separable.result import SelectionResult
from nonneg.separable.select import select_anchors
from reproduction.artifacts import Artifact, Curves, Figure, Paragraph, Series, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.merit.anchor_trials import blocks
from reproduction.merit.rates import Rate
from reproduction.registry import TITLES
from reproduction.studies import merit_weight
from reproduction.studies.known_model import KINDS as NORMAL
from reproduction.studies.known_model import wrong_probability
from reproduction.studies.planted_anchors import KINDS, n_found, planted

NAME = "studies/merit-certificate"
# Rules were chosen on streams 0 and 10, limits on stream 14; earlier ones were reported on streams 1 to 5.
STREAMS, PER_STREAM = (6, 8), 2000
N_DRAWS, N_RANDOM, BATCH = 10, len(STREAMS) * PER_STREAM, 10
CHOOSING = ("uniform", "sparse", "near-duplicates", "scattered")
"""The kinds on whose draws the statistics of the certificate and the level of noise were chosen."""
SAMPLES, FEATURES = (120, 250, 400, 800), (15, 25, 40, 80, 150)
ANCHORS, DECIBELS = (4, 6, 12, 18, 25, 35), (0.0, 30.0)
BANDS = (0, 5, 10, 15, 20, 31)
# An answer with a wrong anchor must be warned of in at least, a right one in at most this share of the draws.
WARNED, FALSE_ALARMS = 0.95, 0.05
# From this signal-to-noise ratio on the number of anchors must be found in this share of the draws.
CLEAR, FOUND = 15, 0.9
NOISY = 5
RIVALS, RIVAL_BATCH = ("spa", "snpa", "smoothed-spa", "pp-spa"), 100
"""Methods that see the same random settings."""


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return the settings: those of studies/merit-weight, and random ones."""
    if quick:
        return [{"part": "random", "first_draw": 10 * N_RANDOM, "n_draws": 2}]
    random = [{"part": "random"} | block for block in blocks(N_RANDOM, BATCH)]
    sizes = ("kind", "n", "m", "k", "snr")
    listed = {
        tuple(case[size] for size in sizes): None
        for case in merit_weight.trials(False)
        if case["stage"] == "rates" and case["n"] < 1000
    }
    fixed = [
        {"part": "fixed"} | dict(zip(sizes, case, strict=True)) | block
        for block in blocks(N_DRAWS, BATCH)
        for case in listed
    ]
    return random + fixed + [{"part": "rivals"} | block for block in blocks(N_RANDOM, RIVAL_BATCH)]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Select anchors with and without K, and note the warnings; or by other methods."""
    draws = range(setting["first_draw"], setting["first_draw"] + setting["n_draws"])
    return [_rivals(draw) if setting["part"] == "rivals" else _draw(setting, draw) for draw in draws]


def _rivals(draw: int) -> dict[str, Any]:
    sizes = random_sizes(draw)
    own, stream = _place(draw)
    points = planted(**sizes, draw=own, stream=stream)
    found = {name: select_anchors(points.X, sizes["k"], method=name).anchors for name in RIVALS}
    return {"draw": draw, **sizes} | {name: n_found(points, anchors) for name, anchors in found.items()}


def random_sizes(draw: int) -> dict[str, Any]:
    """Return the kind and the sizes of a random setting."""
    own, stream = _place(draw)
    rng = np.random.default_rng([own, stream, 55])
    n, k = int(rng.choice(SAMPLES)), int(rng.choice(ANCHORS))
    # At least three samples per anchor, and two dimensions more than anchors.
    k = min(k, n // 3)
    m = int(rng.choice([m for m in FEATURES if m >= k + 2]))
    kind = list(KINDS)[int(rng.integers(len(KINDS)))]
    return {"kind": kind, "n": n, "m": m, "k": k, "snr": round(float(rng.uniform(*DECIBELS)), 1)}


def _place(draw: int) -> tuple[int, int]:
    """Return the number of a draw in its stream, and the stream; those of quick runs are in the last."""
    at = min(draw // PER_STREAM, len(STREAMS) - 1)
    return draw - at * PER_STREAM, STREAMS[at]


def _draw(setting: Setting, draw: int) -> dict[str, Any]:
    sizes = random_sizes(draw) if setting["part"] == "random" else {}
    kind, n, m, k, snr = ({**setting, **sizes}[name] for name in ("kind", "n", "m", "k", "snr"))
    own, stream = _place(draw)
    points = planted(kind, n, m, k, snr, own, stream=stream)
    # The theorems of the certificate are sufficient conditions and never fail.
    params = {"recovery": False}
    known, unknown = (select_anchors(points.X, number, method_params=params) for number in (k, None))
    return {
        "draw": draw,
        **sizes,
        "found": n_found(points, known.anchors),
        "signs": ", ".join(_signs(known)),
        "ratio": known.certificate["alternatives"].number,
        "doubt": known.certificate["uncertain-anchors"].number,
        "risk": round(wrong_probability(points, kind, known.anchors), 6) if kind in NORMAL else None,
        "from_spa": int(known.facts["choice"] == "spa"),
        "gap": round((known.gap or 0.0) / (known.objective or math.inf), 4),
        "number": unknown.n_components,
        "unknown": n_found(points, unknown.anchors),
    }


def _signs(result: SelectionResult) -> list[str]:
    return [statement.name for statement in result.certificate if statement.verdict is Said.FAILS]


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the tables and the claims."""
    parts = grouped(records, "part")
    fixed, random, rivals = (parts.get((name,), []) for name in ("fixed", "random", "rivals"))
    known = [record for record in random if record["kind"] in CHOOSING]
    fresh = [record for record in random if record["kind"] not in CHOOSING]
    about = "; ".join(f"**{kind}**, {words}" for kind, words in KINDS.items())
    artifacts: list[Artifact] = [Paragraph(f"Samples: {about}.")]
    if random:
        artifacts.append(_bands("Random settings", {"choosing kinds": known, "other kinds": fresh}))
        artifacts.append(_kinds(random))
    if rivals:
        artifacts.append(_compared(random, rivals))
    if fixed:
        artifacts.append(_settings(fixed))
    if random and fixed:
        artifacts.append(_curves({"random settings": random, "settings of studies/merit-weight": fixed}))
    claims = _warnings("random settings, all kinds", random, len(random) >= N_RANDOM)
    for words, some, planned in (
        ("random settings, choosing kinds", known, 1),
        ("random settings, other kinds", fresh, 1),
        ("the settings of studies/merit-weight", fixed, 2),
    ):
        whole = len(random) >= N_RANDOM if planned == 1 else len(fixed) >= 29 * N_DRAWS
        claims += [*_warnings(words, some, whole), _numbers(words, some, whole)]
    if rivals:
        claims.append(_first(random, rivals))
    return [*artifacts, *claims]


def _compared(random: Sequence[Record], rivals: Sequence[Record]) -> Table:
    rows = []
    for low, high in pairwise(BANDS):
        counts = _n_right(random, rivals, low, high)
        rows.append({"band": f"{low} to {min(high, 30)}"} | counts)
    columns = {"band": "SNR (dB)", "draws": "draws", "merit": "default"} | {name: name for name in RIVALS}
    return Table("Random settings: draws in which all anchors were found.", columns, rows)


def _n_right(random: Sequence[Record], rivals: Sequence[Record], low: float, high: float) -> dict[str, int]:
    own = [record for record in random if low <= record["snr"] < high]
    others = [record for record in rivals if low <= record["snr"] < high]
    counts = {name: sum(record[name] == record["k"] for record in others) for name in RIVALS}
    return {"draws": len(own), "merit": sum(record["found"] == record["k"] for record in own)} | counts


def _first(random: Sequence[Record], rivals: Sequence[Record]) -> Verdict:
    counts = _n_right(random, rivals, NOISY, math.inf)
    whole = len(random) >= N_RANDOM and len(rivals) >= N_RANDOM
    return Verdict(
        f"random settings from {NOISY} dB on: the default finds all anchors in at least as many draws as "
        f"{', '.join(RIVALS)}",
        counts["merit"] >= max(counts[name] for name in RIVALS) if whole else None,
        ", ".join(f"{name} {count}" for name, count in counts.items()),
    )


COLUMNS = {
    "right": "right answers with a warning", "wrong": "wrong answers with a warning",
    "number": "K unknown: K found", "clear": "K unknown, answers with K right: K found",
}  # fmt: skip


def _counts(group: Sequence[Record]) -> dict[str, Any]:
    right = [record for record in group if record["found"] == record["k"]]
    wrong = [record for record in group if record["found"] < record["k"]]
    return {
        "right": f"{_n_warned(right)} of {len(right)}",
        "wrong": f"{_n_warned(wrong)} of {len(wrong)}",
        "number": f"{_n_exact(group)} of {len(group)}",
        "clear": f"{_n_exact(right)} of {len(right)}",
    }


def _n_warned(group: Sequence[Record]) -> int:
    return sum(bool(record["signs"]) for record in group)


def _n_exact(group: Sequence[Record]) -> int:
    return sum(record["number"] == record["k"] for record in group)


def _bands(heading: str, classes: dict[str, Sequence[Record]]) -> Table:
    rows = []
    for name, some in classes.items():
        for low, high in pairwise(BANDS):
            here = [record for record in some if low <= record["snr"] < high]
            if here:
                rows.append({"class": name, "snr": f"{low} to {min(high, 30)}"} | _counts(here))
        rows.append({"class": name, "snr": "all"} | _counts(some))
    head = {"class": "samples", "snr": "SNR (dB)"}
    return Table(f"{heading}, by signal-to-noise ratio.", head | COLUMNS, rows)


def _kinds(records: Sequence[Record]) -> Table:
    rows = [{"kind": kind} | _counts(group) for (kind,), group in sorted(grouped(records, "kind").items())]
    return Table("Random settings, by kind.", {"kind": "samples"} | COLUMNS, rows)


def _settings(records: Sequence[Record]) -> Table:
    head = {"kind": "samples", "n": "N", "m": "M", "k": "K", "snr": "SNR (dB)"}
    more = {"from_spa": "SPA's anchors returned", "gap": "median relative gap"}
    rows = [
        dict(zip(head, case, strict=True))
        | _counts(group)
        | {
            "from_spa": float(np.mean([record["from_spa"] for record in group])),
            "gap": float(np.median([record["gap"] for record in group])),
        }
        for case, group in grouped(records, *head).items()
    ]
    return Table("The settings of studies/merit-weight.", head | COLUMNS | more, rows, 3)


def _curves(parts: dict[str, Sequence[Record]]) -> Figure:
    """Draw what a warning at every level of a statistic would say of right and wrong answers."""
    panels = []
    for title, records in parts.items():
        normal = [record for record in records if record["risk"] is not None]
        statistics = {
            "with the model known": (normal, [record["risk"] for record in normal]),
            "uncertain-anchors": (records, [record["doubt"] or 0.0 for record in records]),
            "alternatives": (records, [-(record["ratio"] or 0.0) for record in records]),
        }
        series = [Series(name, *_roc(*both), style="line") for name, both in statistics.items()]
        wrong = np.array([record["found"] < record["k"] for record in records])
        signs = np.array([bool(record["signs"]) for record in records])
        series.append(Series("certificate", [float(signs[~wrong].mean())], [float(signs[wrong].mean())]))
        series.append(Series("targets", [FALSE_ALARMS], [WARNED]))
        panels.append(Curves(title, "right answers with a warning", "wrong answers with one", series))
    caption = (
        "Warnings beyond every level of a statistic: the fraction of right and of wrong answers that carry "
        "one. With the model known (planted anchors, noise, distribution of weights), the statistic is "
        "the probability that the answer is wrong (kinds with normal noise of one level)."
    )
    return Figure("warnings", caption, panels)


def _roc(records: Sequence[Record], values: Sequence[float]) -> tuple[list[float], list[float]]:
    wrong = np.array([record["found"] < record["k"] for record in records])
    score = np.asarray(values, dtype=np.float64)
    levels = [np.inf, *np.unique(score)[::-1].tolist()]
    pairs = [((score[~wrong] >= at).mean(), (score[wrong] >= at).mean()) for at in levels]
    return [float(x) for x, _ in pairs], [float(y) for _, y in pairs]


def _warnings(words: str, records: Sequence[Record], whole: bool) -> list[Verdict]:
    right = [record for record in records if record["found"] == record["k"]]
    wrong = [record for record in records if record["found"] < record["k"]]
    seen, alarms = Rate(_n_warned(wrong), len(wrong) or 1), Rate(_n_warned(right), len(right) or 1)
    return [
        Verdict(
            f"{words}: at least {WARNED:.0%} of the answers with a wrong anchor carry a warning",
            seen.value >= WARNED if whole else None,
            f"{seen}, {seen.value:.1%}",
        ),
        Verdict(
            f"{words}: at most {FALSE_ALARMS:.0%} of the right answers carry one",
            alarms.value <= FALSE_ALARMS if whole else None,
            f"{alarms}, {alarms.value:.1%}",
        ),
    ]


def _numbers(words: str, records: Sequence[Record], whole: bool) -> Verdict:
    clear = [record for record in records if record["snr"] >= CLEAR]
    rate = Rate(_n_exact(clear), len(clear) or 1)
    return Verdict(
        f"{words}: without K, its value is found in at least {FOUND:.0%} of the draws from {CLEAR} dB on",
        rate.value >= FOUND if whole else None,
        f"{rate}, {rate.value:.1%}",
    )


def cost(setting: Setting) -> float:
    """Return the relative cost of a trial."""
    return float(setting["n_draws"] * (3.0 if setting["part"] == "random" else 1.0))


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost)
