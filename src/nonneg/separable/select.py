"""select_anchors: the samples that are the components of a separable factorization."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arguments import checked_checkpoint, checked_count, checked_verbose, is_count, is_number, typed
from nonneg._arrays import numpy_dtype, to_float64, to_numpy
from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import Array, IntArray
from nonneg.data import DataMatrix, LocalMatrix, as_data_matrix
from nonneg.data.door import Request, wrap
from nonneg.data.views import ScaledMatrix
from nonneg.exceptions import (
    InvalidDataError,
    InvalidParameterError,
    NonnegWarning,
    UnknownNameError,
    UnsupportedError,
)
from nonneg.iteration import Progress
from nonneg.separable.auto import number_of_anchors
from nonneg.separable.certificate import isolated_statement, with_statements
from nonneg.separable.preprocessing import Prepared, gathered, prepared, reduce_dimension
from nonneg.separable.registry import METHODS, checked_params, listed, not_accepted
from nonneg.separable.result import SelectionResult

WEIGHT_RULES = {"merit": ("paper", "printed"), "merit-exact": ("auto",), "fast-gradient": ("auto",)}
# Squares of larger entries overflow in float64, those of smaller ones vanish.
LARGEST, SMALLEST = 1e100, 1e-100


# NumPy's bool is not a subclass of Python's.
FLAG = ("True or False", lambda value: isinstance(value, bool | np.bool_))
VARIANTS = ("max", "rand")
CHECKS: dict[str, tuple[str, Any]] = {
    "lam": (
        "a finite number not below 0, or a rule: 'paper' or 'printed' for 'merit', 'auto' for others",
        lambda value: (
            value in ("auto", "paper", "printed")
            if isinstance(value, str)
            else is_number(value) and 0 <= value < math.inf
        ),
    ),
    "n_explained": ("None or an integer of at least 1", lambda value: value is None or is_count(value)),
    "mu": (
        "a finite number above 0, for example 1e-5",
        lambda value: is_number(value) and 0 < value < math.inf,
    ),
    "max_iter": ("an integer of at least 1", is_count),
    "tol": (
        "None or a number not below 0",
        lambda value: value is None or (is_number(value) and value >= 0),
    ),
    "callback": ("None or a function of one argument", lambda value: value is None or callable(value)),
    "energy": (
        "above 0 and at most 1, for example 0.99",
        lambda value: value is None or (is_number(value) and 0 < value <= 1),
    ),
    "merge": (
        "above 0, for example 0.001",
        lambda value: value is None or (is_number(value) and value > 0),
    ),
    "centered": FLAG,
    "clean_up": FLAG,
    "tie_tol": (
        "a share from 0 to 1, for example 1e-6",
        lambda value: is_number(value) and 0 <= value <= 1,
    ),
    "n_members": (
        "'auto' or an integer of at least 1",
        lambda value: value == "auto" if isinstance(value, str) else is_count(value),
    ),
    "snr": ("None or a number of decibels", lambda value: value is None or is_number(value)),
    "memory_limit": (
        "a number of bytes above 0, for example 8e9",
        lambda value: is_number(value) and value > 0,
    ),
}


def select_anchors(
    X: Any,
    n_components: int | None = None,
    *,
    method: str = "auto",
    method_params: Mapping[str, Any] | None = None,
    init: Any = None,
    tol: float | None = None,
    max_iter: int | None = None,
    energy: float | None = None,
    normalize: str | None = None,
    reduce: int | None = None,
    centered: bool = False,
    merge: float | None = None,
    rng: Seed = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    callback: Callable[[Progress], bool | None] | None = None,
    checkpoint: Any = None,
) -> SelectionResult:
    """Find the samples of which all others are nonnegative combinations.

    Parameters
    ----------
    X : array, sparse matrix, tensor or Dask array of shape (n_samples, n_features)
        The data, one sample per row; never modified. A sparse tensor stays on its device with "spa" and is
        copied to host memory by the other methods.
    n_components : int, optional
        The number of anchors. None takes the number at which the residual of the samples, as a curve over the
        number of anchors of "snpa", bends most; the statement "number-of-anchors" of the certificate shows
        the curve and says so where no number stands out.
    method : str, default "auto"
        "auto": "spa", "snpa", "smoothed-spa", "merit-exact" and, up to 5000 samples, "merit" propose; the
        anchors whose convex hull leaves the smallest sum of squares of the samples are returned, or those of
        a cheaper method that are equal within the standard error. The statement "candidates" of the
        certificate shows the residual of each. Or one method: "merit" (as published), "merit-exact" (solved
        to a duality gap), "fast-gradient", "spa", "snpa", "xray", "fast-anchor", "vca", or "smoothed-spa",
        which averages samples. `nonneg.separable.METHODS` has them.
    method_params : dict, optional
        Parameters of this method alone, as its registry entry lists them; for "merit" for example `lam`, the
        weight of the row sparsity, and `mu`, its smoothing; for "smoothed-spa" `n_members`, the number of
        samples that a vertex averages.
    init : array of int, str, SelectionResult or None
        Convex methods: initial anchors as row indices of X, an earlier result, or the name of a greedy method
        that finds them. "fast-gradient" derives its automatic weight from these anchors.
    tol : float, optional
        "auto" and convex methods: the stopping tolerance; None is the default of each method.
    max_iter : int, optional
        "auto" and convex methods: maximum number of iterations; None is the default of each method, 100 for
        both MERIT algorithms and 150 for "fast-gradient".
    energy : float, optional
        First preprocessing step: keep the samples with the largest norms that together account for this
        fraction of the squared norm, for example 0.99.
    normalize : {"l1", "l2"}, optional
        Second step: divide every sample by this norm. Samples that are all zeros are left out.
    reduce : int, optional
        Third step: project the samples onto this number of leading directions, at least `n_components`, or
        one fewer with ``centered=True``.
    centered : bool, default False
        Whether the mean is subtracted before that projection (PCA) or not (SVD).
    merge : float, optional
        Fourth step: keep one of the samples whose distances are below this fraction of the largest norm.
    rng : None, int, Generator, RandomState or SeedSequence
        Random numbers, for methods that use them.
    n_jobs : int or None
        Number of threads; None uses all cores.
    verbose : int, default 0
        "auto" and convex methods: 1 shows a line with objective, rate and time left.
    callback : callable, optional
        "auto" and convex methods: called with a `Progress` after each iteration; True stops.
    checkpoint : str or path, optional
        "auto", "merit" and "merit-exact": a folder in which the run is saved and from which it is resumed.

    Returns
    -------
    SelectionResult
        The anchors as row indices of X, and what the method reports. Row maxima and coefficients are those of
        all samples; samples that a preprocessing step left out have none.

    Raises
    ------
    InvalidParameterError
        If a parameter has a wrong value, or fewer distinct samples exist than `n_components`.
    UnsupportedError
        If the method does not accept a parameter, or the data.

    See Also
    --------
    nonneg.SeparableNMF : The estimator: anchors as components, weights by `transform`.

    Notes
    -----
    Samples are taken as mixtures whose weights sum to one; where samples differ in scale, pass `normalize`.

    Chunked (dask) data stay where they are for the greedy methods. For "auto" and the convex ones they are
    reduced to twice as many directions as anchors (unless `reduce` is given) and gathered.

    There is no `n_init`, because the convex problems have no local minima, and no `sample_weight`, because
    anchors are extreme samples, whatever their weights.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg import select_anchors
    >>> X = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.3, 0.7]])
    >>> select_anchors(X, 2, method="spa").anchors.tolist()
    [0, 2]
    """
    typed(select_anchors, locals())
    name = METHODS.name_of(method)
    entry = METHODS.find(name)
    shared = {
        "init": init, "tol": tol, "max_iter": max_iter, "verbose": checked_verbose(verbose) or None,
        "callback": callback, "checkpoint": checked_checkpoint(checkpoint),
    }  # fmt: skip
    keywords = _checked_keywords(name, shared, method_params)
    steps = {"energy": energy, "normalize": normalize, "reduce": reduce, "centered": centered, "merge": merge}
    _check_values(steps)
    if entry.seeded:
        keywords["rng"] = rng
    if centered and not entry.centered:
        raise not_accepted(name, "centered=True", [key for key, other in METHODS.items() if other.centered])
    with threads(n_jobs):
        data = wrap(
            X,
            Request(
                signed=entry.signed,
                who=f"select_anchors with method={name!r}",
                masks=False,
                sparse_arrays="sparse-array" in entry.inputs,
            ),
        )
        _check_entries(data, name)
        if n_components is not None and checked_count("n_components", n_components) > data.shape[0]:
            raise InvalidParameterError(
                f"n_components={n_components} is more than the {data.shape[0]} samples that X has. Ask for "
                "fewer."
            )
        points = _checked_points(data, n_components, steps, in_process=entry.in_process)
        number = None
        if n_components is None:
            number = number_of_anchors(points.data)
            n_components = number.number
        if "init" in keywords:
            keywords["init"] = _init_among(keywords["init"], points, data, n_components, rng)
        result = entry.run(points.data, n_components, **keywords)
        if number is None:
            _check_found(result, n_components, name)
        else:
            result = replace(result, certificate=result.certificate.with_statements([number.statement()]))
        result = _in_rows_of(with_statements(result, points.data), points, data)
        _warn_of_zeros(data, result.anchors)
    return result


def _checked_keywords(
    name: str, shared: Mapping[str, Any], method_params: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the keywords of a method, or refuse those that it does not accept."""
    # None is left to the method, which may have a default of its own.
    keywords = {key: value for key, value in shared.items() if value is not None}
    for key in keywords:
        if key not in METHODS[name].shared:
            raise not_accepted(name, key, [other for other in METHODS if key in METHODS[other].shared])
    keywords |= checked_params(name, method_params)
    _check_values(keywords)
    if "variant" in keywords:
        UnknownNameError.check("variant", keywords["variant"], VARIANTS)
    if isinstance(lam := keywords.get("lam"), str) and lam not in WEIGHT_RULES.get(name, ()):
        raise not_accepted(name, f"{lam=}", [key for key, rules in WEIGHT_RULES.items() if lam in rules])
    return keywords


def _check_values(keywords: Mapping[str, Any]) -> None:
    for key, value in keywords.items():
        meant, possible = CHECKS.get(key, ("", lambda value: True))
        if not possible(value):
            raise InvalidParameterError(f"{key} must be {meant}, got {value!r}.")


def _checked_points(
    data: DataMatrix, n_components: int | None, steps: dict[str, Any], *, in_process: bool
) -> Prepared:
    """Return the samples after preprocessing, which must leave as many as there are anchors."""
    points = prepared(data, **steps)
    if n_components is not None and n_components > points.data.shape[0]:
        raise InvalidParameterError(
            f"n_components={n_components} is more than the {points.data.shape[0]} samples that "
            f"{listed(points.details)} left. Ask for fewer, or keep more samples."
        )
    if in_process:
        points = _gathered(points, n_components, steps["centered"])
    if steps["centered"] and "reduce" not in points.details:
        raise InvalidParameterError(
            "centered=True applies to the projection by reduce=, but the samples are not reduced. Also "
            "pass reduce=, the number of directions."
        )
    return points


def _check_entries(data: DataMatrix, name: str) -> None:
    if data.weights is not None or data.has_missing:
        raise UnsupportedError(
            f"method={name!r} needs complete data without weights. Fill the missing entries first, or "
            "use NMF."
        )
    largest = max(abs(float(extreme)) for extreme in data.extremes())
    if largest == 0.0:
        raise InvalidParameterError("All samples are zero: there is no anchor to find. Check X.")
    if not SMALLEST < largest < LARGEST:
        raise InvalidDataError(
            f"The largest entry of X is {largest:.3g} in size: squares of such numbers overflow or vanish. "
            "Divide X by it; the anchors stay the same."
        )


def _gathered(points: Prepared, n_components: int | None, centered: bool) -> Prepared:
    if isinstance(points.data, ScaledMatrix):
        return Prepared(points.data.materialized(), points.kept, points.details)
    if isinstance(points.data, LocalMatrix):
        return points
    n, m = points.data.shape
    if "reduce" not in points.details:
        rank = m if n_components is None else 2 * n_components
        if rank < m:
            points = reduce_dimension(points, min(rank, n), centered=centered)
    if points.data.shape[1] > 1000:
        raise UnsupportedError(
            f"The samples would be gathered with {points.data.shape[1]} features each. Pass reduce=, the "
            "number of leading directions to keep (for example twice the number of anchors)."
        )
    dtype = numpy_dtype(points.data.dtype)
    return Prepared(as_data_matrix(gathered(points.data).astype(dtype)), points.kept, points.details)


def _check_found(result: SelectionResult, n_components: int, name: str) -> None:
    n_found = result.n_components
    if n_found == n_components:
        return
    if result.coefficients is not None or result.gap is not None:
        raise InvalidParameterError(
            f"method={name!r} gives weight to {n_found} samples, fewer than n_components={n_components}. "
            f"Ask for {n_found} or fewer, or lower lam."
        )
    raise InvalidParameterError(
        f"method={name!r} found {n_found} anchors, fewer than n_components={n_components}: they explain all "
        "samples up to rounding (duplicated samples, or a rank below n_components). Ask for "
        f"{n_found} or fewer."
    )


def _warn_of_zeros(data: DataMatrix, anchors: IntArray) -> None:
    zero = anchors[~to_float64(data.take_rows(anchors)).any(axis=1)]
    if len(zero):
        warnings.warn(
            f"Sample {zero[0]} was found as an anchor, but it is all zeros: among mixtures whose weights "
            "sum to one, the origin is a vertex like any other. Leave such samples out, or pass "
            "normalize='l1', which does.",
            NonnegWarning,
            stacklevel=3,
        )


def _in_rows_of(result: SelectionResult, points: Prepared, data: DataMatrix) -> SelectionResult:
    details = {**points.details, **result.details}
    origin, n_samples = points.kept, data.shape[0]
    if "isolated" in details:
        if origin is not None:
            details["isolated"] = origin[details["isolated"]]
        statement = isolated_statement(details["isolated"])
        result = replace(result, certificate=result.certificate.with_statements([statement]))
    if result.members is not None:
        members = tuple(rows if origin is None else origin[rows] for rows in result.members)
        result = replace(
            result, members=members, components=_averages(result.components, members, points, data)
        )
    if origin is None:
        return replace(result, details=details)
    maxima = coefficients = None
    if result.row_maxima is not None:
        maxima = np.zeros(n_samples)
        maxima[origin] = result.row_maxima
    if result.coefficients is not None:
        parts = result.coefficients.tocoo()
        places = (origin[parts.row], origin[parts.col])
        coefficients = sp.csc_array((parts.data, places), shape=(n_samples, n_samples))
    return replace(
        result,
        anchors=origin[result.anchors],
        row_maxima=maxima,
        coefficients=coefficients,
        details=details | {"kept": origin},
    )


def _averages(components: Any, members: Sequence[IntArray], points: Prepared, data: DataMatrix) -> Array:
    # The medians of the members in the features of X.
    rows = [to_float64(data.take_rows(part)) for part in members]
    if components is None or "reduce" in points.details:
        # The method saw other features than X has: the same average of the samples themselves.
        components = np.stack([np.median(part, axis=0) for part in rows])
    elif "normalize" in points.details:
        order = int(points.details["normalize"]["norm"][1:])
        sizes = [np.median(np.linalg.norm(part, ord=order, axis=1)) for part in rows]
        components = to_float64(components) * np.stack(sizes)[:, None]
    host = to_float64(components)
    # Those of nonnegative samples are not negative.
    return data.to_device(np.clip(host, 0.0, None) if data.extremes()[0] >= 0 else host)


def _init_among(init: Any, points: Prepared, data: DataMatrix, n_components: int, rng: Seed) -> Any:
    """Return the initial anchors as indices of the samples that preprocessing kept."""
    if isinstance(init, str):
        return _greedy_init(init, points, data, n_components, rng)
    init = getattr(init, "anchors", init)
    rows = _checked_anchors(to_numpy(init) if hasattr(init, "device") else init, data.shape[0])
    if points.kept is None:
        return rows
    places = np.minimum(np.searchsorted(points.kept, rows), len(points.kept) - 1)
    dropped = rows[points.kept[places] != rows]
    if dropped.size:
        steps = [name for name in points.details if name != "reduce"]
        raise InvalidParameterError(
            f"init names sample {dropped[0]}, which {listed(steps)} left out. Name another."
        )
    return places.astype(np.intp)


def _greedy_init(name: str, points: Prepared, data: DataMatrix, n_components: int, rng: Seed) -> IntArray:
    greedy = {key: method for key, method in METHODS.items() if method.kind == "greedy"}
    UnknownNameError.check("init", name, greedy)
    entry = METHODS.find(name)
    # Projections of nonnegative samples are accepted, as they are in a search.
    if not entry.signed and data.extremes()[0] < 0:
        able = listed(key for key, method in greedy.items() if method.signed)
        raise UnsupportedError(f"init={name!r} does not accept negative entries, but X has some; {able} do.")
    anchors: IntArray = entry.run(points.data, n_components, **({"rng": rng} if entry.seeded else {})).anchors
    return anchors


def _checked_anchors(init: Any, n_points: int) -> IntArray:
    """Return the row indices that a user gave, or refuse them."""
    anchors = np.asarray(init)
    if anchors.ndim != 1 or anchors.size == 0 or anchors.dtype.kind not in "iu":
        raise InvalidParameterError(
            f"init must be None, the name of a greedy method, or row indices. Got {type(init).__name__} of "
            f"shape {np.shape(init)}."
        )
    bad = anchors[(anchors < 0) | (anchors >= n_points)]
    if bad.size:
        raise InvalidParameterError(f"init contains {bad[0]}, but samples are 0 to {n_points - 1}.")
    if len(np.unique(anchors)) < len(anchors):
        raise InvalidParameterError("init names a sample twice. Name every anchor once.")
    return anchors.astype(np.intp)
