"""Ranges of the parameters of all estimators: what lies in them is taken, and what does not is refused."""

from __future__ import annotations

import pytest
from sklearn.utils._param_validation import Interval

import nonneg
from nonneg.exceptions import InvalidParameterError

COUNT, POSITIVE, NOT_NEGATIVE, SHARE, PART = "1, 2, ...", "(0, inf)", "[0, inf)", "[0, 1]", "(0, 1]"
# Values that are taken and values that are not.
RANGES = {
    COUNT: ([1, 2, 10**9], [0, -1, 1.5]),
    "2, 3, ...": ([2, 3], [1, 0]),
    "0, 1, ...": ([0, 1, 10**9], [-1, 0.5]),
    POSITIVE: ([1e-300, 0.5, 1, 1.5, 1e300], [0, 0.0, -1e-300, -1.0]),
    NOT_NEGATIVE: ([0, 0.0, 1e-300, 1.5, 1e300], [-1e-300, -1]),
    SHARE: ([0, 0.0, 0.5, 1.0, 1], [-1e-9, 1 + 1e-9, 2]),
    PART: ([1e-9, 0.5, 1.0], [0.0, -0.5, 1 + 1e-9, 2]),
    "... -1, 1, ...": ([1, 2, -1, -2], [0, 1.5]),
}
SHARED = {
    "n_components": COUNT,
    "n_init": COUNT,
    "n_jobs": "... -1, 1, ...",
    "max_iter": COUNT,
    "tol": NOT_NEGATIVE,
    "batch_size": COUNT,
    "alpha_W": NOT_NEGATIVE,
    "alpha_H": NOT_NEGATIVE,
    "l1_ratio": SHARE,
    "forget_factor": PART,
}
OWN = {
    "ConsensusNMF": {"n_init": "2, 3, ...", "density_threshold": POSITIVE},
    "IntegrativeNMF": {"lam": NOT_NEGATIVE},
    "MinVolNMF": {"lam": POSITIVE, "noise": POSITIVE, "max_iter": "0, 1, ..."},
    "NMF": {
        "fresh_restarts_max_iter": COUNT,
        "max_no_improvement": COUNT,
        "transform_max_iter": COUNT,
        "robust_threshold": POSITIVE,
    },
    "PurificationNMF": {"forget_factor": SHARE},
    "SeparableNMF": {"energy": PART, "merge": POSITIVE, "reduce": COUNT},
    "TransformNMF": {"average_frames": COUNT, "eps0": POSITIVE},
}


def ranged(name):
    """The parameters that are numbers of a range."""
    kinds, own = getattr(nonneg, name)._parameter_constraints, getattr(nonneg, name)._get_param_names()
    return {key for key in own if any(isinstance(kind, Interval) for kind in kinds[key])}


CASES = [(name, parameter) for name in OWN for parameter in sorted(ranged(name))]


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_a_parameter_has_its_range(name, parameter):
    taken, refused = RANGES[(SHARED | OWN[name])[parameter]]
    for value in taken:
        getattr(nonneg, name)(**{parameter: value})._validate_params()
    for value in refused:
        with pytest.raises(InvalidParameterError, match=f"The '{parameter}' parameter of {name} must be"):
            getattr(nonneg, name)(**{parameter: value})._validate_params()


@pytest.mark.parametrize("name", OWN)
def test_every_range_is_looked_at(name):
    assert set(OWN[name]) <= ranged(name)
    assert ranged(name) <= set(SHARED | OWN[name])
