"""`non_negative_factorization`: the counterpart of scikit-learn's function."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._devices import ENCODING_ITERATIONS, chosen_device, device_work, likely_iterations
from nonneg._random import Seed
from nonneg.data.door import Request, wrap
from nonneg.estimators.documentation import documented
from nonneg.estimators.nmf import NMF
from nonneg.estimators.preparation import beta_loss_of, given_factors, penalties_of, warn_unless_converged
from nonneg.exceptions import DataTypeError
from nonneg.initializers.given import check_factor
from nonneg.losses.beta import objective
from nonneg.solvers.encoding import encode
from nonneg.solvers.factorize import run_factorization


@documented
def non_negative_factorization(
    X: Any,
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
    tol : float, default 1e-4
        Tolerance of the stopping rule.
    max_iter : int, default 200
        Maximum number of iterations.
    {alpha_W, alpha_H, l1_ratio, random_state}
    verbose : int, default 0
        1 shows a progress line.
    {shuffle, device}

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
    model = NMF(
        n_components, init=init, solver=solver, beta_loss=beta_loss, tol=tol, max_iter=max_iter,
        random_state=random_state, alpha_W=alpha_W, alpha_H=alpha_H, l1_ratio=l1_ratio, verbose=verbose,
        shuffle=shuffle,
    )  # fmt: skip
    model._validate_params()
    beta = beta_loss_of(model)
    if sp.issparse(X) and not 1 <= beta <= 2:
        # scikit-learn writes W H out for these losses, and so do our solvers X.
        X = X.toarray()
    n_iter = likely_iterations(max_iter, beta=beta) if update_H else ENCODING_ITERATIONS
    found = chosen_device(device, X, n_components, n_iter=n_iter)
    who = "non_negative_factorization"
    data = wrap(X, Request(positive=beta <= 0, who=who, device=found, sparse_arrays=True))
    penalties = penalties_of(model, data)
    if not update_H:
        if W is not None:
            warnings.warn(
                "When update_H=False, the provided initial W is not used.", RuntimeWarning, stacklevel=2
            )
        H = _same_dtype(H, data.dtype, "H")
        k = n_components if isinstance(n_components, int) else np.shape(H)[0]
        Ht = data.to_device(check_factor(H, (k, data.shape[1]), "H", zeros=True).T.copy())
        with device_work(data, k):
            return data.to_caller(encode(data, Ht, beta=beta, penalties=penalties)[0]), H, 1
    if init == "custom":
        W, H = _same_dtype(W, data.dtype, "W"), _same_dtype(H, data.dtype, "H")
    else:
        model.init = init or "random"  # given factors are ignored, with a warning
        W, H = given_factors(model, W, H)
    k = n_components if isinstance(n_components, int) else data.shape[1]
    if n_components == "auto" and init == "custom":
        k = next((n for n in (np.shape(H)[:1], np.shape(W)[1:]) if n), (k,))[0]
    convex = 1 <= beta <= 2
    result = run_factorization(
        data, k, beta=beta, penalties=penalties, solver=solver, init=init, W=W, H=H, max_iter=max_iter,
        tol=tol, rng=random_state, shuffle=shuffle, verbose=verbose, final_encoding=convex,
        caller="non_negative_factorization",
    )  # fmt: skip
    warn_unless_converged(model, result.stop_reason, result.certificate["stationarity"], stacklevel=3)
    W = result.W
    if not convex:
        # Another local minimum over W may lie lower than that of the iterations, or higher.
        encoded, _ = encode(data, result.H.T, beta=beta, penalties=penalties)
        if objective(data, encoded, result.H.T, beta=beta, penalties=penalties) < result.loss:
            W = encoded
    W, H = data.to_caller(W), data.to_caller(result.H)
    return W, np.ascontiguousarray(H) if isinstance(H, np.ndarray) else H, result.n_iter


def _same_dtype(factor: Any, dtype: Any, name: str) -> Any:
    if factor is None:
        return None
    factor = factor if hasattr(factor, "dtype") else np.asarray(factor)
    if str(factor.dtype).removeprefix("torch.") != str(dtype).removeprefix("torch."):
        raise DataTypeError(
            f"{name} should have the same dtype as X, {dtype}, got {factor.dtype}. Convert one of them."
        )
    return factor
