"""select_anchors: which data points are the components of a separable factorization."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import numpy_dtype, to_float64
from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import IntArray, MatrixLike
from nonneg.data import DataMatrix, LocalMatrix, as_data_matrix
from nonneg.data.checks import checked_data
from nonneg.data.views import ScaledMatrix
from nonneg.exceptions import InvalidParameterError, NonnegWarning, UnknownNameError, UnsupportedError
from nonneg.iteration import Progress
from nonneg.separable.arguments import check_arguments
from nonneg.separable.given_points import init_among
from nonneg.separable.preprocessing import Prepared, gathered, prepared, reduce_dimension
from nonneg.separable.registry import METHODS, Method, find_method, method_name
from nonneg.separable.result import SelectionResult
from nonneg.separable.selection_certificate import with_statements

DEFAULTS: dict[str, Any] = {
    "lam": "auto",
    "mu": 1e-5,
    "max_iter": 100,
    "tol": None,
    "init": None,
    "callback": None,
    "verbose": 0,
    "checkpoint": None,
}


def select_anchors(
    X: MatrixLike,
    n_anchors: int | None = None,
    *,
    method: str = "merit",
    lam: float | str = "auto",
    mu: float = 1e-5,
    max_iter: int = 100,
    tol: float | None = None,
    init: Any = None,
    energy: float | None = None,
    normalize: str | None = None,
    reduce: int | None = None,
    centered: bool = False,
    merge: float | None = None,
    rng: Seed = None,
    n_jobs: int | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    verbose: int = 0,
    checkpoint: Any = None,
    **options: Any,
) -> SelectionResult:
    """Find the data points of which all others are nonnegative combinations.

    Parameters
    ----------
    X : array, sparse matrix, tensor or dask array of shape (n_samples, n_features)
        The data, one point a row; never changed.
    n_anchors : int, optional
        How many anchors. None lets the convex methods take the number from the largest drop of the sorted row
        maxima.
    method : str
        A name in `nonneg.separable.METHODS`: "merit", "fast-gradient", "spa", "snpa", "xray", "fast-anchor",
        "preconditioned-spa" or "vca".
    lam : float or "auto"
        Convex methods: the weight of the row sparsity, for "merit" as in the paper's (18). "auto" balances it
        with the error of successive projections.
    mu : float
        "merit": the smoothing of the row sparsity, above 0.
    max_iter : int
        Convex methods: at most so many iterations.
    tol : float, optional
        Convex methods: when to stop; the method's own rule and value by default.
    init : array of int, str, matrix, SelectionResult or None
        Convex methods: anchors to start from as rows of X, or the name of a greedy method that finds them;
        "merit" also takes coefficients. "fast-gradient" takes its automatic weight from these anchors.
    energy : float, optional
        First step: keep the longest points that together hold this share of the squared norm, for example
        0.99.
    normalize : {"l1"}, optional
        Second step: divide every point by its l1 norm. Points of zeros are left out.
    reduce : int, optional
        Third step: project the points onto so many leading directions, at least as many as anchors.
    centered : bool
        Whether the mean is taken off before that projection (PCA) or not (SVD).
    merge : float, optional
        Fourth step: of points within this share of the largest norm of one another keep one.
    rng : None, int, Generator, RandomState or SeedSequence
        For methods that draw.
    n_jobs : int or None
        Threads of the kernels; None takes all cores.
    callback : callable, optional
        Convex methods: called with a `Progress` after each iteration; True stops.
    verbose : int
        Convex methods: 1 shows a line with objective, rate and time left.
    checkpoint : str or path, optional
        "merit": a folder in which the run is saved and from which it is taken up again.
    **options : Any
        Further options of the method, as its registry entry lists them.

    Returns
    -------
    SelectionResult
        The anchors as rows of X, and what the method reports. Row maxima and coefficients are those of all
        points; points that a step left out have none.

    Raises
    ------
    InvalidParameterError
        If a parameter is wrong, or fewer points can be told apart than anchors are asked for.
    UnsupportedError
        If the method does not take an option, or not the data.

    See Also
    --------
    nonneg.SeparableNMF : The estimator: anchors as components, weights by `transform`.

    Notes
    -----
    Chunked (dask) data stay where they are for the greedy methods. For the convex ones they are reduced to
    twice as many directions as anchors (`reduce` says otherwise) and gathered.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg import select_anchors
    >>> X = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.3, 0.7]])
    >>> select_anchors(X, 2, method="spa").anchors.tolist()
    [0, 2]
    """
    name = method_name(method)
    entry = find_method(name)
    keywords = _keywords(
        name,
        entry,
        {
            "lam": lam, "mu": mu, "max_iter": max_iter, "tol": tol, "init": init, "callback": callback,
            "verbose": verbose, "checkpoint": checkpoint,
        },
        options,
    )  # fmt: skip
    check_arguments({**keywords, "energy": energy, "merge": merge, "centered": centered})
    if entry.seeded:
        keywords["rng"] = rng
    if centered and not entry.centered:
        able = sorted(other for other, method in METHODS.items() if method.centered)
        raise UnsupportedError(
            f"method={name!r} looks at the points from the origin: it does not take centered=True. {able} do."
        )
    with threads(n_jobs):
        data = checked_data(X, signed=entry.signed, who=f"select_anchors with method={name!r}", masks=False)
        _check_entries(data, name)
        n_anchors = _checked_count(n_anchors, data, name, entry)
        points = prepared(
            data, energy=energy, normalize=normalize, reduce=reduce, centered=centered, merge=merge
        )
        _check_left(n_anchors, points)
        if entry.in_process:
            points = _brought_home(points, n_anchors, centered)
        if centered and "reduce" not in points.facts:
            raise InvalidParameterError(
                "centered=True says how reduce= projects the points, and they are not reduced. Pass reduce=, "
                "the number of directions, as well."
            )
        if "init" in keywords:
            keywords["init"] = init_among(keywords["init"], points, data, n_anchors, rng)
        found = entry.run(points.data, n_anchors, **keywords)
        _check_found(found, n_anchors, name)
        found = _in_rows_of(with_statements(found, points.data), points, data.shape[0])
        _warn_of_zeros(data, found.anchors)
    return found


def _keywords(name: str, entry: Method, common: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    keywords = {}
    for key, value in common.items():
        default = DEFAULTS[key]
        untouched = value is default or (isinstance(value, str | int | float) and value == default)
        if key in entry.options:
            if not (untouched and default is None):
                keywords[key] = value
        elif not untouched:
            raise _not_taken(name, key, value)
    for key, value in options.items():
        if key not in entry.options:
            if any(key in method.options for method in METHODS.values()):
                raise _not_taken(name, key, value)
            known = sorted(entry.options | {"rng", "n_jobs", "energy", "normalize", "reduce", "merge"})
            raise UnknownNameError.of("option", key, known)
    return keywords | options


def _not_taken(name: str, key: str, value: Any) -> UnsupportedError:
    takers = sorted(other for other, method in METHODS.items() if key in method.options)
    return UnsupportedError(f"method={name!r} does not take {key}={value!r}. {takers} do.")


def _check_entries(data: DataMatrix, name: str) -> None:
    if data.weights is not None or data.has_missing:
        raise UnsupportedError(
            f"method={name!r} takes complete data without weights. Fill the missing entries first, or use "
            "NMF."
        )
    low, high = data.extremes()
    if low == high == 0:
        raise InvalidParameterError("All points are zero: there is no anchor to find. Check X.")


def _checked_count(n_anchors: Any, data: DataMatrix, name: str, entry: Method) -> int | None:
    if n_anchors is None:
        if entry.needs_n_anchors:
            able = sorted(key for key, method in METHODS.items() if not method.needs_n_anchors)
            raise InvalidParameterError(
                f"method={name!r} needs n_anchors, the number of points to pick. {able} can do without."
            )
        return None
    if not isinstance(n_anchors, Integral) or isinstance(n_anchors, bool) or n_anchors < 1:
        raise InvalidParameterError(f"n_anchors must be None or an integer of at least 1, got {n_anchors!r}.")
    if int(n_anchors) > data.shape[0]:
        raise InvalidParameterError(
            f"n_anchors={n_anchors} is more than the {data.shape[0]} points that X has. Ask for fewer."
        )
    return int(n_anchors)


def _check_left(n_anchors: int | None, points: Prepared) -> None:
    if n_anchors is not None and n_anchors > points.data.shape[0]:
        raise InvalidParameterError(
            f"n_anchors={n_anchors} is more than the {points.data.shape[0]} points that the steps "
            f"{sorted(points.facts)} left. Ask for fewer, or keep more points."
        )


def _brought_home(points: Prepared, n_anchors: int | None, centered: bool) -> Prepared:
    if isinstance(points.data, ScaledMatrix):
        return Prepared(points.data.materialized(), points.kept, points.facts)
    if isinstance(points.data, LocalMatrix):
        return points
    n, m = points.data.shape
    if "reduce" not in points.facts:
        wanted = m if n_anchors is None else 2 * n_anchors
        if wanted < m:
            points = reduce_dimension(points, min(wanted, n), centered=centered)
    if points.data.shape[1] > 1000:
        raise UnsupportedError(
            f"The points would be gathered with {points.data.shape[1]} features each. Pass reduce=, the "
            "number of leading directions to keep (twice the number of anchors, say)."
        )
    dtype = numpy_dtype(points.data.dtype)
    return Prepared(as_data_matrix(gathered(points.data).astype(dtype)), points.kept, points.facts)


def _check_found(found: SelectionResult, n_anchors: int | None, name: str) -> None:
    if n_anchors is not None and found.n_anchors < n_anchors:
        raise InvalidParameterError(
            f"method={name!r} found {found.n_anchors} anchors where n_anchors={n_anchors} were asked for: "
            "they explain all points up to rounding (duplicated points, or a rank below n_anchors). Ask for "
            f"{found.n_anchors} or fewer."
        )


def _warn_of_zeros(data: DataMatrix, anchors: IntArray) -> None:
    zero = anchors[~to_float64(data.take_rows(anchors)).any(axis=1)]
    if len(zero):
        warnings.warn(
            f"Sample {zero[0]} was found as an anchor, and it is all zeros: among mixtures whose weights sum "
            "to one the origin is a corner like others. Leave such samples out, or pass normalize='l1', "
            "which does.",
            NonnegWarning,
            stacklevel=3,
        )


def _in_rows_of(found: SelectionResult, points: Prepared, n_samples: int) -> SelectionResult:
    facts = {**points.facts, **found.facts}
    if points.kept is None:
        return replace(found, facts=facts)
    kept: IntArray = points.kept
    maxima = coefficients = None
    if found.row_maxima is not None:
        maxima = np.zeros(n_samples)
        maxima[kept] = found.row_maxima
    if found.coefficients is not None:
        parts = found.coefficients.tocoo()
        places = (kept[parts.row], kept[parts.col])
        coefficients = sp.csc_array((parts.data, places), shape=(n_samples, n_samples))
    return replace(
        found,
        anchors=kept[found.anchors],
        row_maxima=maxima,
        coefficients=coefficients,
        facts=facts | {"kept": kept},
    )
