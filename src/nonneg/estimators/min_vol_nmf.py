"""MinVolNMF: components without pure samples, with the interface of scikit-learn."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from nonneg._typing import SampleArray
from nonneg.data import DataMatrix
from nonneg.estimators._base import Callback, Checkpoint, FactorizingEstimator, input_data, rank_of
from nonneg.estimators.saving import Fields, StoredArray
from nonneg.minvol.factorize import minimum_volume
from nonneg.minvol.problem import CONSTRAINTS, simplex_weights

POSITIVE = [Interval(Real, 0, None, closed="neither"), None]


@dataclass(eq=False, repr=False)
class MinVolNMF(FactorizingEstimator):
    r"""Minimum-volume NMF, X ~ W H with the rows of W on the simplex: endmembers without pure pixels.

    Parameters
    ----------
    n_components : int or "auto", default "auto"
        The number of components, the vertices of the simplex. "auto" estimates it with `compare_ranks`.
    constraint : {"sum-to-one", "at-most-one"}, default "sum-to-one"
        The sums of the rows of W. With "at-most-one" the origin is one more vertex: shade.
    lam : float or None
        Weight of the volume, in the unit of X squared. None derives it from the noise level.
    noise : float or None
        Standard deviation of the noise in an entry of X; None estimates it from the singular values.
    init : {"auto", "mv-dual"} or array of shape (n_components, n_features), default "auto"
        Initial components. "auto" keeps the best of MV-Dual and of descents from extreme samples.
    max_iter : int, default 200
        Maximum number of iterations; 0 returns the initialization.
    tol : float, default 0.001
        Stop when the projected gradient is at most `tol` times that of the volume term.
    {n_jobs, verbose, callback, checkpoint}

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        H, the vertices of the simplex.
    {n_components_}
    lam_ : float
        The weight of the volume.
    noise_level_ : float
        The standard deviation of the noise from which it was derived.
    purity_ : array of shape (n_components,)
        The largest weight of each component in a sample: 1 if there is a pure one.
    {reconstruction_err_, n_iter_}
    history_ : History
        The objective (``loss``) and the relative gradient (``kkt_residual``) after each iteration.
    certificate_ : Certificate
        What is known about the result: stationarity, fit relative to the noise, and necessary conditions for
        unique components.
    {rank_estimate_, n_features_in_, feature_names_in_}

    See Also
    --------
    SeparableNMF : For data with a pure sample of every component.
    nonneg.applications.Unmixing : Hyperspectral images, with ``method="min-volume"``.

    Notes
    -----
    The objective is ``0.5 ||X - W H||^2 + lam/2 logdet(V V' + delta I)``, with the edges of the simplex as
    rows of V (with "at-most-one": its vertices) and the variance of the noise as delta. W is solved for
    exactly, also by `transform`, so `fit_transform(X)` equals `fit(X).transform(X)`. The objective never
    increases, up to rounding. The default weight is a quarter of n_samples times the variance of the noise:
    multiplying X by a constant multiplies the components by it and changes nothing else.

    There is no `sample_weight`, because the samples near a facet determine its place, and neither `n_init`
    nor `random_state`, because nothing is random.

    References
    ----------
    .. [1] Fu, Huang, Yang, Ma & Sidiropoulos (2016), IEEE Trans. Signal Processing 64(23).
    .. [2] Leplat, Ang & Gillis (2019), ICASSP.
    .. [3] Abdolali, Barbarino & Gillis (2024), SIAM J. Imaging Sciences 17(4) (MV-Dual).

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg import MinVolNMF
    >>> rng = np.random.default_rng(0)
    >>> H = rng.random((3, 20))
    >>> W = rng.dirichlet(np.ones(3), size=2000)
    >>> W = W[W.max(axis=1) < 0.8]  # no sample is purer than 80%
    >>> model = MinVolNMF(3).fit(W @ H)
    >>> bool(model.purity_.max() < 0.85)
    True
    """

    n_components: int | str = "auto"
    _: KW_ONLY
    constraint: str = "sum-to-one"
    lam: float | None = None
    noise: float | None = None
    init: Any = "auto"
    max_iter: int = 200
    tol: float = 1e-3
    n_jobs: int | None = None
    verbose: int = 0
    callback: Callback = None
    checkpoint: Checkpoint = None

    _stored: ClassVar[Fields] = {
        **FactorizingEstimator._stored,
        "purity_": StoredArray("n_components_", nonnegative=True),
        "lam_": float,
        "noise_level_": float,
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "constraint": [StrOptions(set(CONSTRAINTS))],
        "lam": POSITIVE,
        "noise": POSITIVE,
        "init": [str, "array-like"],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
    }

    def _fit(self, X: Any) -> SampleArray:
        data = input_data(self, X, reset=True)
        options = self._shared(minimum_volume)
        result = minimum_volume(data, rank_of(self, data), caller=type(self).__name__, **options)
        self.lam_, self.noise_level_, self.purity_ = result.lam, result.noise.sigma, result.purity
        self.reconstruction_err_ = result.error
        self._finish(result, result.H)
        return result.W

    def _weights(self, data: DataMatrix) -> SampleArray:
        return simplex_weights(data, self.components_, self.constraint)
