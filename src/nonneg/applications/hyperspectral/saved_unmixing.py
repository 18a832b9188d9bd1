"""What a saved Unmixing holds: endmembers, their places in the scene, and the maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg.applications.hyperspectral.abundances import checked_constraint
from nonneg.certificates.certificate import Certificate
from nonneg.estimators.stored import check_arrays, check_indices, need_arrays
from nonneg.exceptions import FileFormatError

ARRAYS = ("endmembers_", "pure_pixels_", "abundances_", "residuals_", "mask_")


def unmixing_parts(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what of a fitted model is stored."""
    header = {
        "certificate": model.certificate_.as_dict(),
        "relative_error_": float(model.relative_error_),
        "n_clipped_": int(model.n_clipped_),
    }
    arrays = {name: np.asarray(getattr(model, name)) for name in (*ARRAYS, "bands_")}
    if model.wavelengths_ is not None:
        arrays["wavelengths_"] = np.asarray(model.wavelengths_, dtype=np.float64)
    return header, arrays


def restore_unmixing(model: Any, header: dict[str, Any], arrays: dict[str, Any], path: Any) -> None:
    """Set what `unmixing_parts` gave; the file may come from anywhere."""
    checked_constraint(model.constraint)
    need_arrays(arrays, ARRAYS, path)
    k, bands = arrays["endmembers_"].shape
    rows, columns = arrays["residuals_"].shape
    shapes = {
        "endmembers_": (k, bands),
        "pure_pixels_": (k, 2),
        "abundances_": (rows, columns, k),
        "residuals_": (rows, columns),
        "mask_": (rows, columns),
        "wavelengths_": (bands,),
        "bands_": (None,),
    }
    check_arrays(arrays, shapes, {"pure_pixels_": "i", "mask_": "b", "bands_": "b"}, path)
    # Files of before bands could be left out have no such array.
    kept = np.asarray(arrays.get("bands_", np.ones(bands, dtype=bool)))
    if kept.sum() != bands:
        raise FileFormatError(f"{path}: expected bands_ to leave {bands} bands. The file is damaged.")
    check_indices("pure_pixels_", arrays["pure_pixels_"][:, 0], rows, path)
    check_indices("pure_pixels_", arrays["pure_pixels_"][:, 1], columns, path)
    if not (np.isfinite(arrays["endmembers_"]).all() and (arrays["endmembers_"] >= 0).all()):
        raise FileFormatError(f"{path}: expected nonnegative endmembers. The file is damaged.")
    for name in ARRAYS:
        setattr(model, name, arrays[name])
    model.wavelengths_ = arrays.get("wavelengths_")
    model.bands_ = kept
    model.n_endmembers_, model.n_features_in_ = k, len(kept)
    model.relative_error_, model.n_clipped_ = float(header["relative_error_"]), int(header["n_clipped_"])
    model.certificate_ = Certificate.from_dict(header["certificate"])
