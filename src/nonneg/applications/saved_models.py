"""The reader of saved models: every class with a `save`."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pkgutil import resolve_name
from typing import Any

from nonneg import applications
from nonneg.estimators.saving import read_model

ESTIMATORS = {
    "ConeNMF": "nonneg.estimators.cone_nmf",
    "ConsensusNMF": "nonneg.estimators.consensus_nmf",
    "IntegrativeNMF": "nonneg.estimators.integrative_nmf",
    "MinVolNMF": "nonneg.estimators.min_vol_nmf",
    "NMF": "nonneg.estimators.nmf",
    "PurificationNMF": "nonneg.estimators.purification_nmf",
    "SeparableNMF": "nonneg.estimators.separable_nmf",
    "TransformNMF": "nonneg.estimators.transform_nmf",
}
APPLICATIONS = ("MixedMembership", "MutationalSignatures", "SourceSeparation", "TopicModel", "Unmixing")


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
    classes: dict[str, Callable[[], Any]] = {
        name: partial(resolve_name, f"{home}:{name}") for name, home in ESTIMATORS.items()
    }
    return read_model(path, classes | {name: partial(getattr, applications, name) for name in APPLICATIONS})
