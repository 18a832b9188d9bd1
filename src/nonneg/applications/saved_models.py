"""The reader of saved models: every class with a `save`."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from nonneg import applications, estimators
from nonneg.estimators.saving import read_model

ESTIMATORS = (
    "ConeNMF",
    "ConsensusNMF",
    "IntegrativeNMF",
    "MinVolNMF",
    "NMF",
    "PurificationNMF",
    "SeparableNMF",
    "TransformNMF",
)
APPLICATIONS = ("MixedMembership", "MutationalSignatures", "SourceSeparation", "TopicModel", "Unmixing")


def model_classes() -> dict[str, Callable[[], Any]]:
    """Return the classes that a file may name."""
    classes: dict[str, Callable[[], Any]] = {name: partial(getattr, estimators, name) for name in ESTIMATORS}
    return classes | {name: partial(getattr, applications, name) for name in APPLICATIONS}


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : str or path
        The file. It may come from anywhere: no code in it is run.

    Returns
    -------
    estimator
        Fitted: its methods return what those of the saved one returned. `result_`, which has further details
        of the fit, is not saved, and neither is your own `vectorizer`: a `TopicModel` that had one accepts
        the counts that the vectorizer makes.

    Raises
    ------
    FileFormatError
        If the file is not a saved model, is damaged, or names a class that nonneg does not have.

    Examples
    --------
    >>> import numpy as np, nonneg, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.npz"
    >>> nonneg.NMF(n_components=2).fit(np.eye(4)[:, :3] + 1).save(path)
    >>> nonneg.load(path).components_.shape
    (2, 3)
    """
    return read_model(path, model_classes())
