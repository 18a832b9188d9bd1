"""`non_negative_factorization`: the counterpart of scikit-learn's function."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import is_float32
from nonneg._random import Seed
from nonneg._warnings import warn_user
from nonneg.estimators.documentation import documented
from nonneg.estimators.nmf import NMF
from nonneg.exceptions import DataTypeError
from nonneg.initializers.custom import check_factor
from nonneg.solvers.registry import beta_of


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
    {max_iter, alpha_W, alpha_H, l1_ratio, random_state, verbose, shuffle, device}

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
        init=init, solver=solver, beta_loss=beta_loss, tol=tol, max_iter=max_iter,
        random_state=random_state, alpha_W=alpha_W, alpha_H=alpha_H, l1_ratio=l1_ratio, verbose=verbose,
        shuffle=shuffle, device=device,
    )  # fmt: skip
    model._validate_params()
    if sp.issparse(X) and not 1 <= beta_of(model.beta_loss) <= 2:
        # scikit-learn writes W H out for these losses, and so do our solvers X.
        X = X.toarray()
    X = X if hasattr(X, "shape") else np.asarray(X)
    if not update_H:
        if W is not None:
            warn_user("When update_H=False, the provided initial W is not used.", RuntimeWarning)
        H = _same_dtype(H, X, "H")
        k = n_components if isinstance(n_components, int) else np.shape(H)[0]
        model.components_ = check_factor(H, (k, X.shape[1]), "H", zeros=True)
        model.n_features_in_ = X.shape[1]
        return model.transform(X), H, 1
    if init == "custom":
        W, H = _same_dtype(W, X, "W"), _same_dtype(H, X, "H")
    elif W is not None or H is not None:
        model.init = init or "random"  # given factors are ignored, with a warning
    k = n_components if isinstance(n_components, int) else X.shape[1]
    if n_components == "auto" and init == "custom":
        k = next((n for n in (np.shape(H)[:1], np.shape(W)[1:]) if n), (k,))[0]
    result = model.set_params(n_components=k)._fit(X, W, H)
    return result.W, model.components_, result.n_iter


def _same_dtype(factor: Any, X: Any, name: str) -> Any:
    if factor is None:
        return None
    factor = factor if hasattr(factor, "dtype") else np.asarray(factor)
    expected = "float32" if is_float32(getattr(X, "dtype", np.float64)) else "float64"
    if str(factor.dtype).removeprefix("torch.") != expected:
        raise DataTypeError(
            f"{name} should have the same dtype as X, {expected}, got {factor.dtype}. Convert one of them."
        )
    return factor
