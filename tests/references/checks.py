"""scikit-learn's checks of estimators, those that can differ."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from nonneg import NMF

OF_NUMBERS = (
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_estimators_dtypes",
    "check_estimators_nan_inf",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_transformer_general",
    "check_transformer_n_iter",
    "check_transformer_preserve_dtypes",
)
"""What may depend on the options. How a class reads its input (formats, tags, names) does not."""

SLOW = (
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_dtype_object",
    "check_transformer_data_not_an_array",
)
"""What validation, which all estimators share, does with another form of the input; once for `NMF`."""


def parametrize_with_options(first, *others):
    """Parametrize with all checks of the first estimator, and those of numbers for the others in turn."""
    every = parametrize_with_checks([first, *others])
    names, cases = every.args
    kept = []
    for case in cases:
        estimator, check = getattr(case, "values", case)
        name = getattr(check, "func", check).__name__
        if name in SLOW and estimator in (first, *others[:1]):
            slow = type(first) is not NMF or estimator is first  # which estimates its number of components
        elif estimator is first:
            slow = False
        elif name in OF_NUMBERS:
            slow = estimator is not others[OF_NUMBERS.index(name) % len(others)]
        else:
            continue
        marks = [pytest.mark.slow] if slow else []
        kept.append(pytest.param(estimator, check, marks=[*marks, *getattr(case, "marks", ())]))
    return pytest.mark.parametrize(names, kept, **every.kwargs)
