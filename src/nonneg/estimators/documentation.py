"""Descriptions of parameters and attributes that mean the same in every estimator, and their insertion.

A line ``{n_jobs, verbose}`` in the docstring of an estimator or of one of its methods stands for the entries
of these names, those of the function behind the estimator for other names, and ``{function: tol}`` for that
of the function in any case; `help` and the documentation show them in full.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

SHARED = {
    "X": (
        "array, sparse matrix, data frame, tensor or Dask array of shape (n_samples, n_features)",
        "The data, nonnegative unless the estimator says otherwise. Never modified.",
    ),
    "y": ("Any", "Ignored."),
    "sample_weight": (
        "array of shape (n_samples,), optional",
        "Sample weights; an integer weight is equivalent to repeating the sample.",
    ),
    "beta_loss": (
        'float or str, default "frobenius"',
        'Beta-divergence to minimize: "frobenius" (2), "kullback-leibler" (1), "itakura-saito" (0), or beta.',
    ),
    "max_iter": ("int, default 200", "Maximum number of iterations."),
    "random_state": ("int, RandomState, Generator or None", "Random numbers, where a method draws any."),
    "layer": ("str, optional", "Which of ``adata.layers`` to take; ``adata.X`` by default."),
    "use_highly_variable": (
        "bool, optional",
        'Whether to take only the variables that ``adata.var["highly_variable"]`` marks. By default they are',
        "if there is such a column, as in scanpy.",
    ),
    "key_added": (
        "str, optional",
        "Name under which the result is stored: ``obsm[key_added]``, ``varm[key_added]`` and",
        '``uns[key_added]``. By default ``obsm["X_nmf"]``, ``varm["NMF"]`` and ``uns["nmf"]``.',
    ),
    "n_jobs": ("int or None", "Number of threads; None uses all cores."),
    "verbose": ("int, default 0", "1 shows a progress line with rate and time left."),
    "callback": (
        "callable, optional",
        "Called with a :class:`nonneg.results.Progress` after each iteration; returning True stops the fit.",
    ),
    "checkpoint": (
        "str or path, optional",
        "Folder in which the run is saved every few seconds, and from which it is resumed if data,",
        "parameters and initialization are the same.",
    ),
    "n_components_": ("int", "Number of components."),
    "n_steps_": ("int", "Number of batches seen by `partial_fit`."),
    "n_iter_": ("int", "Number of iterations."),
    "reconstruction_err_": ("float", "Frobenius norm of X - W H, with the sample weights."),
    "certificate_": ("Certificate", "What can be verified about the result."),
    "history_": ("History", "What was measured after each iteration."),
    "rank_estimate_": (
        "RankComparison",
        'How ``n_components="auto"`` chose the number of components; only if it did.',
    ),
    "n_features_in_": ("int", "Number of features seen during `fit`."),
    "feature_names_in_": ("array of str", "Names of features seen during `fit`, if X has any."),
}
"""Name -> type and lines of the description."""
Member = TypeVar("Member", bound=Any)
_MARKER = re.compile(r"^( *)\{(function: )?(\w+(?:, \w+)*)\}$", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+) : (.+(?:\n +.+)*)", re.MULTILINE)


def documented(member: Member, function: Callable[..., Any] | None = None) -> Member:
    """Insert the entries of the shared table, and those of a function, into a docstring."""

    def entries(marker: re.Match[str]) -> str:
        lines = []
        for name in marker[3].split(", "):
            kind, *description = described[name] if marker[2] or name not in SHARED else SHARED[name]
            lines += [f"{name} : {kind}", *(f"    {line}" for line in description)]
        return "\n".join(marker[1] + line for line in lines)

    if member.__doc__:
        text = "" if function is None else inspect.getdoc(function) or ""
        described = {name: entry.replace("\n    ", "\n").split("\n") for name, entry in _ENTRY.findall(text)}
        member.__doc__ = _MARKER.sub(entries, member.__doc__)
    return member
