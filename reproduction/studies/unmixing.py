"""The default of Unmixing beside every single method and other tools, on scenes of many kinds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.applications import Unmixing
from nonneg.applications.hyperspectral.abundances import weights_of
from nonneg.applications.hyperspectral.n_endmembers import estimate_n_endmembers
from reproduction import data as datasets
from reproduction.artifacts import Artifact, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES
from reproduction.studies.unmixing_scenes import KINDS, N_CHOOSING, PEERS, drawn_scene, peer_endmembers
from reproduction.studies.vertex_draws import matched, spectral_angles

NAME = "studies/unmixing"
N_DRAWS, BATCH = 20, 5
CLOSE = (
    "random, purity 0.7, 20 dB",
    "random, purity 0.6",
    "random, purity 0.5, 6 materials",
    "random, noise shared by bands",
)
"""Kinds with more draws: after 20, the default and the best single method were within a tenth."""
N_CLOSE = 60
DEFAULT = "auto"
SINGLE = (
    "spa", "snpa", "xray", "fast-anchor", "vca", "preconditioned-spa", "translated-spa", "lifted-spa",
    "smoothed-spa", "smoothed-vca", "pp-spa", "min-volume",
)  # fmt: skip
VCA_FCLS = "VCA + FCLS"
TOOLS = (VCA_FCLS, *PEERS)
HYPERSPY = "NMF (HyperSpy)"
# Other tools that are slow run on the first draws; comparisons are on shared draws.
SLOW = {"FIPPI": 5, "PPI": 5, HYPERSPY: 5}
REAL = {"samson": datasets.load_samson, "moffett": datasets.load_moffett}
ESTIMATES = ("hysime", "virtual_dimensionality", "hfc", "confirmed", "recommended")
HOWS = ("pure pixels", "pure pixels and edges", "pure pixels and minimum volume", "minimum volume")
SAME = 1e-3
"""Mean angles that differ by less are equal, in degrees."""


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per kind and batch of draws, and those of the real scenes."""
    if quick:
        kinds = ("SalinasA-like", "random, purity 0.8, 0.1% corrupt")
        return [{"kind": kind, "first_draw": 0, "n_draws": 1} for kind in kinds]
    real = [{"kind": name} for name in REAL]
    drawn = [
        {"kind": kind, "first_draw": first, "n_draws": BATCH}
        for first in range(0, N_CLOSE, BATCH)
        for kind in KINDS
        if first < _n_draws(kind)
    ]
    # HyperSpy has more requirements than other tools, and trials of its own.
    apart = [{"kind": kind, "first_draw": 0, "n_draws": SLOW[HYPERSPY], "tool": HYPERSPY} for kind in KINDS]
    return [*real, *drawn, *apart, *({"kind": name, "tool": HYPERSPY} for name in REAL)]


def _n_draws(kind: str) -> int:
    return 1 if kind in REAL else N_CLOSE if kind in CLOSE else N_DRAWS


def cost(setting: Setting) -> float:
    """Return the relative cost of a trial."""
    if "n_draws" not in setting:
        return 10.0
    return float(setting["n_draws"]) * (2.0 if setting["first_draw"] < max(SLOW.values()) else 1.0)


def run(setting: Setting) -> list[dict[str, Any]]:
    """Unmix scenes by every method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if setting["kind"] in REAL:
            scene = REAL[setting["kind"]]()
            cube = scene.X.reshape(*(scene.sample_shape or ()), -1)
            true, abundances = scene.extras["endmembers"], scene.extras["abundances"]
            if "tool" in setting:
                return _by_tool(setting["tool"], cube, true, abundances, 0)
            return _unmixed(cube, true, abundances, 0)
        found = []
        for draw in range(setting["first_draw"], setting["first_draw"] + setting["n_draws"]):
            planted = drawn_scene(setting["kind"], draw)
            side = round(len(planted.X) ** 0.5)
            cube = planted.X.reshape(side, side, -1)
            if "tool" in setting:
                found += _by_tool(setting["tool"], cube, planted.vertices, planted.weights, draw)
            else:
                found += _unmixed(cube, planted.vertices, planted.weights, draw)
        return found


def _unmixed(cube: FloatArray, true: FloatArray, abundances: FloatArray, draw: int) -> list[dict[str, Any]]:
    records = []
    for method in (DEFAULT, *SINGLE):
        started = time.perf_counter()
        model = Unmixing(len(true), method=method, random_state=draw, negative_tol=1.0).fit(cube)
        record = _record(method, draw, started, model.endmembers_, model.abundances_, true, abundances)
        if method == DEFAULT:
            record |= {
                "how": model.result_.facts.get("how", model.result_.method),
                "n_isolated": len(model.isolated_pixels_),
                "n_unexplained": int(model.unexplained_.sum()),
            }
        records.append(record)
    for name in TOOLS:
        if name != HYPERSPY and draw % N_CHOOSING < SLOW.get(name, N_DRAWS):
            records += _by_tool(name, cube, true, abundances, draw)
    count = estimate_n_endmembers(cube.reshape(-1, cube.shape[2])).as_dict()
    counts = {name: count[name] for name in ESTIMATES}
    return [*records, {"method": "count", "draw": draw, "k": len(true), **counts}]


def _by_tool(
    name: str, cube: FloatArray, true: FloatArray, abundances: FloatArray, draw: int
) -> list[dict[str, Any]]:
    """Unmix by another tool; nothing if it is not installed or returns another number of endmembers."""
    started = time.perf_counter()
    if name == VCA_FCLS:
        model = Unmixing(len(true), method="vca", constraint="sum-to-one", random_state=draw)
        found = model.set_params(negative_tol=1.0).fit(cube).endmembers_
    else:
        found = peer_endmembers(name, cube, len(true), draw)
    if found is None or len(found) != len(true) or not np.isfinite(found).all():
        return []
    maps = weights_of(cube.reshape(-1, cube.shape[2]), np.maximum(found, 0.0), "sum-to-one")
    return [_record(name, draw, started, found, maps, true, abundances)]


def _record(
    method: str,
    draw: int,
    started: float,
    found: FloatArray,
    maps: FloatArray,
    true: FloatArray,
    A: FloatArray,
) -> dict[str, Any]:
    seconds = time.perf_counter() - started
    flat = maps.reshape(-1, len(true))[:, matched(found, true)]
    mixed = A.sum(axis=1) > 0  # corrupt pixels have no abundances
    return {
        "method": method,
        "draw": draw,
        "angles": [round(angle, 3) for angle in spectral_angles(found, true)],
        "rmse": round(float(np.sqrt(np.mean((flat - A)[mixed] ** 2))), 4),
        "s": round(seconds, 3),
    }


def _mean(records: Sequence[Record], measure: str) -> float | None:
    angles = measure == "angle"
    values = [float(np.mean(record["angles"]) if angles else record[measure]) for record in records]
    return mean_and_spread(values)[0]


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the tables and what follows."""
    reported = [record for record in records if record["draw"] < N_CHOOSING]
    scored = [record for record in reported if record["method"] != "count"]
    order = [*KINDS, *REAL]
    shown: list[Artifact] = [
        _against_best(scored, order),
        _behind(scored),
        _table("Mean spectral angle in degrees: the methods of nonneg.", scored, "angle", (DEFAULT, *SINGLE)),
        _table("Mean spectral angle in degrees: other tools.", scored, "angle", (DEFAULT, *TOOLS)),
        _table("Abundance RMSE: the methods of nonneg.", scored, "rmse", (DEFAULT, *SINGLE)),
        _table("Abundance RMSE: other tools (FCLS).", scored, "rmse", (DEFAULT, *TOOLS)),
        _decisions(scored),
    ]
    counts = [record for record in reported if record["method"] == "count"]
    if counts:
        shown.append(_counts(counts))
    return [*shown, *_verdicts(scored, counts)]


def _kinds(records: Sequence[Record]) -> dict[str, list[Record]]:
    groups: dict[str, list[Record]] = {
        str(key[0]): list(found) for key, found in grouped(records, "kind").items()
    }
    return {kind: groups[kind] for kind in (*KINDS, *REAL) if kind in groups}


def _of(records: Sequence[Record], method: str) -> list[Record]:
    return [record for record in records if record["method"] == method]


def _table(caption: str, records: Sequence[Record], measure: str, methods: Sequence[str]) -> Table:
    rows = []
    for kind, some in _kinds(records).items():
        row: dict[str, Any] = {"kind": kind}
        for method in methods:
            row[method] = _mean(_of(some, method), measure) if _of(some, method) else None
        rows.append(row)
    few = ", ".join(f"{name} {n}" for name, n in SLOW.items() if name in methods)
    note = f" Of {N_DRAWS} draws" + (f" ({few})" if few else "") + f", {N_CLOSE} of four close kinds."
    return Table(caption + note, {"kind": "scenes"} | {name: name for name in methods}, rows, 3)


def _paired(some: Sequence[Record], other: str, measure: str) -> tuple[float, float, float] | None:
    """Return the means of the default and of another method on shared draws, and the error of the gap."""
    ours = {record["draw"]: _mean([record], measure) for record in _of(some, DEFAULT)}
    theirs = {record["draw"]: _mean([record], measure) for record in _of(some, other)}
    shared = sorted(set(ours) & set(theirs))
    if not shared:
        return None
    gaps = np.array([(ours[draw] or 0.0) - (theirs[draw] or 0.0) for draw in shared])
    error = float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else 0.0
    return (
        float(np.mean([ours[draw] or 0.0 for draw in shared])),
        float(np.mean([theirs[draw] or 0.0 for draw in shared])),
        error,
    )


def _best(some: Sequence[Record], methods: Sequence[str], measure: str) -> tuple[str, Any] | None:
    pairs = {name: _paired(some, name, measure) for name in methods}
    known = {name: pair for name, pair in pairs.items() if pair is not None}
    if not known:
        return None
    name = min(known, key=lambda one: known[one][1])
    return name, known[name]


def _against_best(records: Sequence[Record], order: Sequence[str]) -> Table:
    rows = []
    for kind, some in _kinds(records).items():
        row: dict[str, Any] = {"kind": kind}
        for label, methods in (("single", SINGLE), ("tool", TOOLS)):
            for measure in ("angle", "rmse"):
                found = _best(some, methods, measure)
                if found is not None:
                    name, (ours, theirs, error) = found
                    row |= {f"{label} {measure}": theirs, f"ours {label} {measure}": ours}
                    if measure == "angle":
                        row |= {label: name, f"error {label}": error}
        rows.append(row)
    columns = {
        "kind": "scenes", "ours single angle": "default", "single angle": "best single",
        "single": "which", "error single": "standard error of the gap", "tool angle": "best tool",
        "tool": "which tool", "ours single rmse": "RMSE, default", "single rmse": "RMSE, best single",
        "tool rmse": "RMSE, best tool",
    }  # fmt: skip
    caption = (
        "The default, the best single method and the best other tool of each kind, on the draws that "
        "both have: mean spectral angle in degrees, and abundance RMSE (the best by its own measure)."
    )
    return Table(caption, columns, rows, 3)


def _behind(records: Sequence[Record]) -> Table:
    """List where another method has a smaller mean, with the paired gap and its standard error."""
    rows = []
    for measure, words in (("angle", "spectral angle (degrees)"), ("rmse", "abundance RMSE")):
        for kind, some in _kinds(records).items():
            found = _best(some, SINGLE, measure)
            if found is None or found[1][0] <= found[1][1] + SAME:
                continue
            name, (ours, theirs, error) = found
            gap = ours - theirs
            row: dict[str, Any] = {"measure": words, "kind": kind, "method": name, "gap": gap}
            rows.append(row | ({"error": error, "errors": gap / error} if error > 0 else {}))
    columns = {"measure": "measure", "kind": "scenes", "method": "best single", "gap": "default minus best"}
    columns |= {"error": "standard error", "errors": "in standard errors"}
    caption = (
        "Where the default is behind the best single method: mean of the paired differences. The best of "
        f"{len(SINGLE)} methods is taken after the fact, on the same draws, which favors it."
    )
    return Table(caption, columns, rows, 3)


def _decisions(records: Sequence[Record]) -> Table:
    rows = []
    for kind, some in _kinds(records).items():
        mine = _of(some, DEFAULT)
        row: dict[str, Any] = {"kind": kind, "s": _mean(mine, "s")}
        for how in HOWS:
            row[how] = sum(record["how"] == how for record in mine)
        row |= {"isolated": _mean(mine, "n_isolated"), "unexplained": _mean(mine, "n_unexplained")}
        rows.append(row)
    columns = {"kind": "scenes"} | {how: how for how in HOWS} | {"isolated": "pixels set aside"}
    columns |= {"unexplained": "pixels not explained", "s": "seconds"}
    return Table("What the default chose, in draws, and means of what it says and takes.", columns, rows, 3)


def _counts(counts: Sequence[Record]) -> Table:
    rows = []
    for kind, some in _kinds(counts).items():
        row: dict[str, Any] = {"kind": kind, "k": _mean(some, "k")}
        for name in ESTIMATES:
            row[name] = _mean(some, name)
        row["right"] = float(np.mean([record["recommended"] == record["k"] for record in some]))
        row["hysime right"] = float(np.mean([record["hysime"] == record["k"] for record in some]))
        rows.append(row)
    columns = {"kind": "scenes", "k": "true", "hysime": "HySime", "virtual_dimensionality": "NWHFC"}
    columns |= {"hfc": "HFC", "confirmed": "two halves", "recommended": "recommended"}
    columns |= {"right": "recommended is right", "hysime right": "HySime is right"}
    return Table("The number of endmembers: means of the estimates, and shares of draws.", columns, rows, 3)


def _verdicts(records: Sequence[Record], counts: Sequence[Record]) -> list[Verdict]:
    kinds = _kinds(records)
    complete = set(kinds) == {*KINDS, *REAL} and all(
        len(_of(some, DEFAULT)) == _n_draws(kind) for kind, some in kinds.items()
    )
    verdicts = []
    for what, methods, measure in (
        ("mean spectral angle", SINGLE, "angle"),
        ("mean spectral angle", TOOLS, "angle"),
        ("abundance RMSE", SINGLE, "rmse"),
        ("abundance RMSE", TOOLS, "rmse"),
    ):
        best = {kind: _best(some, methods, measure) for kind, some in kinds.items()}
        known = {kind: found for kind, found in best.items() if found is not None}
        worse = {kind: found for kind, found in known.items() if found[1][0] > found[1][1] + SAME}
        beyond = {kind: f for kind, f in worse.items() if f[1][0] > f[1][1] + SAME + 2.0 * f[1][2]}
        named = "; ".join(
            f"{kind}: {ours:.3g} against {theirs:.3g} ({name})"
            for kind, (name, (ours, theirs, _)) in worse.items()
        )
        whom = "the best single method" if methods is SINGLE else "the best other tool"
        verdicts.append(
            Verdict(
                f"The {what} of the default is at or below that of {whom} on every kind of scenes",
                not worse if complete else None,
                f"{len(known) - len(worse)} of {len(known)} kinds, {len(beyond)} beyond two standard errors"
                + (f"; {named}" if named else ""),
            )
        )
    if counts:
        mine = [record for record in counts if record["kind"] not in REAL]
        right = [record["recommended"] == record["k"] for record in mine]
        plain = [record["hysime"] == record["k"] for record in mine]
        if right:
            verdicts.append(
                Verdict(
                    "The recommended number of endmembers is right more often than that of HySime",
                    float(np.mean(right)) > float(np.mean(plain)) if complete else None,
                    f"{np.mean(right):.3g} against {np.mean(plain):.3g} of the generated scenes",
                )
            )
    return verdicts


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=(*REAL, "indian_pines"),
    quick_data_sets=(),
    cost=cost,
)
