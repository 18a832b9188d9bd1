"""What a saved SourceSeparation holds: its factorization, the cut of signals, the source of components."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg.applications.audio.frames import Framing
from nonneg.applications.audio.masks import checked_groups
from nonneg.estimators import TransformNMF
from nonneg.estimators.saving import nested, packed, unpacked
from nonneg.estimators.stored import need_arrays
from nonneg.exceptions import FileFormatError


def separation_parts(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what of a fitted separation is stored."""
    framing = model.framing_
    inner, arrays = packed(model.model_)
    header = {
        "model": inner,
        "frame_length": int(framing.frame_length),
        "hop": int(framing.step),
        "rate_": None if model.rate_ is None else int(model.rate_),
    }
    arrays = {f"model.{name}": array for name, array in arrays.items()}
    return header, arrays | {"window": framing.weights, "groups_": np.asarray(model.groups_, dtype=np.int64)}


def restore_separation(model: Any, header: dict[str, Any], arrays: dict[str, Any], path: Any) -> None:
    """Set what `separation_parts` gave; the file may come from anywhere."""
    n_components = model._checked_number()
    need_arrays(arrays, ("window", "groups_"), path)
    inner = unpacked(header["model"], nested(arrays, "model"), {"TransformNMF": lambda: TransformNMF}, path)
    framing = Framing(int(header["frame_length"]), int(header["hop"]), arrays["window"])
    if inner.components_.shape != (n_components, framing.frame_length):
        raise FileFormatError(
            f"{path}: expected {n_components} components of {framing.frame_length} samples, got "
            f"{inner.components_.shape}. The file is damaged."
        )
    rate = header["rate_"]
    model.model_, model.framing_ = inner, framing
    model.groups_ = checked_groups(arrays["groups_"], n_components)
    model.rate_ = None if rate is None else int(rate)
