"""Results of loaders and generators."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from nonneg._arguments import checked_count, checked_nonnegative, is_number
from nonneg._typing import FloatArray, IntArray
from nonneg.exceptions import InvalidParameterError


@dataclass(frozen=True)
class Dataset:
    """A real data set: one sample per row.

    Attributes
    ----------
    X : array or scipy.sparse.csr_array of shape (n_samples, n_features)
        The entries, nonnegative; the adjacency matrix of a graph, whose samples are its nodes.
    y : array of int of shape (n_samples,)
        The class of each sample, from 0; -1 where there is none.
    names : tuple of str
        The names of the classes; empty where the source gives none.
    description : str
        What the data set is, its source, and the preprocessing.
    sample_shape : tuple of int or None
        The grid of the samples (the pixels of a hyperspectral image), if there is one.
    feature_shape : tuple of int or None
        The grid of the features (the pixels of an image), if there is one.
    sample_names : tuple of str
        The names of the samples; empty where the source gives none.
    feature_names : tuple of str
        The names of the features (the words of a vocabulary); empty where the source gives none.
    extras : mapping of str to Any
        Anything else in the source; see the loader.
    """

    X: Any = field(repr=False)
    y: IntArray = field(repr=False)
    names: tuple[str, ...]
    description: str
    sample_shape: tuple[int, ...] | None = None
    feature_shape: tuple[int, ...] | None = None
    sample_names: tuple[str, ...] = field(default=(), repr=False)
    feature_names: tuple[str, ...] = field(default=(), repr=False)
    extras: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Recording:
    """A recorded or synthetic sound.

    Attributes
    ----------
    signals : array of shape (n_realizations, n_samples)
        The sound, one recording per row.
    rate : int
        Samples per second.
    sources : array of shape (n_sources, n_realizations, n_samples) or None
        The sources of the mixture, where they are known.
    description : str
        What it is, its source, and the preprocessing.
    """

    signals: np.ndarray[Any, Any]
    rate: int
    sources: np.ndarray[Any, Any] | None
    description: str


@dataclass(frozen=True)
class PlantedData:
    """Generated data with their ground truth.

    Attributes
    ----------
    X : array or scipy.sparse.csr_array of shape (n_samples, n_features)
        The data, nonnegative.
    H : array of shape (n_components, n_features)
        The planted components: directions, parts, spectra or topics.
    W : array of shape (n_samples, n_components) or None
        The planted coefficients; None where a sample is not a combination of `H`.
    labels : array of int of shape (n_samples,) or None
        The planted class of each sample, from 0; None where there is none.
    """

    X: Any
    H: FloatArray
    W: FloatArray | None = None
    labels: IntArray | None = None


def check_numbers(generator: Callable[..., Any], given: Mapping[str, Any], lowest: int = 1) -> None:
    """Refuse arguments that are no integers of at least `lowest`, or no numbers, as they are annotated."""
    for name, annotation in inspect.get_annotations(generator).items():
        value = given.get(name)
        if annotation == "int":
            checked_count(name, value, lowest)
        elif annotation == "float":
            checked_nonnegative(name, value)
        elif (
            annotation == "float | None" and value is not None and not (is_number(value) and abs(value) < inf)
        ):
            raise InvalidParameterError(f"{name} must be None or a finite number, got {value!r}.")
