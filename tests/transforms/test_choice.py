"""The choice of a transform by held-out frames, number by number."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from nonneg.transforms.selection import CONFIDENCE, FRACTIONS, _chosen, choice_statement


def by_hand(objectives, sizes):
    """Return means and standard errors of the differences from the first candidate."""
    share = np.array(sizes) / sum(sizes)
    means = [float(np.sum(share * row)) for row in objectives]
    errors = []
    for row in objectives:
        difference = row - objectives[0]
        variance = np.sum(share * (difference - np.sum(share * difference)) ** 2)
        errors.append(np.sqrt(variance / (len(sizes) - 1)))
    return means, errors


@pytest.mark.parametrize("gain", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("sizes", [[10, 10, 10], [30, 10, 20, 40]])
def test_a_candidate_must_be_better_with_confidence(gain, sizes, rng):
    objectives = 1.0 + 0.1 * rng.standard_normal((len(FRACTIONS), len(sizes)))
    objectives[2] -= gain
    choice = _chosen(objectives, sizes, 77, "dct")
    means, errors = by_hand(objectives, sizes)
    np.testing.assert_allclose(choice.held_out, means)
    np.testing.assert_allclose(choice.standard_errors, errors)
    at = int(np.argmin(means))
    clear = means[at] < means[0] - student.ppf(CONFIDENCE, len(sizes) - 1) * errors[at]
    assert choice.fraction == FRACTIONS[at if clear else 0]
    assert (choice.n_train, choice.n_held_out, choice.reference) == (77, sum(sizes), "dct")


def test_the_statement_quotes_the_first_the_last_and_the_chosen_candidate(rng):
    objectives = np.linspace(2.0, 1.0, len(FRACTIONS))[:, None] + np.zeros((1, 3))
    objectives[-2] -= 5.0
    choice = _chosen(objectives, [5, 5, 5], 40, "dct")
    assert choice.fraction == FRACTIONS[-2]
    statement = choice_statement(choice)
    fixed, learned, best = (float(objectives[at].mean()) for at in (0, -1, -2))
    assert f"is {fixed:.5g} for the DCT, {learned:.5g} for the learned" in statement.sentence
    assert f"and {best:.5g} for the chosen one" in statement.sentence
    assert (statement.number, statement.threshold) == (pytest.approx(best), pytest.approx(fixed))
    assert "on 15 held-out frames" in statement.sentence
    assert statement.quantities["fraction"] == FRACTIONS[-2]
    assert statement.quantities["standard_error"] == pytest.approx(0.0)
