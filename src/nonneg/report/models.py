"""Reports of models that were fitted in Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nonneg._arguments import checked_path
from nonneg._arrays import to_float64, to_numpy
from nonneg.applications.audio import Sound
from nonneg.applications.topics.files import Documents
from nonneg.data.annotated import annotated_matrix, frame_labels
from nonneg.exceptions import InvalidParameterError, OutputError
from nonneg.io import Table
from nonneg.io.cube import as_cube
from nonneg.report import communities, cubes, sounds, tables, topics
from nonneg.report.page import build_page
from nonneg.report.record import Record, clean


def write_report(
    model: Any, path: str | os.PathLike[str], X: Any = None, *, title: str = "the data", **details: Any
) -> Path:
    """Write an HTML report of a fitted model, as the commands do; it needs ``nonneg[report]``.

    Parameters
    ----------
    model : estimator
        A fitted `NMF`, `SeparableNMF`, `ConsensusNMF`, `TopicModel`, `MixedMembership`,
        `MutationalSignatures`, `Unmixing` or `SourceSeparation`.
    path : str or path
        The file, such as "report.html". It contains its pictures and needs no other file.
    X : array, sparse matrix, data frame, AnnData, texts, cube or signal
        The data of the fit; not needed by `MixedMembership`, which keeps its graph. The names of a data frame
        are shown.
    title : str, default "the data"
        What the data are.
    **details : dict
        `NMF`: `image_shape`; `MutationalSignatures`: `reference`, a table of known ones; `TopicModel`:
        `names` of the documents; `Unmixing`: `library`; `SourceSeparation`: `rate`.

    Returns
    -------
    pathlib.Path
        The file.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import nonneg
    >>> X = load_digits().data
    >>> model = nonneg.NMF(16, random_state=0).fit(X)
    >>> nonneg.write_report(model, "digits.html", X, image_shape=(8, 8)).name  # doctest: +SKIP
    'digits.html'
    """
    classes = [kind.__name__ for kind in type(model).__mro__]
    described = next((_RECORDS[name] for name in classes if name in _RECORDS), None)
    if described is None:
        raise InvalidParameterError(
            f"There is no report of a {type(model).__name__}; expected one of {', '.join(_RECORDS)}."
        )
    check_is_fitted(model)
    # `result_` is not saved; the others have all they need.
    if not any(hasattr(one, name) for one in (model, getattr(model, "model_", None)) for name in _KEPT):
        raise InvalidParameterError(
            "A saved or pickled model does not keep everything that a report shows. Pass the model that was "
            "fitted."
        )
    if X is None and "MixedMembership" not in classes:
        raise InvalidParameterError(
            "The report shows the data of the fit: pass X, write_report(model, path, X)."
        )
    history = getattr(model, "history_", None)
    seconds = float(history.seconds[-1]) if history is not None and len(history) else 0.0
    page, place = build_page(described(model, X, title, seconds, **details)), checked_path(path)
    try:
        place.write_text(clean(page), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"The report could not be written to {path}: {error.strerror}.") from error
    return place


_KEPT = ("result_", "documents_per_topic_", "ranks_")


def _table(model: Any, X: Any, title: str) -> Table:
    """Return the data of a fit with the names of a data frame or an AnnData object."""
    known = getattr(model, "feature_names_in_", None)
    if (annotated := annotated_matrix(X, names=known, who="write_report")) is not None:
        X, rows, columns = annotated.entries, annotated.row_names, annotated.column_names
    elif (labels := frame_labels(X)) is not None:
        rows, columns = labels
        X, rows = X.to_numpy(), None if rows.dtype.kind == "i" else rows
    else:
        rows, columns = None, known
    rows, columns = (None if side is None else [str(name) for name in side] for side in (rows, columns))
    return Table(X if hasattr(X, "nnz") else to_numpy(X), rows, columns, title)


def _fit(model: Any, X: Any, title: str, seconds: float, *, image_shape: Any = None) -> Record:
    data, W = _table(model, X, title), model.transform(X)
    return tables.describe_fit(model, data, seconds, W, image_shape=image_shape)


def _anchors(model: Any, X: Any, title: str, seconds: float) -> Record:
    return tables.describe_anchors(model, _table(model, X, title), seconds, model.transform(X))


def _consensus(model: Any, X: Any, title: str, seconds: float) -> Record:
    W, data = to_float64(model.transform(X)), _table(model, X, title)
    names = data.column_names or [str(at) for at in range(data.X.shape[1])]
    return tables.describe_consensus(model, data, None, scores=model.gene_spectra(data.X, W), names=names)


def _signatures(model: Any, X: Any, title: str, seconds: float, *, reference: Any = None) -> Record:
    matches = None if reference is None else model.match(reference)
    return tables.describe_consensus(model, _table(model, X, title), None, matches=matches)


def _topics(model: Any, X: Any, title: str, seconds: float, *, names: Sequence[str] | None = None) -> Record:
    texts = isinstance(X, Sequence) or (hasattr(X, "dtype") and X.dtype.kind in "OUT")
    contents, count = (list(X), len(X)) if texts else (X, X.shape[0])
    # Numbers of counts tell nothing, and the page leaves them out.
    called = [str(name) for name in names or (f"row {at}" for at in range(count))]
    documents = Documents(contents, called, None, title)
    return topics.describe(model, documents, seconds, model.transform(contents))


def _cube(model: Any, X: Any, title: str, seconds: float, *, library: Any = None) -> Record:
    wavelengths = model.wavelengths_ if bool(np.all(model.bands_)) else None
    return cubes.describe(model, as_cube(X, wavelengths=wavelengths), title, seconds, library)


def _sounds(model: Any, X: Any, title: str, seconds: float, *, rate: int | None = None) -> Record:
    rate, samples = rate or model.rate_, np.asarray(X, dtype=np.float64)
    if rate is None:
        raise InvalidParameterError("The report shows frequencies in hertz: pass rate, the sampling rate.")
    recording = Sound(samples, int(rate), 1 if samples.ndim == 1 else len(samples), title)
    return sounds.describe(model, [recording], [model.separate(samples)], seconds)


_RECORDS: dict[str, Callable[..., Record]] = {
    "NMF": _fit,
    "SeparableNMF": _anchors,
    "ConsensusNMF": _consensus,
    "TopicModel": _topics,
    "MixedMembership": lambda model, X, title, seconds: communities.describe(model, title, seconds),
    "MutationalSignatures": _signatures,
    "Unmixing": _cube,
    "SourceSeparation": _sounds,
}
