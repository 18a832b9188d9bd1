"""Theorems 3 and 4 and Proposition 1: row maxima at the optimum, steps with the penalty, and warm starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.datasets import SeparableData, separable_dirichlet
from nonneg.separable.certificate import hull_distance
from nonneg.separable.select import select_anchors
from reproduction.artifacts import Artifact, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.registry import TITLES

NAME = "merit/identifiability"
NOISES = (None, 140, 120, 100, 80, 60, 40, 20)
"""Signal-to-noise ratios in dB; None is no noise."""
N_DRAWS, N_STEPS, T_INIT = 20, 40, 5
SIZE = {"n": 60, "n_features": 20, "n_anchors": 5}
# The unit of the data, in which the printed form of beta (2 delta inside the root) is compared too.
UNIT = 1e4
# Differences of entries that are rounding.
ROUNDING = 1e-9


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per noise level."""
    noises = (None, 100) if quick else NOISES
    return [SIZE | {"snr": snr, "n_draws": 2 if quick else N_DRAWS} for snr in noises]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Evaluate the theorems with the true W, H and noise of every draw."""
    return [{"draw": draw, **_one_draw(setting, draw)} for draw in range(setting["n_draws"])]


def _one_draw(setting: Setting, draw: int) -> dict[str, Any]:
    seed = [3, setting["n"], 0 if setting["snr"] is None else setting["snr"], draw]
    points = separable_dirichlet(
        setting["n"],
        setting["n_features"],
        setting["n_anchors"],
        snr=setting["snr"],
        rng=np.random.default_rng(seed),
    )
    return _theorem_3(points) | _theorem_4(points) | _proposition_1(points)


def model_of(points: SeparableData, unit: float = 1.0) -> dict[str, float]:
    """Return the quantities of the theorems, in the paper's letters."""
    squares = np.sum((points.X - points.W @ points.H) ** 2, axis=1) * unit**2
    singular = np.linalg.svd(points.H, compute_uv=False) * unit
    kappa = hull_distance(points.H * unit)
    assert kappa is not None
    noise, n = float(squares.sum()), len(points.X)
    return {
        "n": n,
        "k": len(points.H),
        "gamma": float(np.linalg.norm(points.H, axis=1).max()) * unit,
        "sigma_max": float(singular[0]),
        "kappa": kappa,
        "delta": float(np.sqrt(squares.max())),
        "noise": noise,
        "rho": n * float(squares.max()) / noise if noise > 0 else 1.0,
        "closeness": float(np.delete(points.W, points.anchors, axis=0).max()),
    }


def separating_bounds(
    model: dict[str, float], lam: float, mu: float, *, printed: bool
) -> tuple[float, float]:
    """Return the right sides of (20a) and (20b); `printed` puts 2 delta inside the root of beta."""
    n, k = model["n"], model["k"]
    square = 4.0 * model["rho"] * (1.0 - k / n) * model["noise"] + 2.0 * lam * k
    twice = 2.0 * model["delta"]
    fit = math.sqrt(square + twice) if printed else math.sqrt(square) + twice
    beta = fit / (model["kappa"] * (1.0 - model["closeness"]))
    upper = 2.0 * model["rho"] * (n - k) / (lam * n) * model["noise"] + mu * n * math.log(n) + beta * k
    return 1.0 - beta, upper


def _theorem_3(points: SeparableData) -> dict[str, Any]:
    """Compare the row maxima at the optimum with (20a) and (20b), at the weight that separates them best."""
    model, large = model_of(points), model_of(points, UNIT)
    square = float(np.sum(points.X**2))
    weights = np.geomspace(1e-12, 1e-1, 111) * square
    margins = [low - high for low, high in (separating_bounds(model, w, 0.0, printed=False) for w in weights)]
    lam = float(weights[int(np.argmax(margins))])
    found = select_anchors(
        points.X, len(points.H), method="merit-exact", method_params={"lam": lam}, tol=1e-7, max_iter=300
    )
    maxima = np.asarray(found.row_maxima)
    smallest = float(maxima[points.anchors].min())
    largest = float(np.delete(maxima, points.anchors).max())
    low, high = separating_bounds(model, lam, 0.0, printed=False)
    in_unit = separating_bounds(large, lam * UNIT**2, 0.0, printed=True)
    return {
        "lam": _short(lam),
        "separates": low > high,
        "lower": _short(low),
        "upper": _short(high),
        "anchors": _short(smallest),
        "others": _short(largest),
        "holds": bool(smallest > low - ROUNDING and largest <= high + ROUNDING),
        "printed lower": _short(separating_bounds(model, lam, 0.0, printed=True)[0]),
        "printed lower, large unit": _short(in_unit[0]),
    }


def noise_bound(model: dict[str, float], C: FloatArray, anchors: Any, lam: float, mu: float) -> float:
    """Return the right side of (22); minus infinity where there is none."""
    steps = [np.diff(np.unique(row)) for row in C[anchors]]
    steps = [step[step > ROUNDING] for step in steps]
    if not any(len(step) for step in steps):
        return -math.inf  # all rows are constant
    psi = min(float(step.min()) for step in steps if len(step))
    d = math.sqrt(max(2.0 * (model["closeness"] - 0.5) ** 2, 2.0 * (0.5 - 1.0 / model["k"]) ** 2) + 0.5)
    fit = (d * d + 2.0 * d + 5.0) * model["sigma_max"] ** 2 / 2.0
    v = 0.25 * (lam / model["n"] - lam * math.exp(-psi / mu) - fit)
    inside = model["gamma"] ** 2 + v
    return math.sqrt(inside) - model["gamma"] if inside >= 0 else -math.inf


def _iterates(points: SeparableData, lam: float, mu: float, n_steps: int) -> Any:
    """Yield C and the rows that its step enters, from the true mixtures of the anchors, as printed."""
    X, n = points.X, len(points.X)
    C = np.zeros((n, n))
    C[points.anchors] = points.W.T
    for t in range(T_INIT, T_INIT + n_steps):
        with np.errstate(under="ignore"):
            shares = np.exp((C - C.max(axis=1, keepdims=True)) / mu)
        gradient = X @ (C.T @ X - X).T + lam * shares / shares.sum(axis=1, keepdims=True)
        entering = np.argmin(gradient, axis=0)
        yield C, entering
        size = 2.0 / (t + 2)
        C = (1.0 - size) * C
        C[entering, np.arange(n)] += size


def _theorem_4(points: SeparableData) -> dict[str, Any]:
    """Follow steps with a weight for which (22) holds, and count those that leave K."""
    model, mu = model_of(points), 1e-5
    # Twice the weight at which v vanishes: lam / N then exceeds the other terms.
    d = math.sqrt(max(2.0 * (model["closeness"] - 0.5) ** 2, 2.0 * (0.5 - 1.0 / model["k"]) ** 2) + 0.5)
    lam = model["n"] * (d * d + 2.0 * d + 5.0) * model["sigma_max"] ** 2
    anchor = np.zeros(len(points.X), dtype=bool)
    anchor[points.anchors] = True
    applies = outside = 0
    for C, entering in _iterates(points, lam, mu, N_STEPS):
        inside = not C[~anchor].any()
        if not inside or model["delta"] > noise_bound(model, C, points.anchors, lam, mu):
            continue
        applies += 1
        outside += int(np.sum(~anchor[entering]))
    heuristic = math.sqrt(model["noise"]) / (2.0 * model["k"])
    ratio = _short(lam / heuristic) if heuristic > 0 else None
    return {"iterates": applies, "outside": outside, "weight ratio": ratio}


def _proposition_1(points: SeparableData) -> dict[str, Any]:
    """Compare the smallest difference of unequal entries with its bound, over the same iterates."""
    scaled = points.W.T * (T_INIT * (T_INIT + 1) / 2)
    xi = math.inf
    for row in scaled:
        apart = np.abs(row[:, None] - row[None, :])
        rest = np.abs(apart - np.round(apart))
        xi = min(xi, float(rest[rest > ROUNDING].min(initial=math.inf)))
    smallest, constant = math.inf, 0
    lam = math.sqrt(model_of(points)["noise"]) / (2.0 * len(points.H))
    for t, (C, _) in enumerate(_iterates(points, lam, 1e-5, N_STEPS)):
        if t == 0:
            continue
        last = T_INIT + t
        for row in C[points.anchors]:
            steps = np.diff(np.unique(row))
            # In units of the bound, 2 xi / (T (T + 1)).
            real = steps[steps > 1e-13] * last * (last + 1) / (2.0 * xi)
            constant += not len(real)
            smallest = min(smallest, float(real.min(initial=math.inf)))
    return {"xi": _short(xi), "difference": _short(smallest), "constant rows": constant}


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return one table per theorem, and the claims."""
    rows, steps = [], []
    by_noise = grouped(records, "snr")
    for (snr,), group in sorted(by_noise.items(), key=lambda item: -(item[0][0] or 1e9)):
        level = "no noise" if snr is None else snr
        rows.append(
            {
                "snr": level,
                "separates": f"{sum(one['separates'] for one in group)} of {len(group)}",
                "holds": f"{sum(one['holds'] for one in group)} of {len(group)}",
                **{name: float(np.median([one[name] for one in group])) for name in ("lower", "upper")},
                "anchors": min(one["anchors"] for one in group),
                "others": max(one["others"] for one in group),
                "printed": float(np.median([one["printed lower"] for one in group])),
                "large": float(np.median([one["printed lower, large unit"] for one in group])),
            }
        )
        steps.append(
            {
                "snr": level,
                "iterates": sum(one["iterates"] for one in group),
                "outside": sum(one["outside"] for one in group),
                "ratio": None if snr is None else min(one["weight ratio"] for one in group),
                "difference": min(one["difference"] for one in group),
                "constant": sum(one["constant rows"] for one in group),
            }
        )
    columns = {
        "snr": "SNR (dB)",
        "separates": "draws in which (20a) and (20b) separate",
        "holds": "draws in which both hold",
        "lower": "1 - beta, median",
        "upper": "bound (20b), median",
        "anchors": "smallest row maximum of an anchor",
        "others": "largest of another point",
        "printed": "1 - beta with 2 delta in the root",
        "large": f"the same for {UNIT:g} X",
    }
    step_columns = {
        "snr": "SNR (dB)",
        "iterates": "iterates to which Theorem 4 applies",
        "outside": "steps outside K from these",
        "ratio": "smallest weight over the heuristic one",
        "difference": "Proposition 1: smallest difference over its bound",
        "constant": "constant rows",
    }
    caption = "Theorem 3 at the optimum, at the weight for which its bounds are farthest apart."
    return [
        Table(caption, columns, rows, 3),
        Table("Theorem 4 and Proposition 1 over the iterates.", step_columns, steps, 3),
        *_verdicts(records),
    ]


def _verdicts(records: Sequence[Record]) -> list[Verdict]:
    whole = len(records) >= N_DRAWS * len(NOISES)
    wrong = sum(not one["holds"] for one in records)
    separated = [one for one in records if one["separates"]]
    applies, outside = (sum(one[name] for one in records) for name in ("iterates", "outside"))
    closest = min(one["difference"] for one in records)
    constant = sum(one["constant rows"] for one in records)
    return [
        Verdict(
            "Theorem 3: with 2 delta outside the root, (20a) and (20b) hold at every optimum",
            wrong == 0 if whole else None,
            f"{wrong} of {len(records)} draws are exceptions; the bounds separate in {len(separated)}",
        ),
        Verdict(
            "Theorem 4: from iterates to which it applies, no step leaves K",
            outside == 0 if whole and applies else None,
            f"{outside} steps from {applies} iterates",
        ),
        Verdict(
            "Proposition 1: no row of an anchor becomes constant, and unequal entries differ by its bound",
            constant == 0 and closest >= 1.0 - 1e-6 if whole else None,
            f"{constant} constant rows; the smallest difference is {closest:.3g} times the bound",
        ),
    ]


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize)
