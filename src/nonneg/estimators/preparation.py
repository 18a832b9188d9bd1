"""From the parameters of an estimator to the arguments of a solver, and warnings about the outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from nonneg._warnings import warn_user
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.certificates.svd_lower_bound import DEFAULT_FACTOR, eckart_young_statement
from nonneg.data import DataMatrix
from nonneg.data.sparse import on_host
from nonneg.exceptions import InvalidParameterError, UnsupportedInputError
from nonneg.initializers.custom import init_from_anchors
from nonneg.initializers.registry import INITS
from nonneg.iteration import StopReason
from nonneg.iteration.progress import announce
from nonneg.losses.penalties import Penalties, scaled_penalties
from nonneg.solvers.encoding import encode
from nonneg.solvers.registry import SOLVERS, beta_of

ANCHORS = "anchors"
"""Successive projections, an initialization that `INITS` cannot hold because `separable` lies above it."""


def beta_loss_of(model: Any) -> float:
    """Return the beta of the loss of a model."""
    return beta_of(model.beta_loss)


def penalties_of(model: Any, data: DataMatrix) -> Penalties:
    """Return the penalties of a model, scaled to the data."""
    return scaled_penalties(data, model.alpha_W, model.alpha_H, model.l1_ratio)


def given_factors(model: Any, W: Any, H: Any, *, frozen: bool = False) -> tuple[Any, Any]:
    """Return the given factors that the initialization uses, with scikit-learn's warnings."""
    if model.solver not in ("auto", "cd"):
        SOLVERS.find(model.solver, also=("auto", "cd"))
    if model.init is None:
        return W, H
    takes_factors = model.init != ANCHORS and INITS.find(model.init, also=(ANCHORS,)).takes_factors
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


def resolved_init(model: Any, data: DataMatrix, k: int, W: Any, H: Any) -> tuple[str | None, Any, Any]:
    """Return the initialization as the solvers know it: "anchors" becomes given factors."""
    if model.init != ANCHORS or H is not None:
        return (None if model.init == ANCHORS else model.init), W, H
    if model.n_init > 1:
        raise InvalidParameterError(
            f"n_init={model.n_init} with init='anchors': all restarts would be equal, because successive "
            "projections do not draw random numbers. Use init='random', or n_init=1."
        )
    from nonneg.separable.spa import spa  # a family of its own, which most fits do not need

    found = spa(data, k)
    if found.n_components < k:
        raise InvalidParameterError(
            f"init='anchors' found {found.n_components} samples that explain all others, fewer than "
            f"n_components={k}. Ask for fewer, or use another init."
        )
    W, Ht = init_from_anchors(data, found.anchors)
    return "custom", W, Ht.T


def rank_of(model: Any, data: DataMatrix, W: Any = None, H: Any = None, **options: Any) -> int:
    """Return the number of components; options are those of `automatic_rank`."""
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
        shape = () if factor is None else _shape(factor)
        if len(shape) == 2:
            return int(shape[axis])
    return estimated_rank(model, data, **options)


def estimated_rank(model: Any, data: DataMatrix, **options: Any) -> int:
    """Estimate the number of components; keep the estimate in `rank_estimate_` and log its reason."""
    from nonneg.rank_selection.comparison import automatic_rank  # most fits do not need it

    if data.is_weighted:
        raise UnsupportedInputError(
            "The number of components cannot be estimated from entries with weights. Pass n_components."
        )
    verbose = int(getattr(model, "verbose", 0))
    found = automatic_rank(on_host(data), n_jobs=model.n_jobs, verbose=verbose, **options)
    model.rank_estimate_ = found
    announce(f"{type(model).__name__}: n_components='auto' takes {found.rank}. {found.reason}", verbose)
    return int(found.rank)


def _shape(factor: Any) -> tuple[int, ...]:
    return tuple(factor.shape) if hasattr(factor, "shape") else np.asarray(factor).shape


def warn_unless_converged(model: Any, reason: StopReason, statement: Statement) -> None:
    """Warn, as scikit-learn does, that `max_iter` ended the run; not if it is stationary all the same."""
    # A tolerance that was met is no surprise: the certificate says how far from stationary the result is.
    if reason is StopReason.MAX_ITER and model.tol > 0 and model.max_iter and not statement.holds:
        warn_user(
            f"Maximum number of iterations {model.max_iter} reached before the tolerance tol was reached. "
            f"{statement.sentence} Raise max_iter (now {model.max_iter}).",
            ConvergenceWarning,
        )


def lower_bound_statement(model: Any, data: DataMatrix, H: Any) -> Statement:
    """Compare the error of the components H with the Eckart-Young lower bound."""
    if beta_loss_of(model) != 2.0 or getattr(model, "robust", None) is not None:
        sentence = (
            "The Eckart-Young lower bound applies to the Frobenius error, but another loss was minimized."
        )
        return Statement("eckart-young-bound", sentence, None, DEFAULT_FACTOR, Verdict.NOT_VERIFIABLE)
    Ht = data.to_device(H.T)
    W, _ = encode(data, Ht, beta=2.0, penalties=penalties_of(model, data))
    return eckart_young_statement(data, W, Ht)
