"""Error bars of the factors: parametric bootstrap, and displacement as far as noise explains."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import chi2
from sklearn.utils.validation import check_is_fitted

from nonneg._arguments import checked_count, is_number
from nonneg._arrays import to_float64
from nonneg._random import Seed, generator
from nonneg._threads import threads
from nonneg._typing import FloatArray
from nonneg.data.dense import DenseMatrix
from nonneg.data.observed import ArrayObserved, Observed
from nonneg.estimators._base import input_data
from nonneg.estimators.nmf import NMF, penalties_of
from nonneg.exceptions import InvalidParameterError, UnknownNameError, UnsupportedError
from nonneg.kernels.hals import hals_passes
from nonneg.losses.penalties import Penalties
from nonneg.solvers.encoding import encode
from nonneg.solvers.hals import hals
from nonneg.solvers.registry import beta_of

# Fits of resamples begin at the estimate, and end at the tolerance.
MAX_ITER, TOL = 500, 1e-7
# A component was found again if its coefficients correlate so much with those of the estimate (the default of
# EPA PMF 5.0's bootstrap).
FOUND = 0.6
# Displacement: iterations per fit and steps of the search; ends within a tenth of the allowed increase.
FIT_ITER, FIT_SMALL, STEPS, NEAR = 2000, 1e-4, 12, 0.1
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class ErrorEstimate:
    """Intervals for the factors of a fit.

    Attributes
    ----------
    method : {"bootstrap", "displacement"}
        How they were computed.
    level : float
        The nominal coverage of each interval.
    H, W : array
        The factors that they belong to: `components_` of the model, and what `transform` returns.
    H_low, H_high : array of shape (n_components, n_features)
        The ends of the intervals of H, if the mean of every column of W is that of `W`.
    W_low, W_high : array of shape (n_samples, n_components) or None
        The ends of the intervals of W; None for displacement.
    recurrence : array of shape (n_components,) or None
        The share of resamples in which a component was found again: its coefficients correlate by at least
        0.6 with those of the estimate. Intervals are from these resamples. None for displacement.
    """

    method: str
    level: float
    H: FloatArray
    W: FloatArray
    H_low: FloatArray
    H_high: FloatArray
    W_low: FloatArray | None = None
    W_high: FloatArray | None = None
    recurrence: FloatArray | None = None


def estimate_errors(
    model: NMF,
    X: Any,
    *,
    uncertainty: Any = None,
    entry_weight: Any = None,
    mask: Any = None,
    method: str = "bootstrap",
    n_resamples: int = 200,
    level: float = 0.9,
    rng: Seed = None,
    n_jobs: int | None = None,
) -> ErrorEstimate:
    r"""Estimate how far the factors of a fit may be from those without noise.

    Parameters
    ----------
    model : NMF
        A fitted model of the Frobenius loss, without `robust` and `scale`.
    X : array of shape (n_samples, n_features)
        The data that it was fitted to, dense and in memory.
    uncertainty, entry_weight, mask : array of shape (n_samples, n_features), optional
        Those passed to `fit`. Weights are taken for the inverse squares of standard deviations. Without both,
        one standard deviation for all entries is estimated from the residuals.
    method : {"bootstrap", "displacement"}, default "bootstrap"
        "bootstrap" fits resamples W H + noise from the estimate (parametric bootstrap, basic intervals, with
        the upper quantile itself where zero cuts off the lower one).
        "displacement" moves each entry of H until the fit of all others is worse by what noise explains at
        this level, as DISP of positive matrix factorization does: likelihood intervals.
    n_resamples : int, default 200
        Number of resamples of the bootstrap.
    level : float, default 0.9
        Nominal coverage of each interval, in (0, 1).
    rng : None, int, Generator, RandomState or SeedSequence
        Random numbers of the bootstrap.
    n_jobs : int, optional
        Number of threads; all cores by default.

    Returns
    -------
    ErrorEstimate
        The intervals.

    Notes
    -----
    A column of W times a number and the row of H divided by it are the same model. Intervals are for factors
    whose columns of W keep their means, so that those of H are for the mean contribution of a component to
    each feature. They hold for noise of the given size around a model of this rank. Where rotations fit
    equally well, as when a component is nonzero only where another one is, the bootstrap stays near the
    estimate; displacement follows them. It takes about 20 fits per entry of H.

    References
    ----------
    .. [1] Davison & Hinkley (1997), Bootstrap Methods and their Application, Section 5.2 (basic intervals).
    .. [2] Paatero, Eberly, Brown & Norris (2014), Atmospheric Measurement Techniques 7, 781-797 (DISP).

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg import NMF, estimate_errors
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(40, 2)) @ np.array([[1.0, 0, 2, 0, 1], [0, 3, 0, 1, 1]])
    >>> X = X + 0.1 * rng.normal(size=X.shape)
    >>> model = NMF(2, negative="keep", random_state=0).fit(X, uncertainty=np.full(X.shape, 0.1))
    >>> errors = estimate_errors(model, X, uncertainty=np.full(X.shape, 0.1), n_resamples=50, rng=0)
    >>> bool((errors.H_low <= model.components_).all() and (model.components_ <= errors.H_high).all())
    True
    """
    if not isinstance(model, NMF):
        raise InvalidParameterError(f"model must be a fitted NMF, got {type(model).__name__}.")
    check_is_fitted(model)
    UnknownNameError.check("method", method, ("bootstrap", "displacement"))
    if not (is_number(level) and 0 < level < 1):
        raise InvalidParameterError(f"level must be between 0 and 1, got {level!r}.")
    n_resamples = checked_count("n_resamples", n_resamples)
    other = model.robust is not None or model.scale is not None or model.signed_components
    other = other or model.penalty_W is not None or model.penalty_H is not None
    if beta_of(model.beta_loss) != 2.0 or other:
        raise UnsupportedError(
            "estimate_errors is for the Frobenius loss without robust, scale, signed_components, penalty_W "
            "and penalty_H, whose noise it knows. Fit such a model first."
        )
    weights = {"mask": mask, "entry_weight": entry_weight, "uncertainty": uncertainty}
    data = input_data(model, X, reset=False, signed=True, **weights)
    if not (isinstance(data, DenseMatrix) and isinstance(data.array, np.ndarray)):
        raise UnsupportedError("estimate_errors needs X as a NumPy array. Convert it, as by X.toarray().")
    with threads(n_jobs):
        problem = _Problem.of(data, to_float64(model.components_).T, penalties_of(model, data))
        if method == "bootstrap":
            return problem.bootstrap(n_resamples, level, generator(rng))
        return problem.displacement(level)


@dataclass(frozen=True)
class _Problem:
    """An estimate and the noise around it."""

    W: FloatArray
    Ht: FloatArray
    deviations: FloatArray  # of the noise; 0 where nothing was observed
    observed: Observed | None
    X: FloatArray
    penalties: Penalties

    @classmethod
    def of(cls, data: DenseMatrix, Ht: Any, penalties: Penalties) -> _Problem:
        X = to_float64(data.array)
        data = DenseMatrix(X, np, observed=data.observed)
        W, loss = encode(data, Ht, beta=2.0, penalties=penalties)
        weights = np.ones_like(X)
        if data.observed is not None:
            weights = to_float64(data.observed.dense_rows(0, len(X)))
        deviations = np.where(weights > 0, weights, np.inf) ** -0.5
        if not data.is_weighted:
            n_free = np.count_nonzero(deviations) - Ht.shape[1] * (sum(X.shape) - Ht.shape[1])
            deviations = deviations * math.sqrt(2 * float(loss or 0.0) / max(n_free, 1))
        return cls(W, np.ascontiguousarray(Ht), deviations, data.observed, X, penalties)

    def bootstrap(self, n_resamples: int, level: float, rng: np.random.Generator) -> ErrorEstimate:
        """Fit resamples, and turn the quantiles of their factors around the estimate."""
        # From the minimum near the estimate, which itself need not have converged.
        estimate = self._fitted(self.X, self.W, self.Ht)
        model, k = (estimate[0] @ estimate[1].T) * (self.deviations > 0), self.Ht.shape[1]
        drawn = [np.full((n_resamples, *factor.shape), np.nan) for factor in estimate]
        for resample in range(n_resamples):
            entries = rng.standard_normal(model.shape)
            entries *= self.deviations
            entries += model
            fitted = self._fitted(entries, *estimate)
            with np.errstate(invalid="ignore", divide="ignore"):  # constant columns resemble none
                alike = np.nan_to_num(np.corrcoef(estimate[0], fitted[0], rowvar=False))[:k, k:]
            own, matching = linear_sum_assignment(-alike)
            good = alike[own, matching] >= FOUND
            for draws, factor in zip(drawn, fitted, strict=True):
                draws[resample][:, own[good]] = factor[:, matching[good]]
        seen = np.mean(~np.isnan(drawn[1][:, 0, :]), axis=0)
        tail, ends = (1 - level) / 2, []
        for factor, draws in zip(estimate, drawn, strict=True):
            low, high = np.zeros(factor.shape), np.full(factor.shape, np.inf)
            for a in np.flatnonzero(seen):
                # The order statistics (R + 1) p of R draws: others would make the intervals too short.
                below, above = np.nanquantile(draws[:, :, a], [tail, 1 - tail], axis=0, method="weibull")
                low[:, a], reflected = np.maximum(2 * factor[:, a] - np.stack([above, below]), 0.0)
                # Where zero cuts off the quantile below, it cuts off its reflection, too. The estimate is
                # then like max(Z, 0) of a normal Z, for which the quantile above is the exact end.
                high[:, a] = np.where(below > 0, reflected, np.maximum(reflected, above))
            ends.append((low, high))
        (W_low, W_high), (H_low, H_high) = ends
        return ErrorEstimate("bootstrap", level, self.Ht.T, self.W, H_low.T, H_high.T, W_low, W_high, seen)

    def _fitted(self, X: FloatArray, W: FloatArray, Ht: FloatArray) -> tuple[FloatArray, FloatArray]:
        data = DenseMatrix(X, np, observed=self.observed)
        options: dict[str, Any] = {"max_iter": MAX_ITER, "tol": TOL, "accelerate": False}
        fitted = hals(data, W, Ht, penalties=self.penalties, **options).state
        # The columns of W get the means of those of the estimate.
        means = fitted.W.mean(axis=0)
        scale = np.where(means > 0, self.W.mean(axis=0) / np.where(means > 0, means, 1.0), 1.0)
        return fitted.W * scale, fitted.Ht / np.where(scale > 0, scale, 1.0)

    def displacement(self, level: float) -> ErrorEstimate:
        """Move the mean contribution of each component to each feature as far as noise explains."""
        W, Ht = self._fitted(self.X, self.W, self.Ht)
        weights = np.where(self.deviations > 0, self.deviations, np.inf) ** -2
        # The rise of half the sum of squares, in variances of the noise.
        allowed = 0.5 * float(chi2.ppf(level, 1))
        ends = np.zeros((2, *Ht.shape))
        for side, j, a in np.ndindex(*ends.shape):
            ends[side, j, a] = _displaced(self.X, weights, W, Ht, j, a, 1.0 - 2.0 * side, allowed)
        return ErrorEstimate("displacement", level, self.Ht.T, self.W, ends[0].T, ends[1].T)


def _displaced(
    X: FloatArray, weights: FloatArray, W: FloatArray, Ht: FloatArray, j: int, a: int, sign: float,
    allowed: float,
) -> float:  # fmt: skip
    """Return the entry of H where the loss has risen by what is allowed; 0 if it never does."""
    # The minimum of half the squares + price * H[a, j] mean(W[:, a]) is the best fit with that contribution,
    # whatever it is: the price is its Lagrange multiplier. Prices are linear terms of the updates of HALS.
    data = DenseMatrix(X, np, observed=ArrayObserved(weights, np))

    def half_squares() -> float:
        return 0.5 * float(np.sum(weights * (X - W @ Ht.T) ** 2))

    unit = max(float(W[:, a].mean()), TINY)
    value, rise, best = float(Ht[j, a]) * unit, 0.0, half_squares()
    below, above = 0.0, math.inf  # prices at which the loss has risen by less, and by more
    # Where others do not move, the loss rises by curvature (h - h0)^2 / 2.
    curvature = float(np.sum(weights[:, j] * W[:, a] ** 2))
    price = math.sqrt(2 * allowed * max(curvature, TINY)) / unit
    for _ in range(STEPS):
        if sign > 0 and value == 0 and rise < allowed:
            break  # without the contribution the fit is hardly worse
        last = math.inf
        for _ in range(FIT_ITER):
            cross = data.times(Ht)
            cross[:, a] -= sign * price * Ht[j, a] / len(W)
            W, _ = hals_passes(W, data.row_grams(Ht), cross, max_passes=5)
            cross = data.transposed_times(W)
            cross[j, a] -= sign * price * W[:, a].mean()
            Ht, _ = hals_passes(Ht, data.column_grams(W), cross, max_passes=5)
            value, loss = float(Ht[j, a] * W[:, a].mean()), half_squares()
            now = loss + sign * price * value
            if last - now <= FIT_SMALL * allowed:
                break
            last = now
        rise = loss - best
        if abs(rise - allowed) <= NEAR * allowed:
            break
        below, above = (below, price) if rise > allowed else (price, above)
        # The rise is about quadratic in the price.
        guess = price * math.sqrt(allowed / max(rise, 1e-3 * allowed))
        middle = 0.5 * (below + above) if above < math.inf else 4 * below
        price = guess if below < guess < above else middle
    return value / unit
