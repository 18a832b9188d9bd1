"""Experiments that check the theorems of purification: quick settings, and verdicts on made-up records."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from reproduction.artifacts import Figure, Table
from reproduction.experiment import flat_records
from reproduction.grouping import grouped
from reproduction.purification.designs import all_patterns, orthogonal_array
from reproduction.purification.planted_artifacts import geometric_rate, power_of
from reproduction.registry import find_experiment
from tests.papers.quick_runs import artifacts, quick_records, verdicts

from nonneg.data import as_data_matrix
from nonneg.purification.decode import Decoder
from nonneg.purification.moments import moments_of

PLANTED = (
    "rate", "floor", "adversarial-noise", "unbiased-noise", "weights", "sparsity", "relu", "balancing",
    "basin", "fresh-samples",
)  # fmt: skip
QUICK = {"rate", "unbiased-noise", "sparsity", "fresh-samples"}


@pytest.fixture(scope="module")
def quick():
    """Records of a quick setting, run once."""
    known = {}

    def of(name):
        if name not in known:
            known[name] = quick_records(f"purification/{name}")
        return known[name]

    return of


def made_up(name, fill):
    """Records of the full setting whose measurements are those that `fill` makes of a setting."""
    lines = []
    for setting in find_experiment(f"purification/{name}").trials(quick=False):
        draws = range(setting["first_draw"], setting["first_draw"] + setting["n_draws"])
        lines.append({"setting": setting, "records": [{"draw": draw, **fill(setting)} for draw in draws]})
    return flat_records(lines)


def measured(setting, end=1e-12, **other):
    """The measurements of a run that ends at `end`, having fallen by a half in every iteration."""
    curve = [0.1 * 0.5**t for t in range(setting["max_iter"] + 1)]
    plain = {
        "begin": 0.1,
        "estimate": 0.09,
        "e_norm": end,
        "relative_e_norm": end,
        "n_norm": end,
        "error": end,
    }
    plain |= {"smallest_own": 1.0, "n_iter": setting["max_iter"], "e_curve": curve, "potentials": curve}
    plain |= {"C1": 3.0, "c2": 3.0, "C2": 3.0, "density": 0.15, "known_weights": end}
    return plain | other


def outcome(name, fill):
    return [verdict.met for verdict in verdicts(f"purification/{name}", made_up(name, fill)).values()]


@pytest.mark.covering(0)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in PLANTED]
)
def test_quick_settings_decide_nothing_and_show_all(quick, name):
    records = quick(name)
    found = verdicts(f"purification/{name}", records)
    assert {verdict.met for verdict in found.values()} == {None}
    assert len(found) >= 3
    assert len(artifacts(f"purification/{name}", records, Figure)) == 1
    assert artifacts(f"purification/{name}", records, Table)


def test_the_whole_distribution_and_arrays_have_exact_moments():
    W, shares = all_patterns(np.array([0.1, 0.25, 0.5]))
    assert W.shape == (8, 3)
    assert shares.sum() == pytest.approx(8)
    np.testing.assert_allclose(shares @ W / 8, [0.1, 0.25, 0.5])
    for weights, q in (("binary", 7), ("uniform", 31), ("heavy", 31)):
        W = orthogonal_array(6, 2.0, weights=weights)
        assert W.shape == (q * q, 6)
        covariance = np.cov(W.T, bias=True)
        np.testing.assert_allclose(covariance - np.diag(np.diagonal(covariance)), 0, atol=1e-12)
        assert 0.2 < (W > 0).mean() < 0.4
    W = orthogonal_array(6, 2.0, 7)
    third = (W[:, 0] * W[:, 1] * W[:, 2]).mean()
    assert third == pytest.approx(W[:, 0].mean() ** 3, rel=1e-12)


def test_rates_and_powers():
    assert geometric_rate([0.1 * 0.3**t for t in range(40)]) == pytest.approx(0.3)
    assert math.isnan(geometric_rate([1e-13, 1e-14]))
    assert power_of([1, 4, 16], [3, 6, 12]) == pytest.approx(0.5)


def test_both_updates_fall_geometrically(quick):
    by_case = {record["case"]: record for record in quick("rate")}
    assert by_case["default"]["e_norm"] < 1e-13
    assert geometric_rate(by_case["default"]["e_curve"]) < 0.3
    assert by_case["published"]["e_norm"] < 1e-11
    assert 0.5 < geometric_rate(by_case["published"]["e_curve"]) < 0.75
    potentials = by_case["proof"]["potentials"]
    assert all(after < before for before, after in pairwise(potentials))
    assert outcome("rate", measured) == [True, True, True]
    stuck = {"e_norm": 1e-3, "e_curve": [0.1, 0.05, 0.04], "potentials": [0.1, 0.2]}
    assert outcome("rate", lambda setting: measured(setting) | stuck) == [False, False, False]


@pytest.mark.slow
def test_the_floor_is_where_it_is_said_to_be(quick):
    for record in quick("floor"):
        if record["update"] == "regression":
            assert record["e_norm"] < 1e-12
        elif record["samples"] == "array":
            assert record["e_norm"] < 1e-6
        else:
            assert record["e_norm"] == pytest.approx(0.8 * 20 / math.sqrt(record["samples"]), rel=0.3)

    def ideal(setting, factor=1.0):
        plain = setting["update"] == "regression" or setting["samples"] == "array"
        return measured(
            setting, 1e-12 if plain else factor * 0.8 * setting["n"] / math.sqrt(setting["samples"])
        )

    assert outcome("floor", ideal) == [True] * 5
    assert outcome("floor", lambda setting: ideal(setting, 1.5)) == [False, True, False, True, True]
    assert outcome("floor", lambda setting: measured(setting, 0.2)) == [False] * 5


@pytest.mark.slow
def test_noise_costs_in_proportion(quick):
    for record in quick("adversarial-noise"):
        if record["noise"] == "optimized":
            # Least squares with the true weights does no better.
            assert record["error"] == pytest.approx(record["known_weights"], rel=0.02)
            assert 2 * record["noise_level"] < record["error"] < 4 * record["noise_level"]
            continue
        assert record["error"] <= 2 * record["noise_level"]
        assert max(record["e_norm"], record["n_norm"]) <= record["noise_level"]
        assert record["error"] == pytest.approx(record["known_weights"], rel=0.2)
    assert outcome("adversarial-noise", lambda s: measured(s, 0.5 * s["noise_level"])) == [True] * 5
    assert outcome("adversarial-noise", lambda s: measured(s, 1.5 * s["noise_level"])) == [False] * 5


def test_unbiased_noise_averages_out(quick):
    shares = {
        (record["strength"], record["n"]): record["error"] / record["noise_level"]
        for record in quick("unbiased-noise")
    }
    for strength in (0.5, 1.0):
        assert shares[strength, 20] < 0.8 * shares[strength, 10] < 0.05

    def ideal(setting):
        return measured(
            setting, 0.02 * setting["noise_level"] * math.sqrt(10 / setting["n"] * 5000 / setting["samples"])
        )

    assert outcome("unbiased-noise", ideal) == [True] * 5
    assert outcome("unbiased-noise", lambda s: measured(s, 0.2 * s["noise_level"])) == [False] * 5


def test_samples_may_be_fresh_or_not(quick):
    by_use = {(record["case"], record["use"]): record["e_norm"] for record in quick("fresh-samples")}
    assert max(by_use["regression", use] for use in ("same", "fresh", "all")) < 1e-10
    assert by_use["noise", "all"] < by_use["noise", "fresh"]

    def fill(same, fresh, noisy):
        ends = {("covariance", "same"): same, ("covariance", "fresh"): fresh, ("noise", "fresh"): noisy}
        return lambda setting: measured(
            setting,
            ends.get((setting["case"], setting["use"]), 0.01 if setting["case"] != "regression" else 1e-12),
        )

    good = made_up("fresh-samples", fill(0.2, 0.1, 0.03))
    assert [verdict.met for verdict in verdicts("purification/fresh-samples", good).values()] == [True] * 3
    bad = made_up("fresh-samples", fill(0.1, 0.2, 0.015))
    found = list(verdicts("purification/fresh-samples", bad).values())
    assert [verdict.met for verdict in found] == [True, False, False]
    assert "0.5 (1000 per iteration)" in found[1].detail
    assert "1.5 (4000 per iteration)" in found[2].detail


@pytest.mark.slow
def test_general_weights(quick):
    for record in quick("weights"):
        if record["update"] == "regression":
            assert record["e_norm"] <= (1e-6 if record["weights"] == "uniform" else 1e-12)
        else:
            assert 0.12 < record["e_norm"] < 0.5
        assert record["c2"] <= record["C2"] <= 2 * record["c2"]

    def ideal(setting):
        floored = setting["update"] == "covariance" and setting["samples"] == 4000
        return measured(setting, 0.25 if floored else 1e-8 if setting["noise"] == "none" else 0.01)

    assert outcome("weights", ideal) == [True] * 7
    worse = outcome("weights", lambda setting: measured(setting, 0.9, known_weights=0.1))
    assert worse == [False] * 7


@pytest.mark.slow
def test_linear_sparsity(quick):
    assert all(record["relative_e_norm"] < 1e-6 for record in quick("sparsity"))
    assert outcome("sparsity", lambda s: measured(s, 1e-9 if s["share"] < 0.5 else 0.1)) == [True] * 3
    root = outcome("sparsity", lambda s: measured(s, 1e-9 if s["s"] < math.sqrt(s["n"]) else 0.1))
    assert root == [False] * 3


def test_the_end_waits_for_weights_below_the_threshold():
    # In this draw no weight lies between the thresholds of two iterations: nothing moves, and it is not done.
    experiment = find_experiment("purification/sparsity")
    (setting,) = [
        setting
        for setting in experiment.trials(quick=False)
        if (setting["case"], setting["n"], setting["share"]) == ("uniform", 40, 0.05)
    ]
    (record,) = experiment.run(setting | {"first_draw": 1, "n_draws": 1})
    assert record["n_iter"] < 60
    assert record["relative_e_norm"] < 1e-10


@pytest.mark.slow
def test_without_the_relu_a_rotation_stays(quick):
    for (update, rule, shape), (record,) in grouped(quick("relu"), "update", "decode", "shape").items():
        if rule != "linear":
            assert record["e_norm"] < 1e-12
        elif update == "regression":
            assert record["e_norm"] == pytest.approx(record["begin"], rel=1e-3)
        else:
            assert record["from_rotation"] < 1e-12
            assert record["e_norm"] == pytest.approx(
                {"symmetric": 0, "skew": 0.1, "neither": 0.064}[shape], abs=1e-3
            )

    def ideal(setting, left=0.5):
        if setting.get("decode") != "linear":
            return measured(setting)
        stays = (
            0.1
            if setting["update"] == "regression"
            else 0.0
            if setting["shape"] == "symmetric"
            else 0.1 * left
        )
        return measured(setting, stays, from_rotation=1e-14, rotation=0.05)

    assert outcome("relu", ideal) == [True, True, True, True, False]
    assert outcome("relu", lambda setting: ideal(setting, 0.1))[1] is False
    assert outcome("relu", lambda s: measured(s, 0.2, from_rotation=0.1, rotation=0.1)) == [
        False, True, False, False, True,
    ]  # fmt: skip


@pytest.mark.slow
def test_balancing_matters_where_own_shares_are_kept(quick):
    found = {(record["uneven"], record["method"]): record for record in quick("balancing")}
    assert found["size", "own"]["relative_e_norm"] > 1
    assert found["size", "common"]["smallest_own"] == pytest.approx(0.25, abs=0.01)
    for (uneven, method), record in found.items():
        if (uneven, method) != ("size", "own"):
            assert record["relative_e_norm"] < 1e-10
        if "balanced" in method:
            assert record["smallest_own"] > 0.9

    def ideal(setting):
        fails = (setting["method"], setting["uneven"]) == ("own", "size") and setting["ratio"] >= 16
        own = setting["ratio"] ** -0.5 if setting["method"] == "common" else 1.0
        return measured(setting, 5.0 if fails else 1e-12, smallest_own=own)

    assert outcome("balancing", ideal) == [True, True, True, True, False, True]
    assert outcome("balancing", lambda s: measured(s, 0.05, smallest_own=0.95)) == [
        False, False, False, True, True, False,
    ]  # fmt: skip


@pytest.mark.slow
def test_the_basin(quick):
    for record in quick("basin"):
        # Half of another feature, taken away, is more than the threshold can tell from a weight.
        lost = record["case"] == "one-negative" and record["level"] == 0.5
        assert (record["relative_e_norm"] < 1e-6) != lost

    def ends_at(level):
        return outcome("basin", lambda s: measured(s, 1e-9 if s["level"] <= level else 0.3))

    assert ends_at(0.95) == [True] * 5
    assert ends_at(0.2) == [True, False, False, False, True]
    assert ends_at(0.05) == [False, False, False, False, True]
    assert ends_at(9) == [True, True, True, True, False]


SPARSITY, THRESHOLD = 1.5, 0.25


def one_step(n, rule, noise=None):
    """Return Z and the covariances of decoded weights x = phi(Z x*) with x*, over the whole distribution."""
    rng = np.random.default_rng(n)
    W, shares = all_patterns(np.full(n, SPARSITY / n))
    Z = np.diag(rng.uniform(0.9, 1.1, n))
    for i in range(n):
        Z[i, rng.choice(np.delete(np.arange(n), i), 2, replace=False)] = rng.uniform(-0.5, 0.5, 2)
    H = np.hstack([rng.random((n, n)), np.zeros((n, 1))])  # noise may have the last feature to itself
    X = W @ H
    if noise is not None:
        X[:, -1] = noise(np.where(W @ Z.T > THRESHOLD, W @ Z.T, 0.0), shares / shares.sum())
    decoder = Decoder(np.linalg.pinv(np.linalg.inv(Z.T) @ H).T, np.full(n, THRESHOLD), rule)
    moments = moments_of(as_data_matrix(X, weights=shares), decoder, np.zeros(n))
    cross = moments.cross / moments.total
    return Z, cross @ np.linalg.pinv(H), cross[:, -1]


@pytest.mark.parametrize("n", [6, 9, 12])
@pytest.mark.parametrize("rule", ["unshifted", "shifted"])
def test_lemmas_3_and_4_bound_one_step(n, rule):
    """Constants are 1, and the sparsity c where a weight's probability c / n comes in."""
    Z, covariance, _ = one_step(n, rule)
    size, others = np.abs(Z), ~np.eye(n, dtype=bool)
    negative, positive = others & (Z < 0), others & (Z > 0)
    assert (np.abs(covariance) <= (size + SPARSITY) / n**2)[negative].all()
    assert (covariance >= -SPARSITY * size / n**2)[positive].all()
    assert (covariance <= SPARSITY * (size / n + 1 / n**2))[positive].all()
    assert (np.diag(covariance) >= (np.diag(Z) - THRESHOLD) / n).all()
    # Without the ReLU negative entries count as much as positive ones.
    Z, covariance, _ = one_step(n, "linear")
    assert (np.abs(covariance) > (size + SPARSITY) / n**2)[negative].any()


@pytest.mark.parametrize("n", [6, 9, 12])
def test_lemma_5_bounds_one_step_with_the_worst_noise(n):
    """Noise of size 0.3 (N1) that an adversary who knows the decoded weights aligns with one of them."""

    def worst(x, shares):
        return 0.3 * np.sign(x[:, 0] - shares @ x[:, 0])

    def random(x, shares):
        return 0.3 * np.random.default_rng(0).choice([-1.0, 1.0], len(x))

    aligned, drawn = (np.abs(one_step(n, "unshifted", noise)[2]) for noise in (worst, random))
    assert aligned.max() == aligned[0] <= 2 * SPARSITY * 0.3 / n
    assert drawn[0] < 0.5 * aligned[0]
