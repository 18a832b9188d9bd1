"""cNMF with ours inside, where cNMF is installed: the same programs; and what the race is fed with."""

from __future__ import annotations

import pytest
from benchmarks.consensus import matched, parity, planted_counts


def test_counts_have_the_density_that_was_asked_for():
    counts = planted_counts(300, 200, 3, 0.1, 0)
    assert 0.08 < counts.nnz / (counts.shape[0] * counts.shape[1]) < 0.16
    assert (counts.sum(axis=0) > 0).all()


def test_matched_rows_are_found_in_any_order():
    counts = planted_counts(30, 20, 3, 0.5, 0).toarray()[:4]
    assert matched(counts, counts[[2, 0, 3, 1]]) == [1.0] * 4


def test_cnmf_runs_unchanged_and_gives_the_same_programs():
    pytest.importorskip("cnmf.cnmf", reason="cNMF is not installed")
    found = parity("planted", 4, 4)
    assert min(found["cnmf with ours, correlations"]) >= 0.99
    assert min(found["ConsensusNMF, correlations"]) >= 0.99
    assert min(found["gene scores, correlations"]) >= 0.99
