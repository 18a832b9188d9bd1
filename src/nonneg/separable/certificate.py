"""Certificate of anchors: what is known about them, and what the theorems about their methods say.

The theorems are about a true model X = H W + N. Here W are the vertices found, H the best mixtures of them,
and the noise is what these mixtures leave of the samples; every sentence says so. They are sufficient
conditions: where one is not met, the theorem says nothing, and the verdict is "not verifiable".

References: Gillis & Vavasis (2014), IEEE Trans. Pattern Anal. Mach. Intell. 36(4), Theorem 3. Bhattacharyya &
Kannan (2020), SODA. Nguyen, Fu & Wu, "Memory-efficient convex optimization for self-dictionary separable
NMF": Definitions 1 and 2, Lemma 1, Theorem 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.certificates.bounds import lower, upper
from nonneg.certificates.certificate import Statement, Verdict, verdict_of
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.leastsquares.simplex import simplex_least_squares
from nonneg.separable.result import SelectionResult
from nonneg.separable.weights import anchor_weights, squared_residuals, vertices_of

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


def with_statements(result: SelectionResult, points: DataMatrix) -> SelectionResult:
    """Add the statements that the method itself has not made."""
    more: list[Statement] = []
    if result.row_maxima is not None:
        more.append(margin_statement(result.row_maxima, result.anchors))
    elif result.best_left is not None and result.scores is not None and len(result.scores):
        more.append(residual_statement(float(result.scores[0]), float(result.scores[-1]), result.best_left))
    vertices = to_float64(vertices_of(points, result))
    if "conditioning" not in result.certificate:
        more.append(conditioning_statement(vertices))
    bound = bound_statement(result, vertices, points)
    if bound is not None:
        more.append(bound)
    return replace(result, certificate=result.certificate.with_statements(more)) if more else result


def margin_statement(row_maxima: Any, anchors: IntArray) -> Statement:
    """State by how much the anchors stand out: the K-th largest row maximum minus the next."""
    maxima = np.asarray(row_maxima)
    last = float(maxima[anchors].min())
    after = float(np.delete(maxima, anchors).max(initial=0.0))
    sentence = (
        f"The smallest row maximum of an anchor is {last:.4g}, the largest of another sample {after:.4g}: a "
        f"margin of {last - after:.4g}."
    )
    verdict = verdict_of(last > after)
    return Statement("anchor-margin", sentence, last - after, 0.0, verdict, {"last": last, "next": after})


def residual_statement(first: float, last: float, residual: float) -> Statement:
    """State the largest residual that the anchors of a greedy method leave."""
    share = residual / first if first > 0 else 0.0
    sentence = (
        f"The anchors leave a residual of up to {upper(residual)} in a sample, {share:.3g} times the largest "
        f"before the first anchor; that of the last anchor was {last:.4g} when it was selected."
    )
    # Noise and a missing anchor leave residuals alike.
    verdict = verdict_of(share <= 1e-6, Verdict.NOT_VERIFIABLE)
    quantities = {"first_score": first, "last_score": last, "left": residual}
    return Statement("largest-residual", sentence, share, 1e-6, verdict, quantities)


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


def bound_statement(result: SelectionResult, vertices: FloatArray, points: DataMatrix) -> Statement | None:
    """State the recovery bound of a greedy method; None where there is none."""
    n_samples, n_features = points.shape
    if result.n_components < 2:
        return None
    if result.method == "smoothed-spa" and "noise" in result.details:
        return _averaged_noise(result, vertices, n_samples)
    if result.method != "spa" or (points.container == "sparse" and n_samples * n_features > MOST_ENTRIES):
        return None
    name = "successive projections (Gillis & Vavasis 2014, Theorem 3)"
    noise, bound = mixture_noise(points, vertices), spa_bound(vertices)
    quantities = {
        "noise": noise, "noise_limit": bound.limit, "sigma_min": bound.sigma_min, "longest": bound.longest,
    }  # fmt: skip
    rests = "with the vertices found, and what mixtures of them leave of the samples as noise"
    error = noise * bound.factor
    if noise < bound.limit:
        sentence = (
            f"If every vertex has a sample, {name} finds all within {upper(error)} of the true ones, for "
            f"noise of norm up to {lower(noise)} per sample ({rests}); the limit is {lower(bound.limit)}."
        )
        return Statement(NAME, sentence, error, bound.longest, Verdict.HOLDS, quantities)
    sentence = (
        f"The guarantee of {name} is for noise of norm below {lower(bound.limit)} per sample, but "
        f"{noise:.4g} is left ({rests}): it says nothing here."
    )
    return Statement(NAME, sentence, None, bound.limit, Verdict.NOT_VERIFIABLE, quantities)


def mixture_noise(points: DataMatrix, vertices: FloatArray) -> float:
    """Return a bound on the distance of a sample from mixtures with weights of at most one, in one pass."""
    # The least-squares weights are moved into the set of nonnegative weights whose sum is at most one; any
    # weights in it give a bound.
    parts = points.reduce_rows(
        _left_by_mixtures,
        inverse=points.to_device(np.linalg.pinv(vertices)),
        vertices=points.to_device(vertices),
    )
    noise, longest = np.max(parts, axis=0)
    # Each entry of a mixture is a sum of products.
    return float(noise) + 4.0 * len(vertices) * float(np.finfo(np.float64).eps) * float(longest)


def _left_by_mixtures(block: LocalMatrix, *, inverse: Array, vertices: Array) -> list[Any]:
    xp, parts = block.xp, [(0.0, 0.0)]
    inverse, vertices = xp.astype(inverse, xp.float64), xp.astype(vertices, xp.float64)
    for start, stop in block.row_blocks(1 << 20):
        rows = xp.astype(block.dense_rows(start, stop), xp.float64)
        weights = xp.clip(rows @ inverse, 0.0, None)
        sums = xp.clip(xp.sum(weights, axis=1), 1.0, None)[:, None]
        residuals = rows - weights / sums @ vertices
        squares = [xp.max(xp.sum(part * part, axis=1)) for part in (residuals, rows)]
        parts.append((math.sqrt(float(squares[0])), math.sqrt(float(squares[1]))))
    return [tuple(np.max(parts, axis=0).tolist())]


def _averaged_noise(result: SelectionResult, vertices: FloatArray, n_samples: int) -> Statement:
    # The mean of the rows of N in a set of p has a norm of at most ||N||_2 / sqrt(p): the lemma behind subset
    # smoothing (Bhattacharyya & Kannan 2020). ||N||_2 is that of normal noise.
    noise, p = float(result.details["noise"]), int(result.details["n_members"])
    largest = noise * (math.sqrt(n_samples) + math.sqrt(vertices.shape[1]))
    size = float(np.linalg.norm(vertices - vertices.mean(axis=0), axis=1).max())
    number = largest / math.sqrt(p)
    sentence = (
        f"Every vertex is an average of {p} sample{'s' * (p > 1)}, in which no noise of spectral norm "
        f"{largest:.4g} (estimated outside the span of the vertices) exceeds {upper(number)}; the vertices "
        f"are up to {upper(size)} from their mean. No recovery guarantee of smoothed SPA is published."
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
    kappa: float | None  # the smallest distance of an anchor from the hull of the others
    delta: float  # the largest norm of a noise vector
    noise: float  # the squared Frobenius norm of V
    closeness: float  # d(H): the largest weight of an anchor in another point
    omega: float  # the largest ||H c - h|| over the columns c of C
    inside: bool  # whether all entries of C lie in rows of anchors


def merit_statements(
    data: DataMatrix,
    anchors: IntArray,
    *,
    coefficients: Any,
    weight: tuple[float, float],
    objective: float,
    gap: float,
    recovery: bool | None,
) -> list[Statement]:
    """Return the statements about the coefficients of MERIT as published and the anchors."""
    if not len(anchors):
        return [duality_gap_statement(objective, gap)]
    W = to_float64(data.take_rows(anchors)).astype(np.float64)
    conditioning = conditioning_statement(W)
    support = support_statement(coefficients, anchors)
    statements = [duality_gap_statement(objective, gap), conditioning, support]
    if not (data.shape[0] * len(anchors) <= RECOVERY_SIZE if recovery is None else recovery):
        return statements
    H = to_float64(anchor_weights(data, W, sum_to_one=True)).astype(np.float64)
    squares = squared_residuals(data, W)
    model = Model(
        n_points=len(H),
        k=len(anchors),
        lam=weight[0],
        mu=weight[1],
        kappa=conditioning.number,
        delta=float(np.sqrt(squares.max())),
        noise=float(squares.sum()),
        closeness=min(1.0, float(np.delete(H, anchors, axis=0).max(initial=0.0))),
        omega=float(np.linalg.norm(coefficients.T.tocsr() @ H - H, axis=1).max()),
        inside=support.verdict is Verdict.HOLDS,
    )
    return [*statements, lemma_1_statement(model), theorem_3_statement(model)]


def duality_gap_statement(objective: float, gap: float) -> Statement:
    """State that the objective is within the duality gap of its minimum."""
    if math.isnan(gap):
        return Statement(
            "duality-gap", "The duality gap was not measured.", None, None, Verdict.NOT_VERIFIABLE
        )
    # No share of an objective of zero: the gap is then the whole statement.
    share = gap / objective if objective > 0 else None
    part = f" ({upper(100 * share, 3)}% of it)" if share is not None else ""
    sentence = f"The objective, {objective:.6g}, is at most {upper(max(gap, 0.0))}{part} above its minimum."
    verdict = Verdict.HOLDS
    if share is not None and share > INFORMATIVE_GAP:
        sentence = (
            f"It is not known whether other anchors are better: the objective, {objective:.6g}, may be up to "
            f"{upper(gap)} above its minimum, and only a gap of at most {INFORMATIVE_GAP:.0%} counts as near."
        )
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


def conditioning_statement(vertices: FloatArray) -> Statement:
    """State how far every anchor is from the convex hull of the others."""
    kappa, longest = hull_distance(vertices), float(np.linalg.norm(vertices, axis=1).max())
    if kappa is None:
        sentence = (
            f"Distances of anchors from the hull of the others are computed for up to {MOST_ANCHORS} anchors."
        )
        return Statement("conditioning", sentence, None, None, Verdict.NOT_VERIFIABLE)
    threshold = 1e-10 * longest  # rounding in the Gram matrix
    verdict = verdict_of(kappa > threshold)
    sentence = (
        f"{'No' if kappa > threshold else 'An'} anchor is a mixture of the others: the smallest distance "
        f"from their convex hull is at least {lower(kappa)} (kappa(W)), the largest norm {longest:.4g}."
    )
    return Statement("conditioning", sentence, kappa, threshold, verdict, {"longest_anchor": longest})


def support_statement(coefficients: Any, anchors: IntArray) -> Statement:
    """State whether the coefficients of all samples use the anchors alone."""
    weight = np.asarray(coefficients.sum(axis=1), dtype=np.float64).reshape(-1)
    used = np.asarray((coefficients != 0).sum(axis=1)).reshape(-1) > 0
    used[anchors] = False
    whole, n_outside = float(weight.sum()), int(used.sum())
    share = float(weight[anchors].sum()) / whole if whole else 0.0
    sentence = (
        "All weight is on the anchors: no sample is explained by another one."
        if n_outside == 0
        else f"{100 * share:.4g}% of the weight is on anchors; {n_outside} other samples also have weight, "
        "as they do under noise."
    )
    verdict = verdict_of(n_outside == 0, Verdict.NOT_VERIFIABLE)
    return Statement("support", sentence, share, 1.0, verdict, {"points_outside": n_outside})


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
    return Statement(
        "lemma-1", sentence, model.omega, limit, verdict_of(holds, Verdict.NOT_VERIFIABLE), quantities
    )


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
    most = (noise / model.lam if model.lam > 0 else math.inf) + model.mu * n * math.log(n) + beta * k
    margin = (1.0 - beta) - most
    sentence = (
        f"Theorem 3, {ESTIMATED}: at the optimum the row maxima of anchors are above {lower(1.0 - beta)}, "
        f"those of other samples at most {upper(most)}{_scope(margin > 0)}."
    )
    quantities = {
        "beta": beta, "rho": rho, "kappa": model.kappa, "closeness": model.closeness, "delta": model.delta,
        "squared_noise": model.noise, "lam": model.lam, "mu": model.mu,
    }  # fmt: skip
    return Statement(
        "theorem-3", sentence, margin, 0.0, verdict_of(margin > 0, Verdict.NOT_VERIFIABLE), quantities
    )


def _scope(holds: bool) -> str:
    return "" if holds else "; it does not apply, and says nothing about the anchors"
