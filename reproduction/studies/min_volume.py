"""Minimum volume beside pure pixels, over purity, noise and number of endmembers, and on two real scenes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from nonneg import MinVolNMF, SeparableNMF, select_anchors
from nonneg.applications import Unmixing
from nonneg.applications.hyperspectral.abundances import weights_of
from nonneg.metrics import spectral_angles
from reproduction import data as datasets
from reproduction.artifacts import Artifact, Curves, Figure, Series, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES

NAME = "studies/min-volume"
PURITIES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
DECIBELS = (20, 30, 40)
NUMBERS = (3, 4, 5, 6)
N_PIXELS, N_BANDS = 1000, 100
# Draws that chose the weight of the volume and the rules of the solver, and draws that report.
CHOOSING, REPORTING, FIRST_REPORTED = 2, 52, 1000
WEIGHTS = (0.25, 0.5, 2.0, 4.0)
"""Multiples of the default weight; all on the choosing draws, and on the first of the reporting ones."""
GRID_DRAWS = 4
SCENES = {"samson": datasets.load_samson, "moffett": datasets.load_moffett}
METHODS = {
    "spa": "SPA + FCLS",
    "vca": "VCA + FCLS",
    "snpa": "SNPA + FCLS",
    "min-volume": "MinVolNMF",
    "mv-dual": "MV-Dual",
    "best weight": "MinVolNMF, best weight",
}
RIVALS = ("spa", "vca")
MEASURES = {"angle": "angle (degrees)", "rmse": "abundance RMSE"}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per scene; draw after draw, so that part of the trials covers every cell."""
    if quick:
        base = {"purity": 0.7, "snr": 30, "k": 3, "noise": "white", "draw": 0}
        return [base | {"part": part} for part in ("choosing", "reporting")]
    cells = [
        {"purity": purity, "snr": snr, "noise": noise}
        for purity in PURITIES
        for noise, levels in (("white", DECIBELS), ("shared", (30,)))
        for snr in levels
    ]
    real = [{"part": "real", "scene": name, "brightness": free} for name in SCENES for free in (True, False)]
    chosen = [
        {"part": "choosing", "draw": draw, "k": k} | cell
        for draw in range(CHOOSING)
        for k in NUMBERS
        for cell in cells
    ]
    # The numbers of endmembers take turns.
    reported = [
        {"part": "reporting", "draw": draw, "k": NUMBERS[draw % len(NUMBERS)]} | cell
        for draw in range(REPORTING)
        for cell in cells
    ]
    return [*real, *chosen, *reported]


def cost(setting: Mapping[str, Any]) -> float:
    """Return the relative cost of a trial."""
    if setting["part"] == "real":
        return 5.0
    return 4.0 if setting["part"] == "choosing" or setting["draw"] < GRID_DRAWS else 1.0


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run one trial."""
    if setting["part"] == "real":
        return _real(setting)
    seed = setting["draw"] + (0 if setting["part"] == "choosing" else FIRST_REPORTED)
    X, W, H = scene(setting["k"], setting["purity"], setting["snr"], setting["noise"], seed)
    k, found = setting["k"], []
    for name in ("spa", "vca", "snpa"):
        found.append(_scored(name, SeparableNMF(k, method=name, sum_to_one=True, random_state=seed), X, W, H))
    model = MinVolNMF(k)
    default = _scored("min-volume", model, X, W, H)
    found.append(default | {"certificate": {one.name: str(one.verdict) for one in model.certificate_}})
    found.append(_scored("mv-dual", MinVolNMF(k, init="mv-dual", max_iter=0), X, W, H))
    if setting["part"] == "choosing" or setting["draw"] < GRID_DRAWS:
        found += [
            _scored("weight", MinVolNMF(k, lam=factor * model.lam_), X, W, H) | {"weight": factor}
            for factor in WEIGHTS
        ]
    return found


def scene(k: int, purity: float, snr: int, noise: str, seed: int) -> tuple[Any, Any, Any]:
    """Return pixels, abundances and spectra: uniform mixtures, one purest pixel per endmember."""
    rng = np.random.default_rng([seed, k, round(100 * purity), snr, int(noise == "shared")])
    H = datasets.scene_like(2, 2, N_BANDS, k, rng=rng).H
    W = np.empty((0, k))
    while len(W) < N_PIXELS:
        drawn = rng.dirichlet(np.ones(k), 4 * N_PIXELS)
        W = np.concatenate([W, drawn[drawn.max(axis=1) <= purity]])
    W = W[:N_PIXELS]
    for at in range(k):
        others = W[at].copy()
        others[at] = 0.0
        # The rest of the purest pixel is spread such that no other endmember exceeds the purity.
        rest = others / others.sum() if purity >= 0.5 else np.ones(k) / (k - 1)
        W[at] = (1.0 - purity) * rest
        W[at, at] = purity
    X = W @ H
    errors = rng.standard_normal(X.shape)
    if noise == "shared":
        # Nine tenths of the variance are shared by neighboring bands.
        distance = np.abs(np.subtract.outer(np.arange(N_BANDS), np.arange(N_BANDS)))
        root = np.linalg.cholesky(0.9 * 0.9**distance + 0.1 * (distance == 0))
        errors = errors @ root.T
    sigma = np.sqrt(np.mean(X**2)) * 10 ** (-snr / 20)
    return np.maximum(X + sigma * errors, 0.0), W, H


def _scored(name: str, model: Any, X: Any, W: Any, H: Any) -> dict[str, Any]:
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        weights = model.fit_transform(X)
    seconds = time.perf_counter() - started
    return {"method": name, "seconds": seconds} | _errors(model.components_, weights, H, W)


def _errors(found: Any, weights: Any, H: Any, W: Any) -> dict[str, float]:
    angles = spectral_angles(found, H)
    rows, columns = linear_sum_assignment(angles)
    apart = weights[:, rows] - W[:, columns]
    return {"angle": float(angles[rows, columns].mean()), "rmse": float(np.sqrt(np.mean(apart**2)))}


def _real(setting: Setting) -> list[dict[str, Any]]:
    data = SCENES[setting["scene"]]()
    H, W = data.extras["endmembers"], data.extras["abundances"]
    cube = data.X.reshape(*(data.sample_shape or ()), -1)
    constraint = "normalized" if setting["brightness"] else "sum-to-one"
    norms: Sequence[str | None] = (None, "l1") if setting["brightness"] else (None,)
    found = []
    for name in ("spa", "vca", "snpa", "min-volume"):
        for norm in norms if name != "min-volume" else ("auto",):
            started = time.perf_counter()
            if name == "min-volume":
                model = Unmixing(len(H), method=name, constraint=constraint, random_state=0).fit(cube)
                endmembers, weights = model.endmembers_, model.abundances_.reshape(-1, len(H))
            else:
                pixels = cube.reshape(-1, cube.shape[2])
                endmembers = pixels[
                    select_anchors(pixels, len(H), method=name, normalize=norm, rng=0).anchors
                ]
                weights = weights_of(pixels, endmembers, constraint)
                weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
            seconds = time.perf_counter() - started
            shares = weights * endmembers.sum(axis=1)
            shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
            found.append(
                {"method": name, "normalize": norm, "seconds": seconds}
                | _errors(endmembers, weights, H, W)
                | {"share_rmse": _errors(endmembers, shares, H, W)["rmse"]}
            )
    return found


def _mean(records: Sequence[Record], measure: str) -> float | None:
    return mean_and_spread([record.get(measure) for record in records])[0]


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the comparison."""
    parts = {str(key[0]): found for key, found in grouped(records, "part").items()}
    shown: list[Artifact] = []
    reported = _with_best(parts.get("reporting", []))
    if reported:
        shown += [_by_purity(reported), *(_table(reported, measure) for measure in MEASURES)]
        shown.append(_overview(reported))
    if "choosing" in parts:
        shown.append(_weights(parts["choosing"], "Choosing draws"))
    if any(record["method"] == "weight" for record in reported):
        shown.append(_weights(reported, f"The first {GRID_DRAWS} reporting draws"))
    if "real" in parts:
        shown.append(_scenes(parts["real"]))
    return [*shown, *_verdicts(reported, parts.get("real", []))]


def _cell(record: Record) -> tuple[Any, ...]:
    return record["purity"], record["snr"], record["noise"]


def _with_best(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Add the weight of the grid whose mean angle is smallest, cell by cell."""
    found = [dict(record) for record in records]
    for cell in dict.fromkeys(map(_cell, records)):
        mine = [record for record in found if _cell(record) == cell]
        groups = grouped([record for record in mine if record["method"] == "weight"], "weight")
        if not groups:
            continue
        draws = {record["draw"] for record in next(iter(groups.values()))}
        default = [r for r in mine if r["method"] == "min-volume" and r["draw"] in draws]
        candidates = [default, *groups.values()]
        best = min(candidates, key=lambda some: _mean(some, "angle") or 0.0)
        found += [record | {"method": "best weight"} for record in best]
    return found


def _by_purity(records: Sequence[Record]) -> Figure:
    panels = []
    for measure, label in MEASURES.items():
        for snr in sorted({record["snr"] for record in records}):
            series = []
            for name in METHODS:
                mine = [
                    r for r in records if r["method"] == name and r["snr"] == snr and r["noise"] == "white"
                ]
                groups = sorted(grouped(mine, "purity").items())
                if groups:
                    x = [float(key[0]) for key, _ in groups]
                    series.append(Series(METHODS[name], x, [_mean(some, measure) for _, some in groups]))
            if series:
                panels.append(Curves(f"{snr} dB", "purity", label, series, y_log=True))
    return Figure(
        "purity", "Means over the numbers of endmembers and the reporting draws, white noise.", panels, 3
    )


def _table(records: Sequence[Record], measure: str) -> Table:
    rows = []
    for (noise, snr, purity), some in grouped(records, "noise", "snr", "purity").items():
        row: dict[str, Any] = {"noise": noise, "snr": snr, "purity": purity}
        for name in METHODS:
            row[name] = _mean([record for record in some if record["method"] == name], measure)
        rows.append(row)
    rows.sort(key=lambda row: (row["noise"] != "white", row["snr"], row["purity"]))
    columns = {"noise": "noise", "snr": "dB", "purity": "purity"} | METHODS
    few = f"The best weight is that of the first {GRID_DRAWS} draws, and so are its means."
    return Table(f"{MEASURES[measure]}: means over K and the reporting draws. {few}", columns, rows, 3)


def _overview(records: Sequence[Record]) -> Table:
    rows = []
    for name in METHODS:
        mine = [record for record in records if record["method"] == name]
        if mine:
            mine = [record for record in mine if record["purity"] < 0.8 and _identifiable(record)]
            row: dict[str, Any] = {"method": METHODS[name], "n": len(mine)}
            for k in NUMBERS:
                some = [record for record in mine if record["k"] == k]
                row[f"angle {k}"], row[f"rmse {k}"] = _mean(some, "angle"), _mean(some, "rmse")
            rows.append(row)
    columns = {"method": "method", "n": "fits"}
    columns |= {f"angle {k}": f"angle, K={k}" for k in NUMBERS}
    columns |= {f"rmse {k}": f"RMSE, K={k}" for k in NUMBERS}
    caption = (
        "Purity below 0.8, and above the 2/K that uniqueness needs: means over noise and reporting draws."
    )
    return Table(caption, columns, rows, 3)


def _weights(records: Sequence[Record], what: str) -> Table:
    draws = {record["draw"] for record in records if record["method"] == "weight"}
    rows = []
    for factor in sorted((1.0, *WEIGHTS)):
        mine = [
            record
            for record in records
            if record["draw"] in draws
            and (record.get("weight") == factor or (factor == 1.0 and record["method"] == "min-volume"))
            and record["method"] != "best weight"
        ]
        row: dict[str, Any] = {"weight": factor, "n": len(mine)}
        for snr in DECIBELS:
            for measure in MEASURES:
                row[f"{measure} {snr}"] = _mean([r for r in mine if r["snr"] == snr], measure)
        rows.append(row)
    columns = {"weight": "multiple of the default weight", "n": "fits"}
    columns |= {f"angle {snr}": f"angle, {snr} dB" for snr in DECIBELS}
    columns |= {f"rmse {snr}": f"RMSE, {snr} dB" for snr in DECIBELS}
    return Table(f"{what}: the weight of the volume.", columns, rows, 3)


def _scenes(records: Sequence[Record]) -> Table:
    rows = [
        {
            "scene": record["scene"],
            "constraint": "normalized" if record["brightness"] else "sum-to-one",
            "method": record["method"] + (", normalized pixels" if record["normalize"] == "l1" else ""),
            **{name: record[name] for name in ("angle", "rmse", "share_rmse")},
        }
        for record in records
    ]
    columns = {"scene": "scene", "constraint": "constraint", "method": "method", "angle": "angle (degrees)"}
    columns |= {"rmse": "abundance RMSE", "share_rmse": "RMSE of shares of light"}
    return Table("Real scenes: angles and abundances, with the published ones.", columns, rows, 3)


def _identifiable(record: Record) -> bool:
    """Tell whether a scene meets the necessary condition on the purity."""
    return bool(record["purity"] > 2.0 / record["k"] + 1e-9)


def _verdicts(records: Sequence[Record], real: Sequence[Record]) -> list[Verdict]:
    whole = {len({r["draw"] for r in some}) for some in grouped(records, "purity", "snr", "noise").values()}
    enough = bool(whole) and min(whole) >= 50
    low = [record for record in records if record["purity"] < 0.8 and record["method"] in METHODS]
    verdicts = []
    for measure, label in MEASURES.items():
        for name, wanted in (
            ("above the necessary purity 2/K", True),
            ("not above it, where components are not unique", False),
        ):
            cells = [
                {str(key[0]): _mean(found, measure) for key, found in grouped(some, "method").items()}
                for some in grouped(
                    [r for r in low if _identifiable(r) == wanted], "purity", "snr", "noise"
                ).values()
            ]
            won = sum(_beats(cell) for cell in cells)
            verdicts.append(
                Verdict(
                    f"Purest pixel below 0.8, {name}: MinVolNMF has a smaller mean {label} than SPA and VCA "
                    "with FCLS in every cell",
                    None if not enough or not cells else won == len(cells),
                    f"{won} of {len(cells)} cells",
                )
            )
    verdicts.append(_near_best(records, enough))
    verdicts += [
        _scene_verdict(real, scene, measure)
        for scene in SCENES
        for measure in ("angle", "share_rmse", "rmse")
    ]
    return verdicts


def _beats(cell: Mapping[str, float | None]) -> bool:
    ours = cell.get("min-volume")
    others = [cell.get(name) for name in RIVALS]
    return ours is not None and all(other is not None and ours < other for other in others)


def _near_best(records: Sequence[Record], enough: bool) -> Verdict:
    draws = {record["draw"] for record in records if record["method"] == "best weight"}
    pairs = {
        name: _mean(
            [r for r in records if r["method"] == name and r["draw"] in draws and _identifiable(r)], "angle"
        )
        for name in ("min-volume", "best weight")
    }
    ours, best = pairs["min-volume"], pairs["best weight"]
    known = ours is not None and best is not None
    return Verdict(
        "The mean angle of the default weight is within 10% of that of the best weight of each cell",
        None if not enough or ours is None or best is None else ours <= 1.1 * best,
        f"{ours:.3g} and {best:.3g} degrees" if known else "not measured",
    )


def _scene_verdict(real: Sequence[Record], scene: str, measure: str) -> Verdict:
    mine = [record for record in real if record["scene"] == scene and record["brightness"]]
    ours = [record[measure] for record in mine if record["method"] == "min-volume"]
    others = {
        record["method"] + (", normalized pixels" if record["normalize"] == "l1" else ""): record[measure]
        for record in mine
        if record["method"] in RIVALS
    }
    words = {"angle": "spectral angle", "rmse": "abundance RMSE", "share_rmse": "RMSE of shares of light"}[
        measure
    ]
    return Verdict(
        f"On {scene}, Unmixing(method='min-volume') does not lose to SPA and VCA in {words}",
        None if not ours or not others else ours[0] <= min(others.values()),
        "not measured"
        if not ours
        else f"{ours[0]:.3g}; " + ", ".join(f"{n} {v:.3g}" for n, v in others.items()),
    )


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=("samson", "moffett"),
    quick_data_sets=(),
    cost=cost,
)
