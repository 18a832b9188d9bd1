"""What fitted estimators that can be written to a file share, and checks of what such a file holds."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import InvalidParameterError as RejectedParameterError
from sklearn.utils.validation import check_is_fitted

from nonneg.exceptions import FileFormatError, InvalidParameterError

Shape = tuple[int | None, ...]


class StoredEstimator(BaseEstimator, ABC):
    """An estimator of scikit-learn's kind with our errors, whose fit can be written and read again."""

    def _validate_params(self) -> None:
        # scikit-learn's words, in an error that is also one of ours.
        try:
            super()._validate_params()
        except RejectedParameterError as error:
            raise InvalidParameterError(str(error)) from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file: arrays and JSON, no pickle.

        Parameters
        ----------
        path : str or path
            The file; `nonneg.load` reads it. One that exists is replaced when the new one is whole.

        Notes
        -----
        What a fit found is kept, history and certificate too; `result_`, which holds the same and what only
        the run itself knew, is not.
        """
        check_is_fitted(self)
        from nonneg.estimators.saving import save_model

        save_model(self, path)

    @abstractmethod
    def _saved_parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what a fit found: plain values for JSON, and NumPy arrays, both by name."""

    @abstractmethod
    def _restore_parts(self, header: dict[str, Any], arrays: dict[str, Any], path: Any) -> None:
        """Set what `_saved_parts` gave, after checking it: the file may come from anywhere."""


def check_arrays(
    arrays: Mapping[str, Any], shapes: Mapping[str, Shape], kinds: Mapping[str, str], path: Any
) -> None:
    """Refuse arrays that are not known, or have another shape or kind than they should."""
    for name, array in arrays.items():
        expected = shapes.get(name)
        fits = expected is not None and len(array.shape) == len(expected)
        fits = fits and all(
            want in (None, got) for want, got in zip(expected or (), array.shape, strict=True)
        )
        if not fits or array.dtype.kind not in kinds.get(name, "f"):
            raise FileFormatError(
                f"{path}: expected {name} of shape {expected}, got {array.dtype} of shape {array.shape}. "
                "The file is damaged."
            )


def need_arrays(arrays: Mapping[str, Any], names: Any, path: Any) -> None:
    """Refuse a file in which an array is missing."""
    if missing := sorted(set(names) - set(arrays)):
        raise FileFormatError(f"{path}: {', '.join(missing)} is missing. The file is damaged.")


def check_indices(name: str, indices: Any, length: int, path: Any) -> None:
    """Refuse numbers of rows or columns that are not there."""
    if indices.size and not (int(indices.min()) >= 0 and int(indices.max()) < length):
        raise FileFormatError(f"{path}: {name} go beyond the {length} that there are. The file is damaged.")


def names_array(names: Any) -> Any:
    """Return names as an array that a file can hold."""
    return np.asarray([str(name) for name in names], dtype=np.str_)
