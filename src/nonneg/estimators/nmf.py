"""NMF, and `non_negative_factorization`: nonnegative matrix factorization with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from nonneg._arguments import typed
from nonneg._arrays import is_float32, to_device
from nonneg._devices import device_work, likely_iterations
from nonneg._random import Seed, generator
from nonneg._threads import threads
from nonneg._typing import MatrixLike
from nonneg._warnings import warn_user
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.certificates.svd_lower_bound import eckart_young_statement
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.annotated import check_labels
from nonneg.estimators._base import Callback, Checkpoint, FactorizingEstimator, input_data, rank_of
from nonneg.estimators.documentation import documented
from nonneg.estimators.saving import Fields, StoredArray, damaged
from nonneg.estimators.scaled_columns import HALF, SCALES, column_scale, divided_columns, dominant_columns
from nonneg.exceptions import DataTypeError, InvalidParameterError, as_data_errors
from nonneg.initializers.custom import check_factor
from nonneg.initializers.registry import INITS
from nonneg.kernels.grams import Laplacian
from nonneg.losses.penalties import Penalties, scaled_penalties
from nonneg.solvers.encoding import encode
from nonneg.solvers.factorize import (
    checked_negative,
    checked_rank,
    factorize,
    initial_factors,
    run_factorization,
    run_of,
)
from nonneg.solvers.online import OnlineState, decay_of, online_step
from nonneg.solvers.registry import SOLVERS, beta_of
from nonneg.solvers.result import reconstruction_error, returned
from nonneg.solvers.robust import Huber, checked_dense


@dataclass(eq=False, repr=False)
class NMF(FactorizingEstimator):
    r"""Nonnegative matrix factorization (NMF).

    Find nonnegative matrices W and H whose product approximates the nonnegative matrix X, by minimizing

    .. math::

        D(X, W H) &+ \alpha_W m \, (\lambda \|W\|_1 + \tfrac{1 - \lambda}{2} \|W\|_F^2) \\
                  &+ \alpha_H n \, (\lambda \|H\|_1 + \tfrac{1 - \lambda}{2} \|H\|_F^2),

    where D is half the squared Frobenius norm of X - W H or another beta-divergence, n the number of samples
    (or the sum of their weights), m the number of features, and :math:`\lambda` is `l1_ratio`. The class is a
    drop-in replacement for ``sklearn.decomposition.NMF``.

    Parameters
    ----------
    n_components : int, "auto" or None, default "auto"
        Number of components. "auto" takes it from `W` or `H` if given, and otherwise estimates it with
        `nonneg.compare_ranks`, as ``nonneg rank`` does, which takes longer than a fit and logs its choice and
        reason (scikit-learn takes the number of features, as None does here).
    init : str, optional
        Method used to initialize W and H: a name in `nonneg.initializers.INITS` ("random", "nndsvda", "cr1",
        ...), or "custom" for the `W` and `H` passed to `fit`. None stands for "custom" if factors are given,
        for "nndsvd-scaled" if ``n_components <= min(n_samples, n_features)`` and there are no restarts, and
        for "random" otherwise. "nndsvda" and "nndsvdar" reproduce scikit-learn's to the last digit: they
        replace zeros by numbers in the units of X, not of the factors, so the result depends on these units.
        No other result does.
    {function: n_init, solver}
    {beta_loss}
    {function: tol, max_iter}
    {random_state, alpha_W, alpha_H, l1_ratio, penalty_W, penalty_H, verbose, shuffle}
    batch_size : int, default 1024
        Used by `partial_fit`: a batch of up to this many samples multiplies the past by `forget_factor`, a
        larger one by a root of it.
    forget_factor : float, default 0.7
        Used by `partial_fit`: the amount of rescaling of past information, in (0, 1].
    fresh_restarts : bool, default False
        Without effect, as the next three: scikit-learn's MiniBatchNMF has them. W is always solved to
        tolerance, and `partial_fit` never stops early.
    fresh_restarts_max_iter, max_no_improvement : int, default 30 and 10
        Without effect.
    transform_max_iter : int, optional
        Without effect.
    scale : {"max", "std", "sum"} or None
        Divide every column of X by its maximum, standard deviation (without centering) or sum, so that
        columns in large units do not dominate. `components_` are still in the units of X; loss,
        `reconstruction_err_`, penalties and certificate are those of the scaled columns.
    {missing, negative, robust, robust_threshold, signed_components, accelerate}
    {device, n_jobs, callback, checkpoint}

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Factorization matrix H, sometimes called "dictionary".
    {n_components_, n_iter_}
    reconstruction_err_ : float
        Frobenius norm of X - W H, or the square root of twice the beta-divergence or robust loss, with the
        weights of samples and entries; with `scale`, of the columns divided by `column_scale_`, not in the
        units of X.
    {history_}
    certificate_ : Certificate
        What can be verified about the result; see `certify`.
    result_ : FactorizationResult
        W, H, objective, reason to stop, and all of the above.
    {rank_estimate_}
    column_scale_ : array of shape (n_features,)
        What the columns of X were divided by; only with `scale`.
    {n_steps_, n_features_in_, feature_names_in_}

    See Also
    --------
    nonneg.factorize : The function behind it.
    nonneg.non_negative_factorization : The function with scikit-learn's signature.

    Notes
    -----
    `fit_transform(X)` equals `fit(X).transform(X)`: the returned W minimizes the objective for the final H,
    each row on its own. With `penalty_W`, which couples rows, it is the smooth W of the fit, and `transform`
    leaves `penalty_W` out: new samples are no nodes of the graph.

    Multiplying X by a constant c multiplies W H by c and changes nothing else, as long as penalties follow:
    they are in the unit of the loss. To obtain the same factorization of c X with the Frobenius loss,
    multiply `alpha_W` and `alpha_H` by c if ``l1_ratio=0`` and by :math:`c^{3/2}` if ``l1_ratio=1``; with
    Kullback-Leibler, by 1 and :math:`c^{1/2}`. With a mix of both there is no such constant; divide X by its
    mean instead.

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

    n_components: int | str | None = "auto"
    _: KW_ONLY
    init: str | None = None
    n_init: int = 1
    solver: str = "auto"
    beta_loss: str | float = "frobenius"
    tol: float = 1e-4
    max_iter: int = 200
    random_state: Seed = None
    alpha_W: float = 0.0
    alpha_H: float | str = "same"
    l1_ratio: float = 0.0
    penalty_W: Laplacian | None = None
    penalty_H: Laplacian | None = None
    verbose: int = 0
    shuffle: bool = False
    batch_size: int = 1024
    forget_factor: float = 0.7
    fresh_restarts: bool = False
    fresh_restarts_max_iter: int = 30
    max_no_improvement: int | None = 10
    transform_max_iter: int | None = None
    scale: str | None = None
    missing: str = "error"
    negative: str = "error"
    robust: str | None = None
    robust_threshold: float = 4.0
    signed_components: bool = False
    accelerate: bool = True
    device: str | None = None
    n_jobs: int | None = None
    callback: Callback = None
    checkpoint: Checkpoint = None

    _sparse_arrays: ClassVar[bool] = True
    _function: ClassVar[Any] = factorize
    _stored: ClassVar[Fields] = {
        **FactorizingEstimator._stored,
        "components_": StoredArray("n_components_", "n_features_in_", finite=True),
        "column_scale_": StoredArray("n_features_in_", nonnegative=True, optional=True),
        "_online": {
            OnlineState: {
                "numerator": StoredArray("n_features_in_", "n_components_", optional=True),
                # (n_components, n_components) for least squares, one per feature, stacked, where entries
                # had weights, and the shape of the numerator for other losses.
                "denominator": StoredArray("rows of the denominator", "n_components_", optional=True),
                "n_samples": float,
                "decay": float | None,
            }
        },
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "forget_factor": [Interval(Real, 0, 1, closed="right")],
        "scale": [StrOptions(set(SCALES)), None],
        "missing": [StrOptions({"error", "mask"})],
        "negative": [StrOptions({"error", "keep"})],
        "robust": [StrOptions({"huber", "huber-rows"}), None],
        "robust_threshold": [Interval(Real, 0, None, closed="neither")],
        "penalty_W": [Laplacian, None],
        "penalty_H": [Laplacian, None],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: MatrixLike,
        y: Any = None,
        *,
        W: Any = None,
        H: Any = None,
        sample_weight: Any = None,
        mask: Any = None,
        entry_weight: Any = None,
        uncertainty: Any = None,
        frozen_components: Sequence[int] | None = None,
    ) -> NMF:
        """Learn an NMF model for the data X.

        Parameters
        ----------
        {X, y}
        {function: W, H}
        {sample_weight}
        {function: mask, entry_weight, uncertainty, frozen_components}

        Returns
        -------
        self : NMF
            The fitted estimator.
        """
        beta = beta_of(self.beta_loss)
        checked_negative(self.negative, beta, signed_components=self.signed_components)
        huber = Huber.of(self.robust, self.robust_threshold, beta)
        frozen = frozen_components is not None and np.size(frozen_components) > 0
        W, H = given_factors(self, W, H, frozen=frozen)
        data = input_data(
            self, X, reset=True, sample_weight=sample_weight, mask=mask, entry_weight=entry_weight,
            uncertainty=uncertainty, positive=beta <= 0,
            n_iter=likely_iterations(self.max_iter, self.n_init, beta),
        )  # fmt: skip
        check_labels((None, getattr(self, "feature_names_in_", None)), H, "H")
        balance = self._column_balance(data, beta)
        data = self._scaled(data, reset=True)
        H = self._scaled_H(H, -1)
        k = rank_of(self, data, W, H)
        penalties = penalties_of(self, data, self.penalty_W)
        options = self._shared(run_factorization) | {"n_components": k, "rng": self.random_state}
        result = run_of(huber)(
            data, beta=beta, penalties=penalties, W=W, H=H, frozen_components=frozen_components,
            final_encoding=True, caller=getattr(self, "_caller", type(self).__name__), **options,
        )  # fmt: skip
        self.reconstruction_err_ = reconstruction_error(
            data, result.W, result.H.T, beta=beta, penalties=penalties, value=result.loss
        )
        result = returned(result, data)
        certificate = result.certificate.with_statements(balance)
        result = replace(result, H=self._scaled_H(result.H, 1), certificate=certificate)
        self.result_ = result
        # For `partial_fit`, to which these samples are the past.
        self._online = OnlineState(n_samples=data.total_weight())
        self._finish(result, result.H)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None, W: Any = None, H: Any = None, **fit_params: Any) -> Any:
        """Learn an NMF model for the data X and return the transformed data.

        Parameters
        ----------
        X, y, W, H : Any
            See `fit`.
        **fit_params : Any
            Further arguments of `fit`, such as `sample_weight`.

        Returns
        -------
        array of shape (n_samples, n_components)
            Transformed data W, of the same array type as X.
        """
        return self.fit(X, W=W, H=H, **fit_params).result_.W

    def _scaled(self, data: DataMatrix, *, reset: bool = False) -> DataMatrix:
        """Divide the columns; `reset` takes their scale from these data."""
        if reset:
            self.__dict__.pop("column_scale_", None)
            if self.scale is not None:
                self.column_scale_ = column_scale(data, self.scale)
        return divided_columns(data, getattr(self, "column_scale_", None))

    def _scaled_H(self, H: Any, power: int) -> Any:
        """Multiply the columns of H by a power of the scale: 1 to the unit of X, -1 from it."""
        scale = getattr(self, "column_scale_", None)
        if scale is None or H is None:
            return H
        H = H if hasattr(H, "dtype") else np.asarray(H)
        return H * to_device(scale**power, H, H.dtype if "float" in str(H.dtype) else None)

    def _column_balance(self, data: DataMatrix, beta: float) -> list[Statement]:
        """Say that one or two columns account for most of the loss, if they do."""
        if self.scale is not None or data.is_weighted or not isinstance(data, LocalMatrix):
            return []
        if (dominant := dominant_columns(data, beta)) is None:
            return []
        (columns, share), names = dominant, getattr(self, "feature_names_in_", None)
        listed = ", ".join(str(column if names is None else names[column]) for column in columns)
        sentence = (
            f"{100 * min(share, 0.9999):.4g}% of what the loss measures is in {len(columns)} of "
            f"{data.shape[1]} columns ({'from 0: ' * (names is None)}{listed}); the rest is in the others."
        )
        quantities = {"columns": listed, "n_columns": data.shape[1]}
        return [Statement("column-balance", sentence, share, HALF, Verdict.FAILS, quantities)]

    def transform(
        self, X: MatrixLike, mask: Any = None, *, entry_weight: Any = None, uncertainty: Any = None
    ) -> Any:
        """Transform the data X: minimize the objective over W for the fitted H.

        Parameters
        ----------
        {X}
        {function: mask, entry_weight, uncertainty}

        Returns
        -------
        array of shape (n_samples, n_components)
            Transformed data W, of the same array type as X.
        """
        check_is_fitted(self)
        beta = beta_of(self.beta_loss)
        weights = {"mask": mask, "entry_weight": entry_weight, "uncertainty": uncertainty}
        data = self._scaled(input_data(self, X, reset=False, **weights, positive=beta <= 0))
        Ht, penalties = data.to_device(self._scaled_H(self.components_, -1).T), penalties_of(self, data)
        huber = Huber.of(self.robust, self.robust_threshold, beta)
        with threads(self.n_jobs), device_work(data):
            if huber is None:
                W, _ = encode(data, Ht, beta=beta, penalties=penalties)
            else:
                W, _ = huber.encode(checked_dense(data), Ht, penalties)
        return data.to_caller(W)

    def certify(self, X: MatrixLike, **weights: Any) -> Certificate:
        """Compare the error with the Eckart-Young lower bound, and add the outcome to `certificate_`.

        The error is that of the best weights, as `transform` gives them: without `penalty_W`.

        Parameters
        ----------
        {X}
        **weights : Any
            `sample_weight`, `mask`, `entry_weight` and `uncertainty` as passed to `fit`.

        Returns
        -------
        Certificate
            The certificate with the statement "eckart-young-bound", which costs as much as a few iterations.
        """
        check_is_fitted(self)
        data = self._scaled(input_data(self, X, reset=False, **weights))
        if beta_of(self.beta_loss) != 2.0 or self.robust is not None:
            sentence = "The Eckart-Young bound is for the Frobenius error, but another loss was minimized."
            statement = Statement("eckart-young-bound", sentence, None, None, Verdict.NOT_VERIFIABLE)
        else:
            Ht = data.to_device(self._scaled_H(self.components_, -1).T)
            with threads(self.n_jobs):
                W, _ = encode(data, Ht, beta=2.0, penalties=penalties_of(self, data))
                statement = eckart_young_statement(data, W, Ht)
        self.certificate_ = getattr(self, "certificate_", Certificate()).with_statements([statement])
        return self.certificate_

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: MatrixLike,
        y: Any = None,
        W: Any = None,
        H: Any = None,
        *,
        entry_weight: Any = None,
        uncertainty: Any = None,
    ) -> Any:
        """Update the components with one batch of samples, none of which is kept.

        Parameters
        ----------
        {X, y}
        W : array of shape (n_samples, n_components), optional
            Initial W, from which H is fitted if H is not given. Used in the first call only.
        H : array of shape (n_components, n_features), optional
            Initial H. Used in the first call only.
        {function: entry_weight, uncertainty}

        Returns
        -------
        self : NMF
            The estimator, with `components_`, `n_components_` and `n_steps_`.

        Notes
        -----
        After `fit`, training continues from the fitted components.
        """
        beta = beta_of(self.beta_loss)
        for name in ("robust", "signed_components", "scale", "penalty_W", "penalty_H"):
            # Sums of past batches are those of squares of nonnegative factors, in the units of all batches,
            # and rows of a batch are no nodes of the graph.
            if getattr(self, name) not in (None, False):
                raise InvalidParameterError(
                    f"partial_fit does not accept {name}={getattr(self, name)!r}. Use fit, or leave it out."
                )
        new = not hasattr(self, "components_")
        weights = {"entry_weight": entry_weight, "uncertainty": uncertainty, "batch": True}
        data = input_data(self, X, reset=new, **weights, positive=beta <= 0)
        # Components of nothing but zeros, as after a batch of silence, would stay for ever.
        first = new or not bool(data.xp.any(data.to_device(self.components_) > 0))
        with threads(self.n_jobs):
            if first:
                W, H = given_factors(self, W, H)
                k = checked_rank(rank_of(self, data, W, H), data.shape, type(self).__name__)
                rng = generator(self.random_state)
                _, Ht = initial_factors(data, k, init=self.init, W=W, H=H, rng=rng)
            else:
                Ht = data.to_device(self.components_.T)
            past = self._past(data, first=first)
            Ht, past = online_step(data, Ht, past, beta=beta, penalties=penalties_of(self, data))
        Ht, sums = data.to_caller(Ht), [data.to_caller(part) for part in (past.numerator, past.denominator)]
        self._online = replace(past, numerator=sums[0], denominator=sums[1])
        self._count_batch(Ht.T)
        return self

    def _past(self, data: DataMatrix, *, first: bool) -> OnlineState:
        state = OnlineState() if first else getattr(self, "_online", OnlineState())
        if state.decay is None:
            state = replace(state, decay=decay_of(self.forget_factor, self.batch_size, data.shape[0]))
        if state.numerator is None:
            return state
        # A batch may come in another container than the one before.
        numerator, denominator = data.to_device(state.numerator), data.to_device(state.denominator)
        return replace(state, numerator=numerator, denominator=denominator)

    def _complete_loaded(self) -> None:
        if not self.signed_components and not (self.components_ >= 0).all():
            raise damaged("expected nonnegative components_, got entries below zero")
        past = getattr(self, "_online", None)
        if past is None or past.numerator is None:
            return
        k, n_features = self.components_.shape
        shapes = (k, k), (n_features, k), (n_features * k, k)
        if past.denominator is None or past.denominator.shape not in shapes:
            raise damaged("the sums of past batches do not fit the components")


def penalties_of(model: Any, data: DataMatrix, penalty_W: Laplacian | None = None) -> Penalties:
    """Return the penalties of a model, scaled to the data; only those of a fit are nodes of the graph."""
    return scaled_penalties(data, model.alpha_W, model.alpha_H, model.l1_ratio, penalty_W, model.penalty_H)


def given_factors(model: Any, W: Any, H: Any, *, frozen: bool = False) -> tuple[Any, Any]:
    """Return the given factors that the initialization uses, with scikit-learn's warnings."""
    if model.init is None:
        return W, H
    takes_factors = INITS.find(model.init).takes_factors
    if model.solver in SOLVERS and SOLVERS[model.solver].positive_init and model.init == "nndsvd":
        warn_user(
            f"The multiplicative update ({model.solver!r}) solver cannot update zeros present in the "
            "initialization, and so leads to poorer results when used jointly with init='nndsvd'. You may "
            "try init='nndsvd-scaled' (the default) or init='nndsvda' instead.",
            UserWarning,
        )
    if takes_factors or (W is None and H is None):
        return W, H
    if W is not None or not frozen:
        warn_user(
            "When init!='custom', provided W or H are ignored. Set init='custom' to use them as "
            "initialization.",
            RuntimeWarning,
        )
    return None, H if frozen else None


@partial(documented, function=factorize)
def non_negative_factorization(
    X: MatrixLike,
    W: Any = None,
    H: Any = None,
    n_components: int | str | None = "auto",
    *,
    init: str | None = None,
    update_H: bool = True,
    solver: str = "cd",
    beta_loss: str | float = "frobenius",
    tol: float = 1e-4,
    max_iter: int = 200,
    alpha_W: float = 0.0,
    alpha_H: float | str = "same",
    l1_ratio: float = 0.0,
    random_state: Seed = None,
    verbose: int = 0,
    shuffle: bool = False,
    device: str | None = None,
) -> tuple[Any, Any, int]:
    """Compute a nonnegative matrix factorization, with scikit-learn's signature and return values.

    A drop-in replacement for ``sklearn.decomposition.non_negative_factorization``. See :class:`nonneg.NMF`
    for the objective, and :func:`nonneg.factorize` for a function with all options.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Nonnegative data. Never modified.
    W : array-like of shape (n_samples, n_components), optional
        Initial W for ``init="custom"``. Not used if `update_H` is False.
    H : array-like of shape (n_components, n_features), optional
        Initial H for ``init="custom"``. If `update_H` is False, it is the constant H for which W is found.
    n_components : int, "auto" or None, default "auto"
        Number of components. "auto" takes it from `W` or `H` if they are used, and is the number of features
        otherwise, as None is.
    init : str, optional
        Method used to initialize W and H: a name in `nonneg.initializers.INITS`, or "custom". None stands for
        "nndsvd-scaled" if ``n_components <= min(n_samples, n_features)`` and for "random" otherwise.
    update_H : bool, default True
        Whether to estimate H as well. If False, only W is.
    solver : str, default "cd"
        A name in `nonneg.solvers.SOLVERS`, "cd" or "auto".
    {beta_loss}
    {tol, max_iter, alpha_W, alpha_H, l1_ratio, random_state, verbose, shuffle, device}

    Returns
    -------
    W : array of shape (n_samples, n_components)
        A minimizer of the objective for the returned H.
    H : array of shape (n_components, n_features)
        The components.
    n_iter : int
        Number of iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg import non_negative_factorization
    >>> X = np.array([[1, 1], [2, 1], [3, 1.2], [4, 1], [5, 0.8], [6, 1]])
    >>> W, H, n_iter = non_negative_factorization(X, n_components=2, init="random", random_state=0)
    """
    typed(non_negative_factorization, locals())
    model = NMF(
        n_components, init=init, solver=solver, beta_loss=beta_loss, tol=tol, max_iter=max_iter,
        random_state=random_state, alpha_W=alpha_W, alpha_H=alpha_H, l1_ratio=l1_ratio, verbose=verbose,
        shuffle=shuffle, device=device,
    )  # fmt: skip
    model._validate_params()
    if sp.issparse(X) and not 1 <= beta_of(model.beta_loss) <= 2:
        # scikit-learn writes W H out for these losses, and so do our solvers X.
        X = X.toarray()
    with as_data_errors():
        X = X if hasattr(X, "shape") else np.asarray(X)
    if not update_H:
        if W is not None:
            warn_user("When update_H=False, the provided initial W is not used.", RuntimeWarning)
        H = _same_dtype(H, X, "H")
        k: Any = np.shape(H)[0] if n_components in ("auto", None) else n_components
        model.components_ = check_factor(H, (k, X.shape[1]), "H", zeros=True)
        model.n_features_in_ = X.shape[1]
        return model.transform(X), H, 1
    if init == "custom":
        W, H = _same_dtype(W, X, "W"), _same_dtype(H, X, "H")
    elif W is not None or H is not None:
        model.init = init or "random"  # given factors are ignored, with a warning
    if n_components == "auto" and (init != "custom" or W is H is None):
        model.n_components = None
    result = model.fit(X, W=W, H=H).result_
    return result.W, model.components_, result.n_iter


def _same_dtype(factor: Any, X: MatrixLike, name: str) -> Any:
    if factor is None:
        return None
    factor = factor if hasattr(factor, "dtype") else np.asarray(factor)
    expected = "float32" if is_float32(getattr(X, "dtype", np.float64)) else "float64"
    if str(factor.dtype).removeprefix("torch.") != expected:
        raise DataTypeError(
            f"{name} should have the same dtype as X, {expected}, got {factor.dtype}. Convert one of them."
        )
    return factor
