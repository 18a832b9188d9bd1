"""Figure 2: I at the solutions of both methods, and their difference, against the number of realizations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from reproduction.artifacts import Artifact, Curves, Figure, Measured, Series, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES
from reproduction.tlnmf.both_methods import KINDS, cost, default_run, gcm_model, parameters, solve_both
from reproduction.tlnmf.theory import (
    largest_sampling_divergence,
    sampling_divergence,
    sampling_divergence_limit,
)

NAME = "tlnmf/figure-2"
SIZES = (1, 3, 10, 30, 100, 300, 1000, 5000)
# Further draws, with fewer restarts, at both ends and in the middle.
N_DRAWS, DRAWN_SIZES, DRAWN_RESTARTS = 5, (10, 100, 1000), {"gcm": 20, "music": 3}
NOTEBOOK = {
    "gcm": {
        10: (21.628, 27.870),
        100: (2.232601, 2.283065),
        1000: (0.270913, 0.2715701),
        5000: (0.0467273, 0.0467427),
    },
    "music": {1: (315.6, 821.1), 100: (3.664, 3.677), 1000: (2.986, 2.991)},
}
"""I of TL-NMF and JD+NMF in the authors' notebook, of other draws; the figure itself gives no numbers."""
DEFAULT_RESTARTS, DEFAULT_ITERATIONS = 1, 200  # of TransformNMF
SLOPES = {"I": (-1.0, 0.1), "gap": (-2.0, 0.25)}
NEAR = 0.25


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per data type, S and draw."""
    if quick:
        common = {"kind": "gcm", "draw": 0, "n_init": 2, "max_iter": 60}
        notes = {"kind": "music", "S": 1, "draw": 0, "n_init": 1, "max_iter": 2}
        return [{"S": S} | common for S in (10, 100)] + [notes]
    found: list[dict[str, Any]] = []
    for kind in ("gcm", "music"):
        given = parameters(kind)
        whole = {"kind": kind, "draw": 0, "n_init": given["P"], "max_iter": given["J"]}
        found += [{"S": S} | whole for S in sorted(SIZES, key=lambda S: S not in DRAWN_SIZES)]
        default = {"kind": kind, "draw": 0, "default": True}
        default |= {"n_init": DEFAULT_RESTARTS, "max_iter": DEFAULT_ITERATIONS}
        found += [{"S": S} | default for S in SIZES]
    for kind, n_init in DRAWN_RESTARTS.items():
        few = {"kind": kind, "n_init": n_init, "max_iter": parameters(kind)["J"]}
        found += [{"S": S, "draw": draw} | few for draw in range(1, N_DRAWS) for S in DRAWN_SIZES]
    return found


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run both methods on one draw, or what `TransformNMF` does by default."""
    if setting.get("default"):
        model = default_run(setting["kind"], setting["S"], setting["draw"], max_iter=setting["max_iter"])
        result = model.result_
        assert result is not None
        return [{"choice": model.choice_.name, "I": result.divergence, "C": result.objective}]
    both, data = solve_both(setting)
    record: dict[str, Any] = {"rank": data.rank}
    for name, result in (("tl", both.tl), ("jd", both.jd)):
        record |= {
            f"{name} I": result.divergence,
            f"{name} L": result.likelihood,
            f"{name} C": result.objective,
        }
        restarts = result.restarts
        if restarts is not None:
            # Joint diagonalizations are compared by L, which is all that they minimize.
            values = restarts.objective if name == "tl" else restarts.likelihood
            record |= {f"{name} best restart": restarts.best, f"{name} spread": float(np.nanstd(values))}
    return [record | (_theory(setting, data) if setting["kind"] == "gcm" else {})]


def _theory(setting: Setting, data: Any) -> dict[str, float]:
    """Return Q_S at the true transform, and the largest that is found over all of them."""
    model = gcm_model(setting["draw"])
    true = np.einsum("am,na,ab->nmb", model.transform, model.variances, model.transform)
    found = np.einsum("rna,rnb->nab", data.virtual, data.virtual)
    at = {"eps0": parameters("gcm")["eps0"]}
    whole = setting["max_iter"] >= parameters("gcm")["J"]
    largest, _ = largest_sampling_divergence(
        found, true, n_init=2 if whole else 1, max_sweeps=30 if whole else 4, rng=0, **at
    )
    return {
        "Q true": float(sampling_divergence(model.transform, found, true, **at)),
        "Q largest": largest,
    }


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the curves, the numbers and the slopes."""
    artifacts: list[Artifact] = []
    panels = []
    defaults = [record for record in records if record.get("default")]
    records = [record for record in records if not record.get("default")]
    for kind, title in KINDS.items():
        chosen = sorted(
            (r for r in records if r["kind"] == kind and r["draw"] == 0), key=lambda record: record["S"]
        )
        if chosen:
            artifacts.append(_table(kind, title, chosen, [one for one in defaults if one["kind"] == kind]))
            panels.append(_panel(kind, title, chosen))
    artifacts.append(Figure("divergences", "I at both solutions, and their difference, against S.", panels))
    if any(record["kind"] == "music" and record["draw"] for record in records):
        artifacts.append(_music_draws(records))
    slopes = _slopes(records)
    if slopes:
        artifacts.append(_slope_table(slopes))
    further = [record for record in records if record["kind"] == "gcm"]
    if any("Q largest" in record for record in further):
        artifacts.append(_bounds(further))
    return [*artifacts, *_verdicts(records, slopes), _beside_default(records, defaults)]


def _beside_default(records: Sequence[Record], defaults: Sequence[Record]) -> Verdict:
    """Compare I of one default run with that of all restarts, by the rule of published values."""
    ours = {(record["kind"], record["S"]): record["I"] for record in defaults}
    pairs = {
        (r["kind"], r["S"]): (ours[r["kind"], r["S"]], r["tl I"])
        for r in records
        if r["draw"] == 0 and (r["kind"], r["S"]) in ours
    }
    above = [
        f"{one:.4g} against {other:.4g} on {KINDS[kind]}, S = {S}"
        for (kind, S), (one, other) in sorted(pairs.items())
        if one > 1.05 * other
    ]
    return Verdict(
        "I of the default, one run, is at most that of TL-NMF from all restarts, up to 5%",
        not above if len(pairs) == 2 * len(SIZES) else None,
        "; ".join(above) or f"{len(pairs)} pairs",
    )


def _gap(record: Record) -> float:
    return record["jd I"] - record["tl I"]


def _table(kind: str, title: str, chosen: Sequence[Record], defaults: Sequence[Record]) -> Table:
    rows = []
    ours = {record["S"]: record for record in defaults}
    for record in chosen:
        tl, jd = NOTEBOOK[kind].get(record["S"], (None, None))
        gap = None if tl is None or jd is None else jd - tl
        rows.append(
            {
                "S": record["S"],
                "n_init": record["n_init"],
                "tl": Measured(record["tl I"], published=tl),
                "jd": Measured(record["jd I"], published=jd),
                "gap": Measured(_gap(record), published=gap),
                "C": record["jd C"] - record["tl C"],
                "default": ours[record["S"]]["I"] if record["S"] in ours else None,
                "default C": ours[record["S"]]["C"] - record["tl C"] if record["S"] in ours else None,
            }
        )
    columns = {
        "S": "S",
        "n_init": "restarts",
        "tl": "I, TL-NMF",
        "jd": "I, JD+NMF",
        "gap": "difference of I",
        "C": "difference of C",
        "default": "I, default",
        "default C": "C of the default minus that of TL-NMF",
    }
    caption = f"{title}: with the values of the authors' notebook (other draws)."
    why = (
        "the values of one draw differ by more than that from those of another; the claims below compare them"
    )
    return Table(caption, columns, rows, 5, dict.fromkeys(("tl", "jd", "gap"), why))


def _music_draws(records: Sequence[Record]) -> Table:
    """Return I of TL-NMF on the music notes, one draw of the phases per row."""
    chosen = [r for r in records if r["kind"] == "music" and r["S"] in DRAWN_SIZES]
    rows = []
    for (draw,), members in sorted(grouped(chosen, "draw").items()):
        values = {str(record["S"]): record["tl I"] for record in members}
        rows.append({"draw": draw, "n_init": members[0]["n_init"]} | values)
    columns = {"draw": "draw", "n_init": "restarts"} | {str(S): f"S = {S}" for S in DRAWN_SIZES}
    caption = "Music notes: I of TL-NMF for other draws of the phases (two of them per realization)."
    return Table(caption, columns, rows, 4)


def _panel(kind: str, title: str, chosen: Sequence[Record]) -> Curves:
    x = [float(record["S"]) for record in chosen]
    series = [
        Series("I, TL-NMF", x, [record["tl I"] for record in chosen]),
        Series("I, JD+NMF", x, [record["jd I"] for record in chosen]),
        Series("difference", x, [gap if (gap := _gap(record)) > 0 else None for record in chosen]),
    ]
    if kind == "gcm":
        entries = parameters("gcm")["M"] * parameters("gcm")["N"]
        limit = [entries * sampling_divergence_limit(int(S)) for S in x]
        series.append(Series("M N times the limit of Remark 4", x, limit, style="dashed"))
    return Curves(title, "realizations S", "I", series, x_log=True, y_log=True)


def _slopes(records: Sequence[Record]) -> dict[int, dict[str, float]]:
    """Return, for every draw of the GCM, slopes fitted to the logarithms from S = 10 on."""
    found = {}
    for (draw,), members in grouped((r for r in records if r["kind"] == "gcm"), "draw").items():
        used = [record for record in members if record["S"] >= 10 and _gap(record) > 0]
        if not {10, 1000} <= {record["S"] for record in used}:
            continue
        x = np.log([record["S"] for record in used])
        values = {"I": [r["tl I"] for r in used], "gap": [_gap(r) for r in used]}
        found[draw] = {name: float(np.polyfit(x, np.log(y), 1)[0]) for name, y in values.items()}
    return dict(sorted(found.items()))


def _slope_table(slopes: dict[int, dict[str, float]]) -> Table:
    rows = [{"draw": draw} | values for draw, values in slopes.items()]
    caption = (
        "GCM: slopes fitted from S = 10 to the largest S of the draw, in logarithms (the paper: -1 and -2; "
    )
    return Table(
        caption + "notebook, from S = 10 to 5000: -0.99 and -2.08).",
        {"draw": "draw", "I": "slope of I, TL-NMF", "gap": "slope of the difference"},
        rows,
        3,
    )


def _bounds(records: Sequence[Record]) -> Table:
    entries = parameters("gcm")["M"] * parameters("gcm")["N"]
    rows = []
    for record in sorted(records, key=lambda record: (record["draw"], record["S"])):
        rows.append(
            {
                "draw": record["draw"],
                "S": record["S"],
                "jd": record["jd I"],
                "true": record["Q true"],
                "limit": entries * sampling_divergence_limit(record["S"]),
                "largest": record["Q largest"],
            }
        )
    columns = {
        "draw": "draw",
        "S": "S",
        "jd": "I, JD+NMF",
        "true": "Q at the true transform",
        "limit": "M N times Remark 4's limit",
        "largest": "largest Q found",
    }
    return Table("GCM: Proposition 2 (I of JD+NMF is at most the largest Q) and Remark 4.", columns, rows, 4)


def _verdicts(records: Sequence[Record], slopes: dict[int, dict[str, float]]) -> list[Artifact]:
    full = any(record["n_init"] == parameters("gcm")["P"] for record in records if record["kind"] == "gcm")
    words = {"I": "I of TL-NMF", "gap": "the difference of I"}
    found: list[Artifact] = []
    for name, (target, allowed) in SLOPES.items():
        mean, _ = mean_and_spread([values[name] for values in slopes.values()])
        detail = ", ".join(f"draw {draw}: {values[name]:.3f}" for draw, values in slopes.items())
        own = slopes.get(0, {}).get(name)
        met = None if own is None or not full else abs(own - target) <= allowed
        text = f"{detail}; mean {mean:.3f}" if mean is not None else "S = 10 and 1000 are not both there"
        largest = max((r["S"] for r in records if r["kind"] == "gcm" and r["draw"] == 0), default=1000)
        claim = f"GCM: {words[name]} falls with slope {target:g} ± {allowed:g} between S = 10 and {largest}"
        found.append(Verdict(claim, met, text))
    found.append(_near_the_notebook(records, full))
    found.append(_ordered(records))
    found.append(_levels_off(records))
    return found


def _near_the_notebook(records: Sequence[Record], full: bool) -> Verdict:
    middle = [record for record in records if record["kind"] == "gcm" and record["S"] == 100]
    values = [record["tl I"] for record in sorted(middle, key=lambda record: record["draw"])]
    mean, _ = mean_and_spread(values)
    target = NOTEBOOK["gcm"][100][0]
    claim = f"GCM: I of TL-NMF at S = 100, mean over draws, is within 25% of the authors' {target:.4g}"
    if mean is None or not full:
        return Verdict(claim, None, "")
    each = ", ".join(f"{value:.3f}" for value in values)
    return Verdict(claim, abs(mean / target - 1.0) <= NEAR, f"{mean:.3f}; draws: {each}")


def _ordered(records: Sequence[Record]) -> Verdict:
    """Theorem 2 and (28), for the solutions that were found."""
    records = [r for r in records if r["max_iter"] >= parameters(r["kind"])["J"]]
    wrong = []
    for record in records:
        gap, apart = _gap(record), record["jd C"] - record["tl C"]
        slack = 1e-7 * abs(record["tl C"])
        if min(gap, apart, gap - apart) < -slack:
            wrong.append(f"{record['kind']}, S = {record['S']}, draw {record['draw']}")
    claim = "0 <= C(JD) - C(TL) <= I(JD) - I(TL) in every trial (28)"
    detail = "not in " + "; ".join(wrong) if wrong else f"{len(records)} trials"
    return Verdict(claim, not wrong if records else None, detail)


def _levels_off(records: Sequence[Record]) -> Verdict:
    claim = "music notes: I falls until S is about 100 and then levels off"
    at = {r["S"]: r["tl I"] for r in records if r["kind"] == "music" and r["draw"] == 0}
    if not {1, 10, 100, 1000} <= set(at):
        return Verdict(claim, None, "")
    falls = at[1] > at[10] > at[100]
    flat = math.log(at[100] / at[1000]) / math.log(10.0)
    return Verdict(claim, falls and flat < 0.5, f"slope between S = 100 and 1000: {-flat:.2f}")


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost)
