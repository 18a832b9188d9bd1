"""The choice between learned and fixed transforms, and the geodesic between them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from tests.transforms.cases import composite_frames

from nonneg import TransformNMF, learn_transform, load
from nonneg.datasets import gaussian_composite
from nonneg.transforms import selection
from nonneg.transforms.initialization import dct_iv_matrix, dct_matrix
from nonneg.transforms.rotations.geodesic import geodesic, matched_atoms
from nonneg.transforms.rotations.group import random_orthogonal
from nonneg.transforms.selection import TransformChoice, choice_statement, held_out_blocks, learn_chosen


@pytest.mark.parametrize("m", [2, 3, 8, 21])
def test_the_geodesic_is_the_exponential_of_the_logarithm(m):
    fixed, learned = dct_matrix(m), random_orthogonal(m, 1)
    near, order = matched_atoms(learned, fixed)
    np.testing.assert_array_equal(np.abs(near), np.abs(learned[order]))
    assert sorted(order) == list(range(m))
    path, logarithm = geodesic(fixed, near), scipy.linalg.logm(near @ fixed.T)
    for t in (0.0, 0.3, 1.0):
        np.testing.assert_allclose(path(t), scipy.linalg.expm(t * logarithm) @ fixed, atol=1e-10)
        np.testing.assert_allclose(path(t) @ path(t).T, np.eye(m), atol=1e-13)


def test_half_turns_have_a_way_too():
    rotation = np.diag([-1.0, 1.0, -1.0, 1.0])
    half = geodesic(np.eye(4), rotation)(0.5)
    np.testing.assert_allclose(half @ half, rotation, atol=1e-14)


def test_order_and_signs_of_atoms_do_not_matter():
    fixed = dct_matrix(6)
    shuffled = -fixed[[3, 1, 0, 2, 5, 4]]
    near, _ = matched_atoms(shuffled, fixed)
    assert np.abs(geodesic(fixed, near)(0.5) @ fixed.T - np.eye(6)).max() < 1e-12


def test_blocks_are_apart_from_the_frames_that_are_learned_from():
    train, blocks = held_out_blocks(400)
    held = np.concatenate(blocks)
    assert len(blocks) == 8
    assert len(held) == pytest.approx(400 / 3, abs=4)
    assert np.abs(train[:, None] - held).min() == 2
    assert held_out_blocks(20)[1] == []


@pytest.mark.parametrize(("planted", "chosen"), [(None, "dct"), (3, "learned")])
def test_what_generated_the_data_is_chosen(planted, chosen, tmp_path):
    data = gaussian_composite(20, frame_length=8, n_frames=60, n_components=2, rng=0)
    Y = data.Y if planted is None else data.Y @ data.transform.T @ random_orthogonal(8, planted)
    model = TransformNMF(2, max_iter=60, random_state=0).fit(Y)
    assert model.choice_.name == chosen
    method = "tl" if chosen == "learned" else "dct"
    same = learn_transform(Y, 2, method=method, eps0=model.eps0_, init="dct", max_iter=60, rng=0)
    np.testing.assert_array_equal(model.transform_, same.transform)
    statement = model.certificate_["transform-choice"]
    assert statement.holds
    assert statement.number == min(model.choice_.held_out)
    assert statement.quantities["fraction"] == (chosen == "learned")
    model.save(tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").choice_ == model.choice_


def test_noise_and_few_frames_keep_the_cosine_transform():
    noise = np.random.default_rng(0).standard_normal((240, 8))
    assert TransformNMF(2, max_iter=20, random_state=0).fit(noise).choice_.name == "dct"
    few = TransformNMF(2, max_iter=20, random_state=0).fit(noise[:12])
    np.testing.assert_allclose(few.transform_, dct_matrix(8), atol=1e-14)
    assert str(few.certificate_["transform-choice"].verdict) == "not verifiable"
    lapped = TransformNMF(2, reference="dct-iv", max_iter=20, random_state=0).fit(noise[:12])
    np.testing.assert_allclose(lapped.transform_, dct_iv_matrix(8), atol=1e-14)
    assert not hasattr(few.set_params(method="tl").fit(noise[:12]), "choice_")


def test_averages_longer_than_a_held_out_block_leave_nothing_to_choose_by():
    Y = composite_frames(2, 60, 5, 2)
    train, blocks = held_out_blocks(60)
    longest = min(map(len, blocks))
    assert longest < len(train)
    options = {"reference": "dct", "eps0": 1e-6, "checkpoint": None, "method_params": None}
    options |= {"average_frames": longest + 1, "averaging": "moving", "max_iter": 2, "rng": 0, "init": "dct"}
    _, choice = learn_chosen(Y, 2, **options)
    assert choice.held_out == ()
    assert choice_statement(choice).verdict == "not verifiable"


def test_the_statement_compares_the_fixed_the_learned_and_the_chosen_transform():
    choice = TransformChoice(0.5, (0.0, 0.5, 0.75, 1.0), (-1.5, -1.75, -1.625, -1.25), (0.1,) * 4, 60, 20)
    sentence = choice_statement(choice).sentence
    assert "-1.5 for the DCT, -1.25 for the learned transform and -1.75 for the chosen one" in sentence


@pytest.mark.parametrize("n_frames", [23, 24, 35, 36, 96, 97, 400])
def test_a_third_of_the_blocks_is_held_out(n_frames):
    train, blocks = held_out_blocks(n_frames)
    n_blocks = min(n_frames // 4, 24) // 3 * 3
    if n_blocks < 6:
        assert blocks == []
        np.testing.assert_array_equal(train, np.arange(n_frames))
        return
    edges = np.round(np.linspace(0, n_frames, n_blocks + 1)).astype(int)
    expected = [list(range(edges[at], edges[at + 1])) for at in range(2, n_blocks, 3)]
    assert [block.tolist() for block in blocks] == expected
    held = {frame for block in expected for frame in block}
    near = {frame + step for frame in held for step in (-1, 0, 1)}
    np.testing.assert_array_equal(train, [frame for frame in range(n_frames) if frame not in near])


def test_the_best_candidate_must_be_better_with_confidence():
    sizes = [2, 2, 4]
    weights = np.array(sizes) / 8
    flat = np.zeros((5, 3))
    better = flat.copy()
    better[3] = [-1.0, -1.1, -0.9]
    found = selection._chosen(better, sizes, 20, "dct")
    assert (found.fraction, found.name) == (0.75, "blend")
    assert (found.n_train, found.n_held_out, found.reference) == (20, 8, "dct")
    assert found.held_out == pytest.approx(better @ weights)
    spread = (better[3] - better[3] @ weights) ** 2 @ weights
    assert found.standard_errors == pytest.approx((0, 0, 0, np.sqrt(spread / 2), 0))
    # As good on average, but not on every block.
    better[3] = [-9.0, 8.0, -2.0]
    unsure = selection._chosen(better, sizes, 20, "dct")
    assert (unsure.fraction, unsure.name) == (0.0, "dct")
    limit = scipy.stats.t.ppf(0.975, 2)
    for margin, fraction in ((1.02, 1.0), (0.98, 0.0)):
        values = flat.copy()
        values[4] = [-1.0, 1.0, 0.0]
        error = np.sqrt((values[4] - values[4] @ weights) ** 2 @ weights / 2)
        values[4] -= margin * limit * error
        assert selection._chosen(values, sizes, 20, "dct").fraction == fraction
    assert selection._chosen(better - [[0], [0], [0], [0], [99]], sizes, 20, "dct").name == "learned"


@pytest.mark.parametrize("fraction", [0.0, 0.5, 1.0])
def test_a_choice_travels_as_plain_values_and_is_stated(fraction):
    choice = TransformChoice(fraction, (0.0, 0.5, 1.0), (3.0, 2.5, 2.0), (0.0, 0.1, 0.2), 30, 12)
    plain = choice.as_dict()
    assert plain["held_out"] == [3.0, 2.5, 2.0]
    assert TransformChoice.from_dict(plain) == choice
    found = choice_statement(choice)
    at = (0.0, 0.5, 1.0).index(fraction)
    assert (found.number, found.threshold) == (choice.held_out[at], 3.0)
    assert found.quantities == {
        "held_out_0": 3.0,
        "held_out_0.5": 2.5,
        "held_out_1": 2.0,
        "fraction": fraction,
        "standard_error": choice.standard_errors[at],
    }
    said = f"is 3 for the DCT, 2 for the learned transform and {choice.held_out[at]:g} for the chosen one."
    assert f"on 12 held-out frames C per coefficient {said}" in found.sentence
