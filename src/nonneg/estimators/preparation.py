"""Arguments of a solver from the parameters of an estimator, and warnings about the outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from nonneg._warnings import warn_user
from nonneg.certificates.certificate import Statement
from nonneg.data import DataMatrix
from nonneg.data.sparse import on_host
from nonneg.exceptions import InvalidParameterError, UnsupportedInputError
from nonneg.initializers.registry import INITS
from nonneg.iteration import StopReason
from nonneg.iteration.progress import announce
from nonneg.losses.penalties import Penalties, scaled_penalties
from nonneg.solvers.registry import SOLVERS


def penalties_of(model: Any, data: DataMatrix) -> Penalties:
    """Return the penalties of a model, scaled to the data."""
    return scaled_penalties(data, model.alpha_W, model.alpha_H, model.l1_ratio)


def given_factors(model: Any, W: Any, H: Any, *, frozen: bool = False) -> tuple[Any, Any]:
    """Return the given factors that the initialization uses, with scikit-learn's warnings."""
    if model.solver not in ("auto", "cd"):
        SOLVERS.find(model.solver, also=("auto", "cd"))
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


def rank_of(model: Any, data: DataMatrix, W: Any = None, H: Any = None, **options: Any) -> int:
    """Return the number of components; options are those of `automatic_rank`, for "auto"."""
    vars(model).pop("rank_estimate_", None)
    if model.n_components is None:
        return data.shape[1]
    if isinstance(model.n_components, bool):
        raise InvalidParameterError(
            f"n_components must be a positive number of components, 'auto' or None, got {model.n_components}."
        )
    if model.n_components != "auto":
        return int(model.n_components)
    for factor, axis in ((H, 0), (W, 1)):
        if factor is not None and len(np.shape(factor)) == 2:
            return int(np.shape(factor)[axis])
    if data.is_weighted:
        raise UnsupportedInputError(
            "The number of components cannot be estimated from entries with weights. Pass n_components."
        )
    from nonneg.rank_selection.comparison import automatic_rank  # most fits do not need it

    verbose = int(getattr(model, "verbose", 0))
    estimate = automatic_rank(on_host(data), n_jobs=model.n_jobs, verbose=verbose, **options)
    model.rank_estimate_ = estimate
    announce(f"{type(model).__name__}: n_components='auto' takes {estimate.rank}. {estimate.reason}", verbose)
    return int(estimate.rank)


def warn_unless_converged(model: Any, reason: StopReason, statement: Statement) -> None:
    """Warn, as scikit-learn does, that `max_iter` ended the run; not if it is stationary all the same."""
    # A tolerance that was met is no surprise: the certificate says how far from stationary the result is.
    if reason is StopReason.MAX_ITER and model.tol > 0 and model.max_iter and not statement.holds:
        warn_user(
            f"Maximum number of iterations {model.max_iter} reached before the tolerance tol was reached. "
            f"{statement.sentence} Raise max_iter (now {model.max_iter}).",
            ConvergenceWarning,
        )
