"""cNMF with ours inside, where cNMF is installed: the same programs; and what the race is fed with."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.consensus import DOCS, matched, parity, planted_counts
from benchmarks.consensus_tables import page
from benchmarks.records import read
from sklearn.decomposition import non_negative_factorization as sklearn_factorization

import nonneg


def test_counts_have_the_density_that_was_asked_for():
    counts = planted_counts(300, 200, 3, 0.1, 0)
    assert 0.08 < counts.nnz / (counts.shape[0] * counts.shape[1]) < 0.16
    assert (counts.sum(axis=0) > 0).all()


def test_matched_rows_are_found_in_any_order():
    counts = planted_counts(30, 20, 3, 0.5, 0).toarray()[:4]
    assert matched(counts, counts[[2, 0, 3, 1]]) == [1.0] * 4


def test_the_page_is_made_from_its_records():
    records = read("consensus", DOCS / "records")
    assert (DOCS / "consensus.md").read_text(encoding="utf-8") == page(records)


@pytest.mark.parametrize("update_H", [True, False])
def test_the_calls_that_cnmf_makes_give_what_they_give_with_scikit_learn(update_H):
    counts = planted_counts(200, 80, 3, 0.3, 0)
    X = sp.csr_matrix(counts / np.sqrt(counts.power(2).mean(axis=0).A1 - counts.mean(axis=0).A1 ** 2))
    # The arguments of cNMF 1.7.1: `factorize`, and `refit_usage` with the spectra given.
    call = {
        "n_components": 3, "random_state": 7, "alpha_W": 0.0, "alpha_H": 0.0, "l1_ratio": 0.0,
        "beta_loss": "frobenius", "solver": "cd", "tol": 1e-4, "max_iter": 1000, "init": "random",
    }  # fmt: skip
    if not update_H:
        call |= {"H": np.random.default_rng(0).random((3, X.shape[1])), "update_H": False}
    found = [each(X, **call) for each in (nonneg.non_negative_factorization, sklearn_factorization)]
    assert [len(each) for each in found] == [3, 3]
    assert min(matched(found[0][1], found[1][1])) >= 0.99
    assert min(matched(found[0][0].T, found[1][0].T)) >= 0.99


def test_cnmf_runs_unchanged_and_gives_the_same_programs():
    pytest.importorskip("cnmf.cnmf", reason="cNMF is not installed")
    found = parity("planted", 4, 4)
    assert min(found["cnmf with ours, correlations"]) >= 0.99
    assert min(found["ConsensusNMF, correlations"]) >= 0.99
    assert min(found["gene scores, correlations"]) >= 0.99
