"""`model.report(path)`: the reports of the commands, for models that were fitted in Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._arrays import to_float64, to_numpy
from nonneg.exceptions import InvalidParameterError, OutputError


def write_report(model: Any, path: str | os.PathLike[str], X: Any, **details: Any) -> Path:
    """Write the report of a fitted model to an HTML file."""
    fitted = (model, getattr(model, "model_", None))
    kept = ("result_", "documents_per_topic_", "ranks_")
    if not any(hasattr(one, name) for one in fitted for name in kept):
        raise InvalidParameterError(
            "A saved or pickled model does not keep everything that a report shows. Call report on the model "
            "that was fitted."
        )
    build = next(PAGES[kind.__name__] for kind in type(model).__mro__ if kind.__name__ in PAGES)
    page, place = build(model, X, **details), Path(path)
    try:
        place.write_text(page, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"The report could not be written to {path}: {error.strerror}.") from error
    return place


def _needed(X: Any, what: str) -> Any:
    if X is None:
        raise InvalidParameterError(
            f"The report shows {what} of the fit: pass X, as in model.report(path, X)."
        )
    return X


def _seconds(model: Any) -> float:
    history = getattr(model, "history_", None)
    return float(history.seconds[-1]) if history is not None and len(history) else 0.0


def _table(X: Any, title: str, row_names: Sequence[str] | None, column_names: Sequence[str] | None) -> Any:
    from nonneg.io import Table

    if hasattr(X, "columns") and hasattr(X, "index"):  # a data frame
        column_names = column_names or [str(name) for name in X.columns]
        row_names = row_names or (None if X.index.dtype.kind == "i" else [str(name) for name in X.index])
        X = X.to_numpy()
    entries = X if hasattr(X, "nnz") else to_numpy(X)
    return Table(entries, _names(row_names), _names(column_names), title, "npy")


def _names(given: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if given is None else tuple(map(str, given))


def _fit_page(
    model: Any,
    X: Any,
    *,
    title: str = "the data",
    image_shape: tuple[int, int] | None = None,
    row_names: Sequence[str] | None = None,
    column_names: Sequence[str] | None = None,
) -> str:
    from nonneg.cli.fit_results import FittedModel, fit_page

    table = _table(_needed(X, "the data"), title, row_names, column_names)
    W = to_numpy(model.transform(X))
    fitted = FittedModel(model, W, table, _seconds(model), f"Factorization of {title}", image_shape)
    return fit_page(fitted)


def _anchor_page(
    model: Any, X: Any, *, title: str = "the data", row_names: Sequence[str] | None = None
) -> str:
    from nonneg.cli.anchors import anchor_record
    from nonneg.report.anchor_page import build_anchor_page

    table = _table(_needed(X, "the data"), title, row_names, None)
    W = to_numpy(model.transform(X))
    return build_anchor_page(anchor_record(model, W, table, _seconds(model)), W, table.row_names)


def _consensus_page(
    model: Any,
    X: Any,
    *,
    title: str = "the data",
    column_names: Sequence[str] | None = None,
    labels: Sequence[Any] | None = None,
) -> str:
    from nonneg.cli.consensus_results import consensus_record, scored_programs, usage_by_group
    from nonneg.data.annotated import annotated_matrix
    from nonneg.report.consensus_page import build_consensus_page

    W = to_float64(model.transform(_needed(X, "the data")))
    known = getattr(model, "feature_names_in_", None)
    annotated = annotated_matrix(X, names=known, who="report")
    table = _table(X if annotated is None else annotated.entries, title, None, column_names)
    if labels is not None and len(labels) != len(W):
        raise InvalidParameterError(f"labels has {len(labels)} entries, but X has {len(W)} samples.")
    names = table.column_names or (range(len(model.column_scale_)) if known is None else known)
    scores = model.gene_spectra(table.X, W)
    record = consensus_record(
        "consensus", f"Consensus programs of {title}", table, model, seconds=None,
        programs=scored_programs(model, scores, [str(name) for name in names]),
        groups=usage_by_group(W, labels, "group"), tables={}, parameters=_parameters(model), result={},
    )  # fmt: skip
    return build_consensus_page(record)


def _signature_page(model: Any, X: Any, *, title: str = "the catalog", reference: Any = None) -> str:
    from nonneg.applications.signatures import CHANNELS
    from nonneg.cli.consensus_results import consensus_record, signature_programs
    from nonneg.report.consensus_page import build_consensus_page

    table = _table(_needed(X, "the counts"), title, None, None)
    matches = None if reference is None else model.match(reference)
    record = consensus_record(
        "signatures", f"Mutational signatures of {title}", table, model.consensus_, seconds=None,
        programs=signature_programs(model, matches), groups=None, tables={}, parameters=_parameters(model),
        result={"reason": model.rank_reason_},
    )  # fmt: skip
    return build_consensus_page(record, CHANNELS)


def _parameters(model: Any) -> dict[str, Any]:
    """Return the parameters that decide the result, numbers and names only."""
    return {
        name: value
        for name, value in model.get_params(deep=False).items()
        if isinstance(value, str | int | float | list | tuple) and name not in ("verbose", "n_jobs")
    }


def _topic_page(
    model: Any, X: Any, *, title: str = "the documents", names: Sequence[str] | None = None
) -> str:
    from nonneg.applications.topics.files import Documents
    from nonneg.cli.topics import topic_record
    from nonneg.report.topic_page import build_topic_page

    contents = _needed(X, "the documents")
    texts = isinstance(contents, Sequence) or (hasattr(contents, "dtype") and contents.dtype.kind in "OUT")
    contents = list(contents) if texts else contents
    proportions = to_numpy(model.transform(contents))
    called = [str(name) for name in names or range(len(proportions))]
    documents = Documents(contents, called, None, title)
    return build_topic_page(topic_record(model, proportions, documents, _seconds(model), None))


def _community_page(model: Any, X: Any, *, title: str = "the graph") -> str:
    from nonneg.cli.communities import community_record
    from nonneg.report.community_page import build_community_page

    record = community_record(model, title, _seconds(model), None, None)
    return build_community_page(record, model)


def _scene_page(model: Any, X: Any, *, title: str = "the image", library: Any = None) -> str:
    from nonneg.cli.unmix import scene_page
    from nonneg.cli.unmix_inputs import Scene
    from nonneg.io.cube import as_cube

    wavelengths = model.wavelengths_ if bool(np.all(model.bands_)) else None
    cube = as_cube(_needed(X, "the image"), wavelengths=wavelengths)
    return scene_page(model, Scene(cube, title, None, library=library), _seconds(model))


def _separation_page(
    model: Any, X: Any, *, title: str = "the recording", rate: int | None = None, players: bool = True
) -> str:
    from nonneg.applications.audio import Sound
    from nonneg.cli.separate_results import Separated, separation_page

    rate = rate or model.rate_
    if rate is None:
        raise InvalidParameterError("The report shows frequencies in hertz: pass rate, the sampling rate.")
    samples = np.asarray(_needed(X, "the recording"), dtype=np.float64)
    n_channels = 1 if samples.ndim == 1 else len(samples)
    sounds, sources = [Sound(samples, int(rate), n_channels, title)], [model.separate(samples)]
    return separation_page(Separated(model, sounds, sources, _seconds(model)), players=players)


PAGES: dict[str, Callable[..., str]] = {
    "NMF": _fit_page,
    "SeparableNMF": _anchor_page,
    "ConsensusNMF": _consensus_page,
    "TopicModel": _topic_page,
    "MixedMembership": _community_page,
    "MutationalSignatures": _signature_page,
    "Unmixing": _scene_page,
    "SourceSeparation": _separation_page,
}
