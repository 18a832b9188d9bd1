"""NMF: nonnegative matrix factorization with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from nonneg._random import Seed
from nonneg._threads import threads
from nonneg.certificates.certificate import Certificate
from nonneg.estimators._base import input_data, reconstruction_error
from nonneg.estimators.online import OnlineEstimator, OnlineState
from nonneg.estimators.preparation import (
    beta_loss_of,
    given_factors,
    lower_bound_statement,
    penalties_of,
    rank_of,
    start_of,
    warn_unless_converged,
)
from nonneg.iteration import Progress
from nonneg.solvers.encoding import encode
from nonneg.solvers.factorize import factorize
from nonneg.solvers.result import FactorizationResult

COUNT = [Interval(Integral, 1, None, closed="left")]


class NMF(OnlineEstimator):
    r"""Nonnegative matrix factorization, X ~ W H: a drop-in for ``sklearn.decomposition.NMF``.

    Minimises, over nonnegative W and H,

    .. math::

        D(X, W H) &+ \alpha_W m \, (\lambda \|W\|_1 + \tfrac{1 - \lambda}{2} \|W\|_F^2) \\
                  &+ \alpha_H n \, (\lambda \|H\|_1 + \tfrac{1 - \lambda}{2} \|H\|_F^2)

    with D half the squared Frobenius norm of X - W H or a beta-divergence, X of n samples (or sample weights
    that sum to n) and m features, and :math:`\lambda` = `l1_ratio`.

    Parameters
    ----------
    n_components : int, "auto" or None
        The number of components. "auto" takes that of given factors, or else estimates it by
        `nonneg.estimate_rank`: the one difference from scikit-learn. None keeps the number of features.
    init : str, optional
        The start, such as "random", "nndsvda", "cone" (`nonneg.initializers.INITS`), "anchors" (samples by
        successive projections), or "custom" for the W and H given to `fit`. None stands for given factors,
        else for "nndsvda" where `n_components` is at most the smaller side of X, else for "random".
    solver : str
        A name in `nonneg.solvers.SOLVERS`, scikit-learn's "cd" or "mu", or "auto", which looks at loss,
        shape and kind of the data.
    beta_loss : str or float
        "frobenius", "kullback-leibler", "itakura-saito", or beta.
    tol : float
        When to stop; its meaning is the solver's (`SOLVERS[name].tol`) and scikit-learn's for "cd" and "mu".
    max_iter : int
        At most so many iterations.
    random_state : int, RandomState, Generator or None
        For starts that draw.
    alpha_W : float
        Strength of the penalty on W.
    alpha_H : float or "same"
        Strength of the penalty on H.
    l1_ratio : float
        Share of L1 in the penalties, from 0 to 1; the rest is L2.
    verbose : int
        1 shows a line with loss, rate and time left.
    shuffle : bool
        Permute the order of the components for coordinate descent.
    batch_size : int
        For `partial_fit`: a first batch of up to so many samples multiplies the past by `forget_factor`, a
        larger one by a root of it.
    forget_factor : float
        For `partial_fit`: what is left of the past with every batch, above 0 and at most 1.
    fresh_restarts : bool
        For `partial_fit`, losses other than Frobenius: at most `fresh_restarts_max_iter` sweeps of a batch.
    fresh_restarts_max_iter : int
        See `fresh_restarts`.
    max_no_improvement : int or None
        Accepted for code written for MiniBatchNMF; `partial_fit` does not stop by itself.
    transform_max_iter : int or None
        At most so many sweeps over a row in `transform`, for losses other than Frobenius, whose rows are
        solved exactly. None solves to tolerance.
    missing : {"error", "mask"}
        What NaN means: an error, or an entry that was not observed.
    n_jobs : int or None
        Threads of the kernels; None takes all cores.
    callback : callable, optional
        Called with a `Progress` (`n_iter`, `state`, `history`) after each iteration; True stops.
    checkpoint : str or path, optional
        A folder in which the run is saved every few seconds and from which it is taken up again, if it holds
        a run of the same data and parameters.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The factor H.
    n_components_ : int
        The number of components.
    n_iter_ : int
        Iterations done.
    reconstruction_err_ : float
        The Frobenius norm of X - W H, or the root of twice the divergence; weighted where samples are.
    history_ : History
        What was measured after each iteration.
    certificate_ : Certificate
        How good the answer provably is; see `certify`.
    result_ : FactorizationResult
        W, H, loss, reason to stop, and the above.
    rank_estimate_ : RankResult
        How "auto" chose the number of components; only where it did.
    n_steps_ : int
        Batches seen by `partial_fit`.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array of str
        Their names, where X had any.

    See Also
    --------
    nonneg.factorize : The function behind it.

    Notes
    -----
    `fit_transform(X)` equals `fit(X).transform(X)`: W is the solution of each row's own problem given H.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg import NMF
    >>> X = np.array([[1, 1], [2, 1], [3, 1.2], [4, 1], [5, 0.8], [6, 1]])
    >>> model = NMF(n_components=2, init="random", random_state=0, max_iter=2000)
    >>> W = model.fit_transform(X)
    >>> bool(np.abs(X - W @ model.components_).max() < 0.05)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [*COUNT, None, StrOptions({"auto"})],
        # Names are looked up in the registries, which know the near ones.
        "init": [str, None],
        "solver": [str],
        "beta_loss": [str, Real],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": COUNT,
        "random_state": ["random_state", np.random.Generator, np.random.SeedSequence],
        "alpha_W": [Interval(Real, 0, None, closed="left")],
        "alpha_H": [Interval(Real, 0, None, closed="left"), StrOptions({"same"})],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "verbose": ["verbose"],
        "shuffle": ["boolean"],
        "batch_size": COUNT,
        "forget_factor": [Interval(Real, 0, 1, closed="right")],
        "fresh_restarts": ["boolean"],
        "fresh_restarts_max_iter": COUNT,
        "max_no_improvement": [*COUNT, None],
        "transform_max_iter": [*COUNT, None],
        "missing": [StrOptions({"error", "mask"})],
        "n_jobs": [Interval(Integral, None, -1, closed="right"), *COUNT, None],
        "callback": [callable, None],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        init: str | None = None,
        solver: str = "auto",
        beta_loss: str | float = "frobenius",
        tol: float = 1e-4,
        max_iter: int = 200,
        random_state: Seed = None,
        alpha_W: float = 0.0,
        alpha_H: float | str = "same",
        l1_ratio: float = 0.0,
        verbose: int = 0,
        shuffle: bool = False,
        batch_size: int = 1024,
        forget_factor: float = 0.7,
        fresh_restarts: bool = False,
        fresh_restarts_max_iter: int = 30,
        max_no_improvement: int | None = 10,
        transform_max_iter: int | None = None,
        missing: str = "error",
        n_jobs: int | None = None,
        callback: Callable[[Progress], bool | None] | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.solver = solver
        self.beta_loss = beta_loss
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.verbose = verbose
        self.shuffle = shuffle
        self.batch_size = batch_size
        self.forget_factor = forget_factor
        self.fresh_restarts = fresh_restarts
        self.fresh_restarts_max_iter = fresh_restarts_max_iter
        self.max_no_improvement = max_no_improvement
        self.transform_max_iter = transform_max_iter
        self.missing = missing
        self.n_jobs = n_jobs
        self.callback = callback
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        W: Any = None,
        H: Any = None,
        sample_weight: Any = None,
        mask: Any = None,
        frozen_components: Sequence[int] | None = None,
    ) -> NMF:
        """Learn the components.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or dask array of shape (n_samples, n_features)
            Nonnegative data; never changed.
        y : Any
            Ignored.
        W : array of shape (n_samples, n_components), optional
            The start of W.
        H : array of shape (n_components, n_features), optional
            The start of H.
        sample_weight : array of shape (n_samples,), optional
            An integer weight counts like so many equal samples.
        mask : bool array or sparse matrix of the shape of X, optional
            True where observed.
        frozen_components : sequence of int, optional
            Rows of H that stay as given in `H`.

        Returns
        -------
        NMF
            Itself.
        """
        self._fit(X, W, H, sample_weight, mask, frozen_components)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        W: Any = None,
        H: Any = None,
        *,
        sample_weight: Any = None,
        mask: Any = None,
        frozen_components: Sequence[int] | None = None,
    ) -> Any:
        """Learn the components and return the coefficients of the same data.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or dask array of shape (n_samples, n_features)
            Nonnegative data; never changed.
        y : Any
            Ignored.
        W : array of shape (n_samples, n_components), optional
            The start of W.
        H : array of shape (n_components, n_features), optional
            The start of H.
        sample_weight : array of shape (n_samples,), optional
            An integer weight counts like so many equal samples.
        mask : bool array or sparse matrix of the shape of X, optional
            True where observed.
        frozen_components : sequence of int, optional
            Rows of H that stay as given in `H`.

        Returns
        -------
        array of shape (n_samples, n_components)
            W, of the kind of X.
        """
        return self._fit(X, W, H, sample_weight, mask, frozen_components).W

    def _fit(
        self, X: Any, W: Any, H: Any, sample_weight: Any, mask: Any, frozen: Sequence[int] | None
    ) -> FactorizationResult:
        beta = beta_loss_of(self)
        W, H = given_factors(self, W, H, frozen=frozen is not None and np.size(frozen) > 0)
        data = input_data(self, X, reset=True, sample_weight=sample_weight, mask=mask, positive=beta <= 0)
        k = rank_of(self, data, W, H)
        init, W, H = start_of(self, data, k, W, H)
        result = factorize(
            data,
            k,
            loss=beta,
            solver=self.solver,
            init=init,
            W=W,
            H=H,
            max_iter=self.max_iter,
            tol=self.tol,
            rng=self.random_state,
            alpha_W=self.alpha_W,
            alpha_H=self.alpha_H,
            l1_ratio=self.l1_ratio,
            frozen_components=frozen,
            shuffle=self.shuffle,
            polish=True,
            polish_max_iter=self.transform_max_iter,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            callback=self.callback,
            checkpoint=None if self.checkpoint is None else Path(self.checkpoint),
            who=type(self).__name__,
        )
        if isinstance(result.H, np.ndarray):
            result = replace(result, H=np.ascontiguousarray(result.H))
        self.reconstruction_err_ = reconstruction_error(
            data, result.W, result.H.T, beta=beta, penalties=penalties_of(self, data), objective=result.loss
        )
        self.result_ = result
        self.components_ = result.H
        self.n_components_ = int(result.H.shape[0])
        self.n_iter_ = result.n_iter
        self.history_ = result.history
        self.certificate_ = result.certificate
        # For `partial_fit`, to which the samples seen here are the past.
        self._online = OnlineState(n_samples=data.total_weight())
        self.__dict__.pop("n_steps_", None)
        warn_unless_converged(self, result)
        return result

    def transform(self, X: Any, mask: Any = None) -> Any:
        """Return the coefficients of data: the best W for the learned H, each row on its own.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or dask array of shape (n_samples, n_features)
            Nonnegative data; never changed.
        mask : bool array or sparse matrix of the shape of X, optional
            True where observed.

        Returns
        -------
        array of shape (n_samples, n_components)
            W, of the kind of X.
        """
        check_is_fitted(self)
        beta = beta_loss_of(self)
        data = input_data(self, X, reset=False, mask=mask, positive=beta <= 0)
        with threads(self.n_jobs):
            W, _ = encode(
                data,
                data.to_device(self.components_.T),
                beta=beta,
                penalties=penalties_of(self, data),
                max_iter=self.transform_max_iter,
            )
        return W

    def certify(self, X: Any, *, sample_weight: Any = None, mask: Any = None) -> Certificate:
        """Add to `certificate_` how far the error lies above the least that any rank-k matrix can have.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or dask array of shape (n_samples, n_features)
            The data of the fit.
        sample_weight, mask : array, optional
            Those of the fit.

        Returns
        -------
        Certificate
            With the statement "eckart-young-bound", which costs like a few iterations of a fit.
        """
        check_is_fitted(self)
        data = input_data(self, X, reset=False, sample_weight=sample_weight, mask=mask)
        with threads(self.n_jobs):
            statement = lower_bound_statement(self, data)
        self.certificate_ = getattr(self, "certificate_", Certificate()).with_statements([statement])
        return self.certificate_
