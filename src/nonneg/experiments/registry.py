"""Which experiments there are. Their files are imported when they are asked for, so that the list is fast."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from nonneg.exceptions import UnknownNameError

if TYPE_CHECKING:
    from nonneg.experiments.experiment import Experiment

TITLES: dict[str, str] = {
    "cr1/figure-2": "Rank-one factorization of cones: its error beside its bounds and other algorithms",
    "cr1/table-1": "Time until other algorithms reach the error of the rank-one factorization of cones",
    "cr1/figure-3": "The number of cones, estimated from the singular values of noisy data",
}
"""Name -> title. ``paper/table-1`` is the constant EXPERIMENT of ``nonneg/experiments/paper/table_1.py``."""


def find_experiment(name: str) -> Experiment:
    """Return an experiment by its name.

    Parameters
    ----------
    name : str
        One of `TITLES`.

    Returns
    -------
    Experiment
        The experiment of that name.

    Raises
    ------
    UnknownNameError
        If there is none of that name; the message names those that are near.
    """
    if name not in TITLES:
        raise UnknownNameError.of("experiment", name, TITLES)
    module = importlib.import_module(f"nonneg.experiments.{name.replace('/', '.').replace('-', '_')}")
    return module.EXPERIMENT
