"""Recovery bounds: what the theorems about successive projections, its averages and MERIT say at a result.

The theorems are about a true model X = H W + N. Here W are the vertices found, H the best mixtures of them,
and the noise is what these mixtures leave of the samples; every sentence says so. They are sufficient
conditions: where one is not met, the theorem says nothing, and the verdict is "not verifiable".

References: Gillis & Vavasis (2014), IEEE Trans. Pattern Anal. Mach. Intell. 36(4), Theorem 3. Bhattacharyya &
Kannan (2020), SODA. Nguyen, Fu & Wu, "Memory-efficient convex optimization for self-dictionary separable
NMF": Definitions 1 and 2, Lemma 1, Theorems 2 to 4, Proposition 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.leastsquares.simplex import simplex_least_squares
from nonneg.separable.result import SelectionResult
from nonneg.separable.weights import anchor_weights, squared_residuals

NAME = "recovery-bound"
# Entries of sparse samples up to which mixtures are subtracted from them: seconds.
MOST_ENTRIES = 1 << 30
# Distances from the hull need one least-squares problem per anchor: seconds up to this number.
MOST_ANCHORS = 256
# Points times anchors up to which the theorems of MERIT are evaluated by default: about a second.
RECOVERY_SIZE = 1_000_000
# A larger duality gap, relative to the objective, does not say where the minimum is.
INFORMATIVE_GAP = 0.1
ESTIMATED = "with W, H and V estimated from the anchors found"


@dataclass(frozen=True)
class Bound:
    """An error bound: up to what noise it holds, and the error per unit of noise."""

    limit: float
    factor: float
    sigma_min: float
    longest: float


def spa_bound(vertices: FloatArray) -> Bound:
    """Return the bound of successive projections for vertices in the rows."""
    # Gillis & Vavasis (2014), Theorem 3: eps < sigma min(1 / (2 sqrt(K - 1)), 1/4) / (1 + 80 R^2 / sigma^2)
    # gives an error of at most eps (1 + 80 R^2 / sigma^2), with R the largest norm of a vertex.
    k = len(vertices)
    values = np.linalg.svd(vertices, compute_uv=False)
    longest = float(np.linalg.norm(vertices, axis=1).max())
    sigma = float(values[-1]) if k <= vertices.shape[1] else 0.0
    if not sigma > 1e-12 * longest:
        return Bound(0.0, math.inf, sigma, longest)
    factor = 1.0 + 80.0 * (longest / sigma) ** 2
    return Bound(sigma * min(1.0 / (2.0 * math.sqrt(max(1, k - 1))), 0.25) / factor, factor, sigma, longest)


def bound_statement(found: SelectionResult, vertices: FloatArray, points: DataMatrix) -> Statement | None:
    """State the recovery bound of a greedy method; None where there is none."""
    n_samples, n_features = points.shape
    if found.n_components < 2:
        return None
    if found.method in ("smoothed-spa", "smoothed-vca") and "noise" in found.facts:
        return _averaged_noise(found, vertices, n_samples)
    if found.method != "spa" or (points.container == "sparse" and n_samples * n_features > MOST_ENTRIES):
        return None
    name = "successive projections (Gillis & Vavasis 2014, Theorem 3)"
    noise, bound = mixture_noise(points, vertices, sum_to_one=False), spa_bound(vertices)
    quantities = {
        "noise": noise, "noise_limit": bound.limit, "sigma_min": bound.sigma_min, "longest": bound.longest,
    }  # fmt: skip
    rests = "with the vertices found, and what mixtures of them leave of the samples as noise"
    error = noise * bound.factor
    if noise < bound.limit:
        sentence = (
            f"If every vertex has a sample, {name} finds all within {error:.4g} of the true ones, for noise "
            f"of norm up to {noise:.4g} per sample ({rests}); the limit is {bound.limit:.4g}."
        )
        return Statement(NAME, sentence, error, bound.longest, Verdict.HOLDS, quantities)
    sentence = (
        f"The guarantee of {name} is for noise of norm below {bound.limit:.4g} per sample, but {noise:.4g} "
        f"is left ({rests}): it says nothing here."
    )
    return Statement(NAME, sentence, None, bound.limit, Verdict.NOT_VERIFIABLE, quantities)


def mixture_noise(points: DataMatrix, vertices: FloatArray, *, sum_to_one: bool) -> float:
    """Return a bound on the distance of a sample from the mixtures of vertices, in one pass."""
    # The least-squares weights are moved into the simplex; any weights in it give a bound. Without
    # `sum_to_one` their sum is at most one.
    origin = vertices.mean(axis=0) if sum_to_one else np.zeros(vertices.shape[1])
    inverse = np.linalg.pinv(vertices - origin)
    _, (found,) = points.map_reduce_rows(
        _left_by_mixtures,
        n_out=0,
        origin=points.to_device(origin),
        inverse=points.to_device(inverse),
        vertices=points.to_device(vertices),
        sum_to_one=sum_to_one,
    )
    noise, longest = np.max(found, axis=0)
    # Each entry of a mixture is a sum of products.
    return float(noise) + 4.0 * len(vertices) * float(np.finfo(np.float64).eps) * float(longest)


def _left_by_mixtures(
    block: LocalMatrix, *, origin: Array, inverse: Array, vertices: Array, sum_to_one: bool
) -> tuple[tuple[()], tuple[list[Any]]]:
    xp, found = block.xp, [(0.0, 0.0)]
    origin, inverse, vertices = (xp.astype(each, xp.float64) for each in (origin, inverse, vertices))
    equal = 1.0 / vertices.shape[0] if sum_to_one else 0.0
    for start, stop in block.row_blocks(1 << 20):
        rows = xp.astype(block.dense_rows(start, stop), xp.float64)
        weights = (rows - origin) @ inverse + equal
        weights = xp.where(weights > 0, weights, xp.zeros_like(weights))
        sums = xp.sum(weights, axis=1)[:, None]
        if sum_to_one:  # all are zero where a sample is so far off that its weights are rounding
            weights = xp.where(sums > 0, weights, xp.full_like(weights, equal))
        sums = xp.where(sums > (0 if sum_to_one else 1), sums, xp.ones_like(sums))
        left = rows - weights / sums @ vertices
        squares = [xp.max(xp.sum(each * each, axis=1)) for each in (left, rows)]
        found.append((math.sqrt(float(squares[0])), math.sqrt(float(squares[1]))))
    return (), ([tuple(np.max(found, axis=0).tolist())],)


def _averaged_noise(found: SelectionResult, vertices: FloatArray, n_samples: int) -> Statement:
    # The mean of the rows of N in a set of p has a norm of at most ||N||_2 / sqrt(p): the lemma behind subset
    # smoothing (Bhattacharyya & Kannan 2020). ||N||_2 is that of normal noise.
    noise, p = float(found.facts["noise"]), int(found.facts["n_members"])
    largest = noise * (math.sqrt(n_samples) + math.sqrt(vertices.shape[1]))
    size = float(np.linalg.norm(vertices - vertices.mean(axis=0), axis=1).max())
    number = largest / math.sqrt(p)
    sentence = (
        f"Every vertex is an average of {p} samples, in which no noise of spectral norm {largest:.4g} "
        f"(estimated outside the span of the vertices) exceeds {number:.4g}; the vertices are up to "
        f"{size:.4g} from their mean. The published guarantee (SVCA; none for SSPA) requires noise smaller "
        f"by a power of the number of vertices and is not evaluated."
    )
    quantities = {"noise": noise, "n_members": p, "size": size}
    return Statement(NAME, sentence, number, size, Verdict.NOT_VERIFIABLE, quantities)


def isolated_statement(rows: IntArray) -> Statement:
    """State which samples were set aside because they are far from all others."""
    if not len(rows):
        sentence = "No extreme sample is isolated from all others."
        return Statement("isolated-samples", sentence, 0.0, 0.0, Verdict.HOLDS)
    named = ", ".join(str(row) for row in rows[:5]) + (", ..." if len(rows) > 5 else "")
    sentence = (
        f"{len(rows)} samples far from all others were set aside ({named}): corrupt, or of a component that "
        f"occurs in one or two samples."
    )
    return Statement("isolated-samples", sentence, float(len(rows)), 0.0, Verdict.FAILS)


@dataclass(frozen=True)
class Model:
    """Quantities of the model X = W H + V that belongs to the anchors, in the paper's letters."""

    n_points: int  # N and K
    k: int
    lam: float  # weight and smoothing of the row sparsity
    mu: float
    gamma: float  # the largest norm of an anchor
    sigma_max: float  # the extreme singular values of W
    sigma_min: float
    kappa: float | None  # the smallest distance of an anchor from the hull of the others
    delta: float  # the largest norm of a noise vector
    noise: float  # the squared Frobenius norm of V
    closeness: float  # d(H): the largest weight of an anchor in another point
    omega: float  # the largest ||H c - h|| over the columns c of C
    nu: float  # the smallest gap in (16), at the coefficients returned
    # The smallest difference of two unequal entries in a row of an anchor; None if all rows are constant.
    psi: float | None
    inside: bool  # whether all entries of C lie in rows of anchors
    largest_residual: float  # the largest ||x - X c||


def merit_statements(
    data: DataMatrix,
    anchors: IntArray,
    *,
    coefficients: Any,
    weight: tuple[float, float],
    objective: float,
    gap: float,
    largest_residual: float,
    initial: tuple[Any, int] | None,
    n_iter: int,
    recovery: bool | None,
) -> list[Statement]:
    """Return the statements about the coefficients of MERIT as published and the anchors."""
    if not len(anchors):
        return [duality_gap_statement(objective, gap)]
    W = to_float64(data.take_rows(anchors)).astype(np.float64)
    kappa, longest = hull_distance(W), float(np.linalg.norm(W, axis=1).max())
    share, n_outside = support_outside(coefficients, anchors)
    statements = [
        duality_gap_statement(objective, gap),
        conditioning_statement(kappa, longest),
        support_statement(share, n_outside),
        warm_start_statement(initial, anchors, n_iter),
    ]
    wanted = data.shape[0] * len(anchors) <= RECOVERY_SIZE if recovery is None else recovery
    if not wanted:
        return statements
    H = to_float64(anchor_weights(data, W, sum_to_one=True)).astype(np.float64)
    squares = squared_residuals(data, W)
    others = np.ones(len(H), dtype=bool)
    others[anchors] = False
    error = coefficients.T.tocsr() @ H - H
    lengths = np.linalg.norm(error, axis=1)
    singular = np.linalg.svd(W, compute_uv=False)
    model = Model(
        n_points=len(H),
        k=len(anchors),
        lam=weight[0],
        mu=weight[1],
        gamma=longest,
        sigma_max=float(singular[0]),
        sigma_min=float(singular[-1]) if len(singular) == len(anchors) else 0.0,
        kappa=kappa,
        delta=float(np.sqrt(squares.max())),
        noise=float(squares.sum()),
        closeness=min(1.0, float(H[others].max(initial=0.0))),
        omega=float(lengths.max()),
        nu=_second_gap(error, lengths, W),
        psi=_smallest_difference(coefficients, anchors),
        inside=n_outside == 0,
        largest_residual=largest_residual,
    )
    theorems = (lemma_1_statement, theorem_2_statement, theorem_3_statement, theorem_4_statement)
    return statements + [state_of(model) for state_of in theorems]


def support_outside(coefficients: Any, anchors: IntArray) -> tuple[float, int]:
    """Return the share of the weight that is on anchors, and how many other samples have weight."""
    weight = np.asarray(coefficients.sum(axis=1), dtype=np.float64).reshape(-1)
    used = np.asarray((coefficients != 0).sum(axis=1)).reshape(-1) > 0
    whole, inside = float(weight.sum()), float(weight[anchors].sum())
    used[anchors] = False
    return inside / whole if whole else 0.0, int(used.sum())


def _second_gap(error: FloatArray, lengths: FloatArray, W: FloatArray) -> float:
    moving = lengths > 0
    if len(W) < 2 or not moving.any():
        return 0.0
    slopes = (error[moving] / lengths[moving, None]) @ (W @ W.T)
    two = np.partition(slopes, 1, axis=1)
    return float((two[:, 1] - two[:, 0]).min())


def _smallest_difference(coefficients: Any, anchors: IntArray) -> float | None:
    rows, n = coefficients.tocsr(), coefficients.shape[0]
    smallest = None
    for anchor in anchors:
        values = np.unique(_row_values(rows, anchor, n))
        if len(values) > 1:
            step = float(np.diff(values).min())
            smallest = step if smallest is None else min(smallest, step)
    return smallest


def duality_gap_statement(objective: float, gap: float) -> Statement:
    """State that the objective is within the duality gap of its minimum."""
    if math.isnan(gap):
        return Statement(
            "duality-gap", "The duality gap was not measured.", None, None, Verdict.NOT_VERIFIABLE
        )
    # No share of an objective of zero: the gap is then the whole statement.
    share = gap / objective if objective > 0 else None
    part = f" ({100 * share:.3g}% of it)" if share is not None else ""
    sentence = f"The objective, {objective:.6g}, is at most {max(gap, 0.0):.4g}{part} above its minimum."
    verdict = Verdict.HOLDS
    if share is not None and share > INFORMATIVE_GAP:
        sentence += f" A gap of more than {INFORMATIVE_GAP:.0%} does not tell whether the minimum is near."
        verdict = Verdict.NOT_VERIFIABLE
    quantities = {"objective": objective, "lower_bound": objective - gap}
    if share is not None:
        quantities["relative_gap"] = share
    return Statement("duality-gap", sentence, gap, None, verdict, quantities)


def hull_distance(anchors: Any) -> float | None:
    """Return the smallest distance of a point from the hull of the others, (19) of the paper, or less."""
    W = np.asarray(anchors, dtype=np.float64)
    k = len(W)
    if k == 1:
        return float(np.linalg.norm(W[0]))
    if k > MOST_ANCHORS:
        return None
    shifted = W - W.mean(axis=0)
    gram = shifted @ shifted.T
    nearest = math.inf
    for i in range(k):
        others = np.delete(np.arange(k), i)
        weights = simplex_least_squares(gram[np.ix_(others, others)], gram[None, i, others])
        away = shifted[i] - weights[0] @ shifted[others]
        # Weights from a Gram matrix have half the digits, and any weights overestimate the distance. The
        # hyperplane across the difference separates the point from the others by no more than the distance.
        length = float(np.linalg.norm(away))
        apart = float(np.min((shifted[i] - shifted[others]) @ away)) / length if length > 0 else 0.0
        nearest = min(nearest, max(apart, 0.0))
    return nearest


def conditioning_statement(kappa: float | None, longest: float) -> Statement:
    """State how far every anchor is from the convex hull of the others."""
    if kappa is None:
        sentence = (
            f"Distances of anchors from the hull of the others are computed for up to {MOST_ANCHORS} anchors."
        )
        return Statement("conditioning", sentence, None, None, Verdict.NOT_VERIFIABLE)
    threshold = 1e-10 * longest  # rounding in the Gram matrix
    sentence = (
        f"Every anchor is at least {kappa:.4g} away from the convex hull of the others (kappa(W)); the "
        f"largest norm of an anchor is {longest:.4g}."
    )
    verdict = Verdict.HOLDS if kappa > threshold else Verdict.FAILS
    return Statement("conditioning", sentence, kappa, threshold, verdict, {"longest_anchor": longest})


def support_statement(share: float, n_outside: int) -> Statement:
    """State whether all samples are mixtures of the anchors alone."""
    sentence = (
        "All samples are mixtures of the anchors alone."
        if n_outside == 0
        else f"{100 * share:.4g}% of the weight is on anchors; {n_outside} other samples also have weight, "
        "as they do under noise."
    )
    verdict = Verdict.HOLDS if n_outside == 0 else Verdict.NOT_VERIFIABLE
    return Statement("support", sentence, share, 1.0, verdict, {"points_outside": n_outside})


def warm_start_statement(initial: tuple[Any, int] | None, anchors: IntArray, n_steps: int) -> Statement:
    """State whether the warm start satisfies (23) of Proposition 1."""
    # Some row of an anchor must have two entries whose difference, times t (t + 1) / 2, is not an integer.
    if initial is None:
        sentence = "The run started from zero; Proposition 1 is about warm starts."
        return Statement("warm-start", sentence, None, None, Verdict.NOT_VERIFIABLE)
    C, t = initial
    rows, scale, n = C.tocsr(), t * (t + 1) / 2, C.shape[0]
    gaps = {int(anchor): _closest_fractions(_row_values(rows, anchor, n) * scale) for anchor in anchors}
    gaps = {anchor: gap for anchor, gap in gaps.items() if gap is not None}
    if not gaps:
        sentence = (
            "All differences within the rows of the anchors are integers after scaling: the warm start "
            "does not satisfy (23) of Proposition 1."
        )
        return Statement("warm-start", sentence, None, None, Verdict.FAILS, {"t_init": t})
    last, row, xi = t + n_steps, min(gaps), min(gap for gap in gaps.values() if gap is not None)
    spread = 2.0 * xi / (last * (last + 1.0))
    sentence = (
        f"The warm start satisfies (23) of Proposition 1 in row {row} (among the anchors found): unequal "
        f"entries in the rows of the anchors differ by at least {spread:.3g} up to iteration {last}."
    )
    quantities = {"t_init": t, "row": row, "xi": xi}
    return Statement("warm-start", sentence, spread, 0.0, Verdict.HOLDS, quantities)


def _row_values(rows: Any, row: int, n: int) -> FloatArray:
    values: FloatArray = rows.data[rows.indptr[row] : rows.indptr[row + 1]]
    return values if len(values) == n else np.append(values, 0.0)


def _closest_fractions(values: FloatArray) -> float | None:
    # Two values differ by an integer just where their fractional parts are equal, on a circle.
    fractions = np.sort(values - np.floor(values))
    steps = np.diff(np.append(fractions, fractions[:1] + 1.0))
    steps = steps[steps > 1e-9]
    # One step all the way around means that all fractional parts are equal.
    return float(steps.min()) if len(steps) > 1 else None


def lemma_1_statement(model: Model) -> Statement:
    """State whether Lemma 1 applies: then the row maxima identify the anchors."""
    limit = 2.0 / math.sqrt(model.k)
    holds = model.inside and model.omega < limit
    support = "is contained in" if model.inside else "extends beyond"
    sentence = (
        f"Lemma 1, {ESTIMATED}: the support of C {support} the anchors, and omega = {model.omega:.4g} is "
        f"{'below' if model.omega < limit else 'not below'} 2/sqrt(K) = {limit:.4g}{_scope(holds)}."
    )
    quantities = {"omega": model.omega, "support_inside": model.inside, "k": model.k}
    return Statement("lemma-1", sentence, model.omega, limit, _verdict(holds), quantities)


def theorem_2_statement(model: Model) -> Statement:
    """State whether the noise bound (17) of Theorem 2 can hold; it is about lam = 0."""
    eta = max(model.largest_residual - 2.0 * model.delta, 0.0)
    room = model.nu * eta * (1.0 - model.closeness) / (4.0 * model.sigma_max) if model.sigma_max > 0 else 0.0
    limit = math.sqrt(model.gamma**2 + room) - model.gamma
    error = (eta + 4.0 * model.delta) / model.sigma_min if model.sigma_min > 0 else math.inf
    quantities = {
        "delta": model.delta, "nu": model.nu, "eta": eta, "gamma": model.gamma,
        "sigma_max": model.sigma_max, "sigma_min": model.sigma_min, "closeness": model.closeness,
        "mixture_error_bound": error,
    }  # fmt: skip
    begin = f"Theorem 2, {ESTIMATED}: delta = {model.delta:.4g} against a bound (17) of {limit:.4g}"
    if model.lam != 0:
        sentence = f"{begin}; it is about lam = 0, and lam is {model.lam:.4g}."
        return Statement("theorem-2", sentence, model.delta, limit, Verdict.NOT_VERIFIABLE, quantities)
    if model.delta > limit:
        sentence = f"{begin} with the nu of the last iterate, which is violated{_scope(False)}."
        return Statement("theorem-2", sentence, model.delta, limit, Verdict.NOT_VERIFIABLE, quantities)
    sentence = f"{begin} with the nu of the last iterate; the nu of all iterates is not known."
    return Statement("theorem-2", sentence, model.delta, limit, Verdict.NOT_VERIFIABLE, quantities)


def theorem_3_statement(model: Model) -> Statement:
    """State whether (20a) and (20b) of Theorem 3 separate the anchors from the others at the optimum."""
    if model.kappa is None:
        sentence = "Theorem 3 needs kappa(W), which was not computed."
        return Statement("theorem-3", sentence, None, None, Verdict.NOT_VERIFIABLE)
    n, k = model.n_points, model.k
    rho = n * model.delta**2 / model.noise if model.noise > 0 else 1.0
    reach = model.kappa * (1.0 - model.closeness)
    fit = math.sqrt(4.0 * rho * (1.0 - k / n) * model.noise + 2.0 * model.lam * k) + 2.0 * model.delta
    beta = fit / reach if reach > 0 else (math.inf if fit > 0 else 0.0)
    noise = 2.0 * rho * (n - k) / n * model.noise
    upper = (noise / model.lam if model.lam > 0 else math.inf) + model.mu * n * math.log(n) + beta * k
    margin = (1.0 - beta) - upper
    sentence = (
        f"Theorem 3, {ESTIMATED}: at the optimum the row maxima of anchors are above {1.0 - beta:.4g}, those "
        f"of other samples at most {upper:.4g}{_scope(margin > 0)}."
    )
    quantities = {
        "beta": beta, "rho": rho, "kappa": model.kappa, "closeness": model.closeness, "delta": model.delta,
        "squared_noise": model.noise, "lam": model.lam, "mu": model.mu,
    }  # fmt: skip
    return Statement("theorem-3", sentence, margin, 0.0, _verdict(margin > 0), quantities)


def theorem_4_statement(model: Model) -> Statement:
    """State whether the noise bound (22) of Theorem 4 holds at the coefficients returned."""
    k = model.k
    spread = math.exp(-model.psi / model.mu) if model.psi is not None else 1.0
    d = math.sqrt(max(2.0 * (model.closeness - 0.5) ** 2, 2.0 * (0.5 - 1.0 / k) ** 2) + 0.5)
    v = 0.25 * (
        model.lam / model.n_points - model.lam * spread - (d * d + 2.0 * d + 5.0) * model.sigma_max**2 / 2.0
    )
    inside = model.gamma**2 + v
    limit = math.sqrt(inside) - model.gamma if inside >= 0 else -model.gamma
    holds = model.inside and model.psi is not None and inside >= 0 and model.delta <= limit
    sentence = (
        f"Theorem 4, {ESTIMATED}: delta = {model.delta:.4g} against a bound (22) of {limit:.4g}; the support "
        f"{'is contained in' if model.inside else 'extends beyond'} the anchors{_scope(holds)}."
    )
    quantities = {
        "delta": model.delta, "gamma": model.gamma, "v": v, "d_prime": d, "sigma_max": model.sigma_max,
        "psi": model.psi, "lam": model.lam, "mu": model.mu, "support_inside": model.inside,
    }  # fmt: skip
    return Statement("theorem-4", sentence, model.delta, limit, _verdict(holds), quantities)


def _verdict(holds: bool) -> Verdict:
    return Verdict.HOLDS if holds else Verdict.NOT_VERIFIABLE


def _scope(holds: bool) -> str:
    return "" if holds else "; it does not apply, and says nothing about the anchors"
