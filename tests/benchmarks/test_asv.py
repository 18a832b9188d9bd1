"""The suite for asv runs with each package, and both reach about the same error."""

from __future__ import annotations

import pytest
from benchmarks.asv.suite.decomposition import MiniBatchNMFBenchmark, NMFBenchmark


@pytest.mark.parametrize("loss", NMFBenchmark.params[1])
def test_every_measurement_of_nmf_runs(loss):
    errors = {}
    for package in NMFBenchmark.params[0]:
        case = NMFBenchmark()
        case.n_components, case.max_iter = 4, 30
        case.setup(package, loss, "digits")
        case.time_fit(package, loss, "digits")
        case.peakmem_fit(package, loss, "digits")
        case.time_transform(package, loss, "digits")
        errors[package] = case.track_error(package, loss, "digits")
    assert errors["nonneg"] == pytest.approx(errors["sklearn.decomposition"], rel=0.03)


def test_every_measurement_of_mini_batches_runs():
    errors = {}
    for package in MiniBatchNMFBenchmark.params[0]:
        case = MiniBatchNMFBenchmark()
        case.n_components = 4
        case.setup(package, "digits")
        case.time_partial_fit(package, "digits")
        errors[package] = case.track_error(package, "digits")
    # One pass over seven batches: ours may be ahead, never far behind.
    assert errors["nonneg"] <= 1.05 * errors["sklearn.decomposition"]
