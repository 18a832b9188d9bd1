"""Reports of models that were fitted in Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nonneg._arrays import to_float64, to_numpy
from nonneg.applications.audio import Sound
from nonneg.applications.topics.files import Documents
from nonneg.data.annotated import annotated_matrix
from nonneg.exceptions import InvalidParameterError, OutputError
from nonneg.io import Table
from nonneg.io.cube import as_cube
from nonneg.report import communities, consensus, cubes, sounds, tables, topics
from nonneg.report.page import build_page
from nonneg.report.record import Record, clean


def write_report(model: Any, path: str | os.PathLike[str], X: Any = None, **details: Any) -> Path:
    """Write an HTML report of a fitted model, as the commands do; it needs ``nonneg[report]``.

    Parameters
    ----------
    model : estimator
        A fitted `NMF`, `SeparableNMF`, `ConsensusNMF`, `TopicModel`, `MixedMembership`,
        `MutationalSignatures`, `Unmixing` or `SourceSeparation`.
    path : str or path
        The file, such as "report.html". It contains its pictures and needs no other file.
    X : array, sparse matrix, data frame, texts, cube or signal
        The data of the fit; not needed by `MixedMembership`, which keeps its graph.
    **details : dict
        `title`, which says what the data are. `NMF`: `image_shape`, `row_names` and `column_names`;
        `SeparableNMF`: `row_names`; `ConsensusNMF`: `column_names`, and `labels` of the samples, whose
        mean usages are shown; `MutationalSignatures`: `reference`, a table of known ones; `TopicModel`:
        `names` of the documents; `Unmixing`: `library`; `SourceSeparation`: `rate`, and `players=False`
        to leave the sound out.

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
    if X is None and described is not _communities:
        raise InvalidParameterError(
            "The report shows the data of the fit: pass X, write_report(model, path, X)."
        )
    history = getattr(model, "history_", None)
    seconds = float(history.seconds[-1]) if history is not None and len(history) else 0.0
    page, place = build_page(described(model, X, seconds, **{"title": "the data"} | details)), Path(path)
    try:
        place.write_text(clean(page), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"The report could not be written to {path}: {error.strerror}.") from error
    return place


_KEPT = ("result_", "documents_per_topic_", "ranks_")


def _table(
    X: Any, title: str, row_names: Sequence[str] | None = None, column_names: Sequence[str] | None = None
) -> Table:
    if hasattr(X, "columns") and hasattr(X, "index"):  # a data frame
        column_names = column_names or [str(name) for name in X.columns]
        row_names = row_names or (None if X.index.dtype.kind == "i" else [str(name) for name in X.index])
        X = X.to_numpy()
    rows, columns = (None if side is None else tuple(map(str, side)) for side in (row_names, column_names))
    return Table(X if hasattr(X, "nnz") else to_numpy(X), rows, columns, title, "npy")


def _fit(model: Any, X: Any, seconds: float, *, image_shape: Any = None, **names: Any) -> Record:
    return tables.describe_fit(
        model, _table(X, **names), seconds, W=model.transform(X), image_shape=image_shape
    )


def _anchors(model: Any, X: Any, seconds: float, **names: Any) -> Record:
    return tables.describe_anchors(model, _table(X, **names), seconds, W=model.transform(X))


def _consensus(
    model: Any, X: Any, seconds: float, *, title: str, column_names: Any = None, labels: Any = None
) -> Record:
    W, known = to_float64(model.transform(X)), getattr(model, "feature_names_in_", None)
    annotated = annotated_matrix(X, names=known, who="write_report")
    data = _table(X if annotated is None else annotated.entries, title, None, column_names)
    if labels is not None and len(labels) != len(W):
        raise InvalidParameterError(f"labels has {len(labels)} entries, but X has {len(W)} samples.")
    names = data.column_names or (range(data.X.shape[1]) if known is None else known)
    return consensus.describe(
        model,
        data,
        None,
        scores=model.gene_spectra(data.X, W),
        names=[str(name) for name in names],
        groups=consensus.usage_by_group(W, labels, "group"),
    )


def _signatures(model: Any, X: Any, seconds: float, *, title: str, reference: Any = None) -> Record:
    matches = None if reference is None else model.match(reference)
    return consensus.describe(model, _table(X, title), None, matches=matches)


def _topics(model: Any, X: Any, seconds: float, *, title: str, names: Sequence[str] | None = None) -> Record:
    texts = isinstance(X, Sequence) or (hasattr(X, "dtype") and X.dtype.kind in "OUT")
    contents, count = (list(X), len(X)) if texts else (X, X.shape[0])
    # Numbers of counts tell nothing, and the page leaves them out.
    called = [str(name) for name in names or (f"row {at}" for at in range(count))]
    return topics.describe(model, Documents(contents, called, None, title), seconds)


def _communities(model: Any, X: Any, seconds: float, *, title: str) -> Record:
    return communities.describe(model, title, seconds)


def _cube(model: Any, X: Any, seconds: float, *, title: str, library: Any = None) -> Record:
    wavelengths = model.wavelengths_ if bool(np.all(model.bands_)) else None
    scene = cubes.Scene(as_cube(X, wavelengths=wavelengths), title, library=library)
    return cubes.describe(model, scene, seconds)


def _sounds(
    model: Any, X: Any, seconds: float, *, title: str, rate: int | None = None, players: bool = True
) -> Record:
    rate = rate or model.rate_
    if rate is None:
        raise InvalidParameterError("The report shows frequencies in hertz: pass rate, the sampling rate.")
    samples = np.asarray(X, dtype=np.float64)
    recording = Sound(samples, int(rate), 1 if samples.ndim == 1 else len(samples), title)
    separated = sounds.Separated(model, [recording], [model.separate(samples)], seconds)
    return sounds.describe(separated, players=players)


_RECORDS: dict[str, Callable[..., Record]] = {
    "NMF": _fit,
    "SeparableNMF": _anchors,
    "ConsensusNMF": _consensus,
    "TopicModel": _topics,
    "MixedMembership": _communities,
    "MutationalSignatures": _signatures,
    "Unmixing": _cube,
    "SourceSeparation": _sounds,
}
