"""Which anchor method to use when: vertices of planted points and scenes, one difficulty at a time."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nonneg import select_anchors
from nonneg._arrays import to_float64
from nonneg._typing import FloatArray, IntArray
from nonneg.applications import Unmixing
from nonneg.exceptions import NonnegWarning
from reproduction import data as datasets
from reproduction.artifacts import Artifact, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES
from reproduction.studies.vertex_draws import (
    COVERS,
    POINTS,
    SCENES,
    Planted,
    matched,
    mixed_covers,
    planted_points,
    planted_scene,
    spectral_angles,
    vertex_error,
)

NAME = "studies/robust-anchors"
N_DRAWS, BATCH = 50, 5
# The slow methods that stand beside the others run on fewer draws.
SLOW, N_SLOW = ("min-volume", "css-nmf"), 25
CLASSIC = ("spa", "snpa", "xray", "fast-anchor", "vca", "preconditioned-spa")
ROBUST = ("translated-spa", "lifted-spa", "smoothed-spa", "smoothed-vca", "pp-spa")
# For images without pure pixels; beside the others, not among those that look for pure samples.
IMAGES = (*CLASSIC, *ROBUST, "min-volume")
# Smoothed SPA without its averages: what the projection and the lift do by themselves.
ABLATION = "smoothed-spa, one sample"
SMALL: dict[str, dict[str, Any]] = {f"{snr} dB": {"n": 300, "snr": snr} for snr in (5, 10, 20, 30)}
SMALL["K = 40 of 80 features, 10 dB"] = {"n": 300, "k": 40, "m": 80, "snr": 10}
"""Points for the convex methods, whose work grows with the square of their number."""
# MERIT on the samples without the noise outside the span of their vertices.
PROJECTED = "merit, projected"
SMALL_METHODS = ("merit", PROJECTED, "css-nmf", "spa", "snpa", "lifted-spa", "smoothed-spa", "pp-spa")
REAL = ("samson", "moffett")
KINDS: dict[str, Mapping[str, Any]] = {"points": POINTS, "scenes": SCENES, "covers": COVERS, "small": SMALL}
DEFAULT = "smoothed-spa"
"""What the verdicts are about: the defaults of `Unmixing` and `MixedMembership` build on it."""
# "Never far from the best": half as much again, or less than this many thousandths of the size of the simplex
# (points) and degrees (scenes) away.
FAR, NEAR_ERROR, NEAR_ANGLE = 1.5, 0.02, 0.5


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per part, kind and batch of draws."""
    if quick:
        return [
            {"part": "points", "kind": "10 near-duplicates", "first_draw": 0, "n_draws": 1},
            {"part": "scenes", "kind": "0.1% corrupt pixels", "first_draw": 0, "n_draws": 1},
        ]
    settings: list[dict[str, Any]] = [{"part": "real", "kind": name} for name in REAL]
    settings += [
        {"part": part, "kind": kind, "first_draw": first, "n_draws": BATCH}
        for first in range(0, N_DRAWS, BATCH)
        for part, listed in KINDS.items()
        for kind in listed
    ]
    return settings


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run all methods on the same draws."""
    with warnings.catch_warnings():
        # A vertex of zeros, and other things that methods say about hard data.
        warnings.simplefilter("ignore", NonnegWarning)
        if setting["part"] == "real":
            return _real(setting["kind"])
        draws = range(setting["first_draw"], setting["first_draw"] + setting["n_draws"])
        return [record for draw in draws for record in _drawn(setting, draw)]


def _drawn(setting: Setting, draw: int) -> list[dict[str, Any]]:
    part, kind = setting["part"], setting["kind"]
    listed = KINDS[part]
    rng = np.random.default_rng([1 + list(KINDS).index(part), list(listed).index(kind), draw])
    if part == "scenes":
        return _scene(planted_scene(SCENES[kind], rng), draw)
    if part == "covers":
        return _scene(mixed_covers(COVERS[kind], rng), draw)
    planted = planted_points(listed[kind], rng)
    methods = SMALL_METHODS if part == "small" else (*CLASSIC, *ROBUST, ABLATION)
    return [_points(planted, method, listed[kind], draw) for method in _affordable(methods, draw)]


def _affordable(methods: Sequence[str], draw: int) -> list[str]:
    return [method for method in methods if draw < N_SLOW or method not in SLOW]


def _points(planted: Planted, method: str, kind: Mapping[str, Any], draw: int) -> dict[str, Any]:
    name, params = (method, {}) if method != ABLATION else ("smoothed-spa", {"n_members": 1})
    X = np.maximum(planted.X, 0.0) if method == "xray" else planted.X  # XRAY refuses negative entries
    k = len(planted.vertices)
    options: dict[str, Any] = {}
    if method == PROJECTED:
        name, options = "merit", {"reduce": k - 1, "centered": True}
    started = time.perf_counter()
    found = select_anchors(X, k, method=name, method_params=params, rng=draw, **options)
    seconds = time.perf_counter() - started
    vertices = X[found.anchors] if found.components is None else to_float64(found.components)
    record = {"method": method, "draw": draw, "error": round(vertex_error(vertices, planted), 5)}
    if kind.get("purity", 1.0) == 1.0:
        record["found"] = _found(found.anchors, k, kind.get("copies", 1))
    return record | {"s": round(seconds, 4)}


def _found(anchors: IntArray, k: int, copies: int) -> float:
    """Return the share of the vertices that have a pure sample among the anchors."""
    pure = anchors[anchors < k * copies] // copies
    return round(len(np.unique(pure)) / k, 4)


def _scene(planted: Planted, draw: int) -> list[dict[str, Any]]:
    side = round(len(planted.X) ** 0.5)
    cube = planted.X.reshape(side, side, -1)
    methods = _affordable(IMAGES, draw)
    return [_unmixed(cube, planted.vertices, planted.weights, method, draw) for method in methods]


def _unmixed(
    cube: FloatArray, true: FloatArray, abundances: FloatArray, method: str, draw: int
) -> dict[str, Any]:
    started = time.perf_counter()
    model = Unmixing(len(true), method=method, random_state=draw, negative_tol=1.0).fit(cube)
    seconds = time.perf_counter() - started
    order = matched(model.endmembers_, true)
    maps = model.abundances_.reshape(-1, len(true))[:, order]
    return {
        "method": method,
        "draw": draw,
        "angles": [round(angle, 3) for angle in spectral_angles(model.endmembers_, true)],
        "rmse": round(float(np.sqrt(np.mean((maps - abundances) ** 2))), 4),
        "s": round(seconds, 4),
    }


def _real(name: str) -> list[dict[str, Any]]:
    scene = {"samson": datasets.load_samson, "moffett": datasets.load_moffett}[name]()
    side = round(len(scene.X) ** 0.5)
    cube = scene.X.reshape(side, side, -1)
    true, abundances = scene.extras["endmembers"], scene.extras["abundances"]
    records = []
    for method in IMAGES:
        for draw in range(10 if method.endswith("vca") else 1):
            records.append(_unmixed(cube, true, abundances, method, draw))
    return records


def cost(setting: Setting) -> float:
    """Return the relative cost of a trial."""
    if setting["part"] == "real":
        return 20.0
    large = 8.0 if setting["kind"] == "10,000 points" else 1.0
    each = {"points": 1.0, "scenes": 3.0, "covers": 6.0, "small": 3.0}
    return large * each[setting["part"]] * float(setting["n_draws"])


def _angle(record: Record) -> float:
    return float(np.mean(record["angles"]))


def _means(records: Sequence[Record], value: Any) -> dict[str, dict[str, float]]:
    """Return the mean of a measure by kind and method."""
    found: dict[str, dict[str, float]] = {}
    for (kind, method), some in grouped(records, "kind", "method").items():
        mean, _ = mean_and_spread([value(record) for record in some])
        if mean is not None:
            found.setdefault(kind, {})[method] = mean
    return found


def _table(
    caption: str, means: Mapping[str, Mapping[str, float]], methods: Sequence[str], order: Sequence[str]
) -> Table:
    rows = [{"kind": kind} | dict(means[kind]) for kind in order if kind in means]
    return Table(caption, {"kind": "data"} | {name: name for name in methods}, rows, 3)


def _worst(
    means: Mapping[str, Mapping[str, float]], methods: Sequence[str], near: float
) -> list[dict[str, Any]]:
    """Return, for every method, where it is farthest from the best one."""
    rows = []
    for method in methods:
        ratios = {}
        for kind, found in means.items():
            if method in found:
                best = min(found[name] for name in methods if name in found)
                ratios[kind] = 1.0 if found[method] <= best + near else found[method] / best
        if ratios:
            worst = max(ratios, key=lambda kind: ratios[kind])
            rows.append({"method": method, "ratio": ratios[worst], "where": worst})
    return sorted(rows, key=lambda row: row["ratio"])


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the tables and what follows for the defaults."""
    parts = {name: [r for r in records if r["part"] == name] for name in (*KINDS, "real")}
    listed = (*CLASSIC, *ROBUST)
    errors = _means(parts["points"], lambda record: record["error"])
    shares = _means([r for r in parts["points"] if "found" in r], lambda record: record["found"])
    scenes = _means(parts["scenes"], _angle)
    covers = _means(parts["covers"], _angle)
    real = _means(parts["real"], _angle)
    images = [*parts["scenes"], *parts["covers"], *parts["real"]]
    maps = _means(images, lambda record: record["rmse"])
    angles = {**scenes, **covers, **real}
    shown: list[Artifact] = []
    if errors:
        shown.append(
            _table(
                "Points: mean distance of a vertex from the true one, relative to the size of the simplex.",
                errors, (*listed, ABLATION), list(POINTS),
            )
        )  # fmt: skip
        shown.append(
            _table("Points: share of the pure samples found.", shares, (*listed, ABLATION), list(POINTS))
        )
        shown.append(_ratios("Points", _worst(errors, listed, NEAR_ERROR), NEAR_ERROR, "of the size"))
    if scenes:
        shown.append(
            _table(
                f"Generated scenes: mean spectral angle in degrees (min-volume: {N_SLOW} draws).",
                scenes,
                IMAGES,
                list(SCENES),
            )
        )
    if covers:
        shown.append(
            _table(
                "Mixtures of pixels of Indian Pines: mean angle to the means of the covers, degrees.",
                covers, IMAGES, list(COVERS),
            )
        )  # fmt: skip
    if real:
        shown.append(
            _table("Real scenes: mean angle to the published endmembers, degrees.", real, IMAGES, REAL)
        )
    if angles:
        shown.append(
            _ratios(
                "Generated, mixed and real scenes", _worst(angles, listed, NEAR_ANGLE), NEAR_ANGLE, "degrees"
            )
        )
    if maps:
        shown.append(
            _table(
                "Root mean square error of the abundance maps.", maps, IMAGES, [*SCENES, *COVERS, *REAL]
            )
        )  # fmt: skip
    small = _means(parts["small"], lambda record: record["error"])
    if small:
        found = _means(parts["small"], lambda record: record["found"])
        shown.append(
            _table(
                f"300 points: error of the vertices (css-nmf: {N_SLOW} draws).",
                small,
                SMALL_METHODS,
                list(SMALL),
            )
        )
        shown.append(
            _table("300 points: share of the pure samples found.", found, SMALL_METHODS, list(SMALL))
        )
    return [*shown, *_verdicts(parts, errors, angles)]


def _ratios(what: str, rows: list[dict[str, Any]], near: float, unit: str) -> Table:
    return Table(
        f"{what}: how far from the best method, at worst (ratio of means; differences up to {near:g} {unit} "
        "count as none).",
        {"method": "method", "ratio": "at worst", "where": "where"},
        rows,
        3,
    )


def _verdicts(
    parts: Mapping[str, Sequence[Record]],
    errors: Mapping[str, Mapping[str, float]],
    angles: Mapping[str, Mapping[str, float]],
) -> list[Verdict]:
    listed = (*CLASSIC, *ROBUST)
    complete = {
        part: all(
            sum(r["kind"] == kind and r["method"] == DEFAULT for r in parts[part]) == N_DRAWS
            for kind in kinds
        )
        for part, kinds in KINDS.items()
    }
    complete["scenes"] = complete["scenes"] and complete["covers"] and set(REAL) <= set(angles)
    verdicts = []
    for part, means, near, data in (
        ("points", errors, NEAR_ERROR, "kind of points"),
        ("scenes", angles, NEAR_ANGLE, "kind of scenes, generated, mixed or real"),
    ):
        worst = {row["method"]: row for row in _worst(means, listed, near)}
        row = worst.get(DEFAULT)
        verdicts.append(
            Verdict(
                f"{DEFAULT} with its default parameters is never more than {FAR:g} times as far from the "
                f"truth as the best method that looks for pure samples, for any {data}",
                None if row is None or not complete[part] else row["ratio"] <= FAR,
                "not measured" if row is None else f"at worst {row['ratio']:.3g} times, {row['where']}",
            )
        )
    pairs = {kind: (found[DEFAULT], found["snpa"]) for kind, found in angles.items() if DEFAULT in found}
    verdicts.append(
        Verdict(
            "smoothed-spa is closer than snpa on every kind of scenes",
            all(now < former for now, former in pairs.values()) if complete["scenes"] else None,
            ", ".join(f"{kind}: {now:.2f} ({former:.2f})" for kind, (now, former) in pairs.items()),
        )
    )
    shares = _means(parts["small"], lambda record: record["found"])
    for words, name in (
        ("MERIT, the default of select_anchors,", "merit"),
        ("MERIT after a projection (reduce=K - 1, centered=True)", PROJECTED),
    ):
        pairs = {kind: (found[name], found[DEFAULT]) for kind, found in shares.items() if name in found}
        verdicts.append(
            Verdict(
                f"{words} finds at least as many pure samples as {DEFAULT} at every noise level",
                all(one >= other for one, other in pairs.values()) if complete["small"] else None,
                ", ".join(f"{kind}: {one:.3f} ({other:.3f})" for kind, (one, other) in pairs.items()),
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
