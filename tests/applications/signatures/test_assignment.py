"""Known signatures assigned to tumors: planted ones are found, others are not, channels match by name."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from nonneg.applications.signatures import CHANNELS, assign_signatures
from nonneg.exceptions import InvalidDataError, InvalidParameterError, NegativeDataError, ShapeError

pandas = pytest.importorskip("pandas")


def planted(n_mutations, n_tumors=30, n_signatures=20, seed=0):
    """Tumors with signature 0 always, 1 to 3 in half of them each."""
    rng = np.random.default_rng(seed)
    reference = rng.dirichlet(np.full(96, 0.15), size=n_signatures)
    active = np.zeros((n_tumors, n_signatures), dtype=bool)
    active[:, 0] = True
    active[:, 1:4] = rng.random((n_tumors, 3)) < 0.5
    weights = active * rng.uniform(0.5, 1.0, active.shape)
    weights /= weights.sum(axis=1, keepdims=True)
    counts = np.array([rng.multinomial(n_mutations, row) for row in weights @ reference])
    return counts, reference, active, n_mutations * weights


def test_planted_signatures_are_assigned_with_intervals():
    counts, reference, active, exposures = planted(2000)
    before = counts.copy()
    answer = assign_signatures(counts, reference)
    np.testing.assert_array_equal(counts, before)
    assert ((answer.exposures > 0) == active).mean() > 0.995
    assert np.abs(answer.exposures - exposures).sum() / (2 * exposures.sum()) < 0.03
    np.testing.assert_allclose(answer.exposures.sum(axis=1), counts.sum(axis=1), rtol=1e-6)
    inside = (answer.low <= exposures) & (exposures <= answer.high)
    assert inside[active].mean() > 0.85
    found = answer.exposures > 0
    assert (answer.evidence[found] > 0).all()
    np.testing.assert_allclose(answer.prevalence, found.mean(axis=0))


def test_exposures_are_those_of_maximum_likelihood():
    counts, reference, _, _ = planted(300, n_tumors=3)
    answer = assign_signatures(counts, reference)
    for row, exposures in zip(counts, answer.exposures, strict=True):
        H = reference[exposures > 0]

        def loss(w, H=H, row=row):
            v = w @ H + 1e-9
            return v.sum() - (row * np.log(v)).sum()

        best = minimize(loss, np.full(len(H), row.sum() / len(H)), bounds=[(0, None)] * len(H), tol=1e-12)
        assert loss(exposures[exposures > 0]) <= best.fun + 1e-3


def test_the_cohort_helps_where_mutations_are_few():
    counts, reference, active, _ = planted(40, n_tumors=50)
    errors = {
        cohort: ((assign_signatures(counts, reference, cohort=cohort).exposures > 0) != active).sum()
        for cohort in (True, False)
    }
    assert errors[True] < errors[False]
    # A tumor on its own has no cohort.
    alone, single = (assign_signatures(counts[:1], reference, cohort=cohort) for cohort in (True, False))
    np.testing.assert_array_equal(alone.exposures, single.exposures)


def test_channels_are_matched_by_name_also_beyond_single_bases():
    counts, reference, _, _ = planted(500, n_tumors=5)
    expected = assign_signatures(counts, reference).exposures
    order = np.random.default_rng(1).permutation(96)
    for names in (CHANNELS, [f"DBS{at}" for at in range(96)]):
        X = pandas.DataFrame(counts[:, order], columns=[names[at] for at in order])
        table = pandas.DataFrame(reference.T, index=list(names), columns=[f"S{at}" for at in range(20)])
        answer = assign_signatures(X, table)
        np.testing.assert_allclose(answer.exposures, expected, rtol=1e-6, atol=1e-6)
        assert answer.names[:2] == ["S0", "S1"]
    with pytest.raises(InvalidDataError, match=r"same channels.*1 are not \(DBS0\)"):
        assign_signatures(X.drop(columns="DBS0"), table)
    with pytest.raises(ShapeError, match=r"got an array of shape \(96,\)"):
        assign_signatures(X.iloc[0], table)


def test_degenerate_catalogs():
    counts, reference, _, _ = planted(500, n_tumors=3)
    counts[1] = 0
    answer = assign_signatures(counts, reference)
    assert not answer.exposures[1].any()
    assert np.isfinite(answer.exposures).all()
    with pytest.raises(InvalidDataError, match="no mutations"):
        assign_signatures(0 * counts, reference)
    with pytest.raises(NegativeDataError):
        assign_signatures(-counts, reference)
    for wrong in ({"n_bootstrap": 0}, {"n_bootstrap": "many"}, {"level": 95}, {"level": "high"}):
        with pytest.raises(InvalidParameterError, match="level must be between 0 and 1, and n_bootstrap"):
            assign_signatures(counts, reference, **wrong)
