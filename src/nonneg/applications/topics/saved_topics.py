"""What a saved TopicModel holds: topics, words, and all that its encoder of documents needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg.applications.topics.documents import make_vectorizer
from nonneg.applications.topics.memberships import LeastSquaresEncoder, ModelEncoder
from nonneg.applications.topics.topic_recovery import rows_of_sum_one
from nonneg.certificates.certificate import Certificate
from nonneg.estimators import NMF
from nonneg.estimators.saving import nested, packed, unpacked
from nonneg.estimators.stored import check_arrays, check_indices, names_array, need_arrays
from nonneg.exceptions import FileFormatError

NEEDED = ("components_", "topic_shares_", "coherence_", "word_indices_", "inverse")
# What scikit-learn's allocation needs to encode documents: all of them are its documented attributes.
ALLOCATION = ("components_", "exp_dirichlet_component_", "doc_topic_prior_", "topic_word_prior_", "bound_")


def topic_parts(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what of a fitted model is stored."""
    header: dict[str, Any] = {
        "certificate": model.certificate_.as_dict(),
        "n_iter_": int(model.n_iter_),
        "counts_texts": model.vectorizer_ is not None and model.vectorizer is None,
    }
    arrays = {name: np.asarray(getattr(model, name)) for name in NEEDED[:-2]}
    arrays |= {"word_indices_": np.asarray(model.word_indices_, dtype=np.int64), "inverse": model._inverse}
    if model.anchor_indices_ is not None:
        arrays["anchor_indices_"] = np.asarray(model.anchor_indices_, dtype=np.int64)
    for name in ("vocabulary_", "feature_names_in_"):
        if getattr(model, name, None) is not None:
            arrays[name] = names_array(getattr(model, name))
    header["encoder"], found = _encoder_parts(model._encode)
    return header, arrays | {f"encoder.{name}": array for name, array in found.items()}


def _encoder_parts(encode: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    if isinstance(encode, LeastSquaresEncoder):
        given = {"components": encode.components, "inverse": encode.inverse}
        return {"kind": "least squares"}, {name: array for name, array in given.items() if array is not None}
    scale = {} if encode.scale is None else {"scale": encode.scale}
    if isinstance(encode.model, NMF):
        header, arrays = packed(encode.model)
        return {"kind": "nmf", "model": header}, scale | {f"model.{name}": a for name, a in arrays.items()}
    params = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in encode.model.get_params().items()
        if name != "random_state"
    }
    numbers = {"n_batch_iter_": int(encode.model.n_batch_iter_), "n_iter_": int(encode.model.n_iter_)}
    arrays = {name: np.asarray(getattr(encode.model, name)) for name in ALLOCATION}
    return {"kind": "allocation", "params": params, "numbers": numbers}, scale | arrays


def restore_topics(model: Any, header: dict[str, Any], arrays: dict[str, Any], path: Any) -> None:
    """Set what `topic_parts` gave; the file may come from anywhere."""
    need_arrays(arrays, NEEDED, path)
    k, n_used = int(model.n_topics), len(arrays["word_indices_"])
    n_words = arrays["components_"].shape[-1]
    shapes: dict[str, Any] = {
        "components_": (k, n_words),
        "topic_shares_": (k,),
        "coherence_": (k,),
        "word_indices_": (n_used,),
        "inverse": (n_used,),
        "anchor_indices_": (k,),
        "vocabulary_": (n_words,),
        "feature_names_in_": (n_words,),
    }
    kinds = {"word_indices_": "i", "anchor_indices_": "i", "vocabulary_": "U", "feature_names_in_": "U"}
    own = {name: array for name, array in arrays.items() if not name.startswith("encoder.")}
    check_arrays(own, shapes, kinds, path)
    for name in ("word_indices_", "anchor_indices_"):
        check_indices(name, own.get(name, np.zeros(0, dtype=int)), n_words, path)
    model.components_, model.n_features_in_ = own["components_"], n_words
    model.topics_ = rows_of_sum_one(model.components_)
    model.topic_shares_, model.coherence_ = own["topic_shares_"], own["coherence_"]
    model.word_indices_, model._inverse = own["word_indices_"].astype(np.intp), own["inverse"]
    model.vocabulary_ = own["vocabulary_"].astype(object) if "vocabulary_" in own else None
    if "feature_names_in_" in own:
        model.feature_names_in_ = own["feature_names_in_"].astype(object)
    anchors = own.get("anchor_indices_")
    model.anchor_indices_ = None if anchors is None else anchors.astype(np.intp)
    model.anchor_words_ = None if anchors is None else model._names(model.anchor_indices_)
    model.vectorizer_ = None
    if header["counts_texts"]:
        model.vectorizer_ = make_vectorizer(None, model.stop_words).set_params(
            vocabulary=list(model.vocabulary_)
        )
    model._encode = _encoder(header["encoder"], nested(arrays, "encoder"), (k, n_used), path)
    model.n_iter_, model.certificate_ = int(header["n_iter_"]), Certificate.from_dict(header["certificate"])


def _encoder(header: dict[str, Any], arrays: dict[str, Any], shape: tuple[int, int], path: Any) -> Any:
    k, n_used = shape
    if header["kind"] == "least squares":
        check_arrays(arrays, {"components": shape, "inverse": (n_used,)}, {}, path)
        return LeastSquaresEncoder(arrays["components"], arrays.get("inverse"))
    scale = {"scale": (k,)}
    if header["kind"] == "nmf":
        inner = nested(arrays, "model")
        check_arrays(
            {name: a for name, a in arrays.items() if not name.startswith("model.")}, scale, {}, path
        )
        found = unpacked(header["model"], inner, {"NMF": lambda: NMF}, path)
        if found.components_.shape != shape:
            raise FileFormatError(f"{path}: the encoder is for other words or topics. The file is damaged.")
        return ModelEncoder(found, arrays.get("scale"))
    priors: dict[str, Any] = dict.fromkeys(("doc_topic_prior_", "topic_word_prior_", "bound_"), ())
    tables = dict.fromkeys(("components_", "exp_dirichlet_component_"), shape)
    need_arrays(arrays, ALLOCATION, path)
    check_arrays(arrays, scale | tables | priors, {}, path)
    return ModelEncoder(_allocation(header, arrays, n_used), arrays.get("scale"))


def _allocation(header: dict[str, Any], arrays: dict[str, Any], n_used: int) -> Any:
    from sklearn.decomposition import LatentDirichletAllocation

    found = LatentDirichletAllocation(**header["params"])
    for name in ALLOCATION:
        setattr(found, name, arrays[name] if arrays[name].ndim else float(arrays[name]))
    for name in ("n_batch_iter_", "n_iter_"):
        setattr(found, name, int(header["numbers"][name]))
    found.n_features_in_ = n_used
    return found
