"""learn_transform: descent, decomposition, orthogonality, parameters, history, callback, checkpoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.fft
from tests.transforms.cases import composite_frames, drawn_orthogonal

from nonneg import joint_diagonalize, learn_transform
from nonneg.exceptions import (
    InterruptedFitWarning,
    InvalidParameterError,
    NegativeDataError,
    ShapeError,
    UnknownNameError,
    UnsupportedError,
)
from nonneg.iteration import StopReason
from nonneg.transforms.covariances import frame_covariances
from nonneg.transforms.initialization import dct_matrix, initial_state
from nonneg.transforms.loop import ARRAY_STEPS
from nonneg.transforms.options import method_options
from nonneg.transforms.rotations.group import orthogonality_error
from nonneg.transforms.state import REORTHOGONALIZATION_PERIOD, reorthogonalized

Y = composite_frames(4, 30, 7, 3)
OPTIONS: dict[str, Any] = {"eps0": 1e-6, "rng": 0, "tol": 0}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "jd"},
        {"method_params": {"line_search": "backtracking"}},
        {"method_params": {"n_rotation_updates": 3, "n_nmf_updates": 2}},
    ],
    ids=str,
)
def test_the_loss_never_rises_and_the_parts_add_up(options: dict[str, Any]) -> None:
    result = learn_transform(Y, 3, max_iter=40, **OPTIONS, **options)
    losses = np.asarray(result.history.loss)
    assert len(losses) == result.n_iter
    assert np.diff(losses).max() <= 1e-12 * np.abs(losses).max()
    parts = result.factorization_history or result.history
    C, L, divergence = (np.asarray(parts[name]) for name in ("C", "L", "I"))
    assert np.abs(C - L - divergence).max() <= 1e-10 * np.abs(C).max()
    assert result.objective == pytest.approx(result.likelihood + result.divergence, rel=1e-10)
    assert C[-1] == pytest.approx(result.objective, rel=1e-10)
    assert orthogonality_error(result.transform) < 1e-12
    assert np.allclose(result.H.sum(axis=1), 1.0, rtol=1e-12)
    assert (result.W >= 0).all()
    assert result.W.shape == (30, 3)
    assert result.H.shape == (3, 7)
    assert result.variances.shape == (30, 7)
    for name in ("orthogonality", "descent", "decomposition", "factored-covariances"):
        assert result.certificate[name].holds, result.certificate[name]
    if options.get("method") == "jd":
        gap = result.certificate["distance-from-joint-fit"]
        assert gap.number == pytest.approx(result.divergence)
        assert "globally" in gap.sentence


@pytest.mark.parametrize("method", ["tl", "jd"])
def test_orthogonality_after_a_thousand_iterations(method: str) -> None:
    frames = composite_frames(1, 12, 6, 2)
    result = learn_transform(frames, 2, method=method, max_iter=1000, eps0=1e-3, rng=0, tol=0)
    assert orthogonality_error(result.transform) < 1e-12
    # The array code too, and between re-orthogonalizations.
    data = frame_covariances(frames)
    state = initial_state(data, 2, init=None, n_init=1, rng=0)
    options = method_options(method, eps0=1e-3, n_nmf_updates=1)
    for i in range(1, 201):
        state = ARRAY_STEPS[method](state, data, options)[0]
        if i % REORTHOGONALIZATION_PERIOD == 0:
            state = reorthogonalized(state, data)
    assert orthogonality_error(state.transform).max() < 1e-12
    assert np.allclose(state.frames, data.rows @ np.swapaxes(state.transform, 1, 2), atol=1e-12)


def test_a_transform_that_made_the_data_is_found() -> None:
    frames = composite_frames(3000, 40, 5, 2, seed=3)
    truth = drawn_orthogonal(5, np.random.default_rng(3))
    for method in ("tl", "jd"):
        result = learn_transform(frames, 2, method=method, eps0=1e-8, max_iter=300, n_init=3, rng=0)
        # Atoms are known up to order and sign.
        assert np.abs(result.transform @ truth.T).max(axis=1).min() > 0.995


def test_starts_by_name_and_by_array() -> None:
    cosines = learn_transform(Y, 3, init="dct", max_iter=0, **OPTIONS)
    assert np.allclose(cosines.transform, dct_matrix(7))
    assert cosines.n_iter == 0
    again = learn_transform(Y, 3, init=(cosines.transform, 3.0 * cosines.H, cosines.W), max_iter=0, **OPTIONS)
    # Components are scaled to norm one, and their product with the activations stays.
    assert np.allclose(again.H, cosines.H)
    assert np.allclose(again.W, 3.0 * cosines.W)
    given = learn_transform(Y, 3, init=cosines.transform, max_iter=5, **OPTIONS)
    named = learn_transform(Y, 3, init="dct", max_iter=5, **OPTIONS)
    assert given.objective == pytest.approx(named.objective, rel=1e-13)
    listed = learn_transform(Y, 3, init=cosines.transform.tolist(), max_iter=5, **OPTIONS)
    assert given.objective == listed.objective


def test_a_gradient_that_is_left_is_said_to_be() -> None:
    early = learn_transform(Y, 3, max_iter=2, **OPTIONS).certificate["skew-gradient"]
    assert not early.holds
    assert early.sentence.startswith("A small rotation of the transform would still decrease the objective C")
    many = composite_frames(40, 12, 5, 2)
    settled = learn_transform(many, 2, method="jd", max_iter=100, **OPTIONS).certificate["skew-gradient"]
    assert settled.holds
    assert (
        "To first order, small rotations of the transform do not change the objective L" in settled.sentence
    )


def test_inputs_are_not_changed_and_seeds_repeat() -> None:
    before = Y.copy()
    Y.setflags(write=False)
    first, second = (learn_transform(Y, 3, max_iter=10, **OPTIONS) for _ in range(2))
    Y.setflags(write=True)
    assert np.array_equal(Y, before)
    assert np.array_equal(first.transform, second.transform)
    assert np.array_equal(first.W, second.W)
    other = learn_transform(Y, 3, max_iter=10, eps0=1e-6, rng=1, tol=0)
    assert not np.array_equal(first.transform, other.transform)


def test_tolerance_callback_and_interruption() -> None:
    done = learn_transform(Y, 3, eps0=1e-6, rng=0, max_iter=500, tol=1e-4)
    assert done.stop_reason is StopReason.CONVERGED
    assert 10 < done.n_iter < 500
    asked = learn_transform(Y, 3, callback=lambda progress: progress.n_iter == 4, **OPTIONS)
    assert asked.stop_reason is StopReason.CALLBACK
    assert asked.n_iter == 4

    def interrupt(progress: Any) -> None:
        if progress.n_iter == 3:
            raise KeyboardInterrupt

    for method in ("tl", "jd"):
        with pytest.warns(InterruptedFitWarning):
            cut = learn_transform(Y, 3, method=method, callback=interrupt, **OPTIONS)
        assert cut.stop_reason is StopReason.INTERRUPTED
        assert cut.n_iter == 3
        assert cut.W is not None
        assert np.isfinite(cut.objective)


def test_a_saved_run_goes_on_as_if_it_had_not_stopped(tmp_path: Any) -> None:
    for method in ("tl", "jd"):
        options = OPTIONS | {"method": method, "n_init": 2}
        whole = learn_transform(Y, 3, max_iter=30, **options)
        folder = tmp_path / method
        learn_transform(
            Y, 3, max_iter=30, checkpoint=folder, callback=lambda progress: progress.n_iter == 12, **options
        )
        resumed = learn_transform(Y, 3, max_iter=30, checkpoint=folder, **options)
        assert resumed.n_iter == 30
        assert np.array_equal(whole.transform, resumed.transform)
        assert whole.objective == resumed.objective


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"method": "ica"}, UnknownNameError, "jd"),
        ({"method_params": {"line_search": "golden"}}, UnknownNameError, "'wolfe'"),
        ({"eps0": -1.0}, InvalidParameterError, "eps0"),
        ({"eps0": np.nan}, InvalidParameterError, "eps0"),
        ({"eps0": 0.0}, InvalidParameterError, "full rank"),
        ({"n_init": 0}, InvalidParameterError, "n_init"),
        ({"max_iter": 1.5}, InvalidParameterError, "max_iter"),
        ({"tol": "small"}, InvalidParameterError, "tol"),
        ({"method_params": {"search": "wolfe"}}, UnknownNameError, "'line_search'"),
        ({"method": "jd", "method_params": {"line_search": "wolfe"}}, UnsupportedError, "only 'tl' does"),
        ({"method_params": 3}, InvalidParameterError, "method_params must be"),
        ({"callback": 3}, InvalidParameterError, "callback must be None or a function"),
        ({"checkpoint": 3}, InvalidParameterError, "checkpoint must be None or the path"),
        ({"init": "fourier"}, UnknownNameError, "dct"),
        ({"init": np.ones((7, 7))}, InvalidParameterError, "not orthogonal"),
        ({"init": np.eye(6)}, ShapeError, "(7, 7)"),
        ({"init": (np.eye(7), np.ones((3, 7)))}, InvalidParameterError, "2 parts"),
        ({"init": (np.eye(7), -np.ones((3, 7)), np.ones((30, 3)))}, NegativeDataError, "components"),
        ({"init": (np.eye(7), np.zeros((3, 7)), np.ones((30, 3)))}, InvalidParameterError, "all zeros"),
        ({"init": (np.eye(7), np.ones((3, 7)), np.ones((29, 3)))}, ShapeError, "activations"),
    ],
    ids=str,
)
def test_bad_parameters(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        learn_transform(Y, 3, **(OPTIONS | options))
    assert words in str(caught.value)


def test_bad_number_of_components() -> None:
    with pytest.raises(InvalidParameterError, match="n_components"):
        learn_transform(Y, 0)


def test_the_dct_is_kept() -> None:
    found = learn_transform(Y, 3, method="dct", max_iter=20, **OPTIONS)
    assert np.allclose(found.transform, dct_matrix(7), atol=1e-13)
    assert found.method == "dct"
    start = learn_transform(Y, 3, init="dct", max_iter=0, **OPTIONS)
    assert found.objective < start.objective
    assert found.likelihood == pytest.approx(start.likelihood, rel=1e-12)


def test_initialization_by_joint_diagonalization() -> None:
    found = learn_transform(Y, 3, init="jd", n_init=2, max_iter=0, **OPTIONS)
    random = learn_transform(Y, 3, n_init=2, max_iter=0, **OPTIONS)
    assert found.likelihood < random.likelihood
    jd = joint_diagonalize(frame_covariances(Y), eps0=OPTIONS["eps0"], rng=0, max_iter=60)
    assert found.likelihood == pytest.approx(jd.likelihood, rel=1e-10)
    with pytest.raises(UnsupportedError, match="n_nmf_updates"):
        joint_diagonalize(frame_covariances(Y), eps0=1e-3, method_params={"n_nmf_updates": 1})


FRAMES = frame_covariances(composite_frames(1, 9, 4, 2))


def test_the_fixed_transform_is_the_orthonormal_cosine_transform() -> None:
    for m in (2, 5, 8):
        expected = scipy.fft.dct(np.eye(m), norm="ortho", axis=0)
        np.testing.assert_allclose(dct_matrix(m), expected, atol=1e-12)


def test_what_is_given_does_not_change_what_is_drawn() -> None:
    drawn = initial_state(FRAMES, 2, init=None, n_init=4, rng=3)
    assert drawn.batch == 4
    np.testing.assert_allclose(drawn.frames, FRAMES.rows @ np.swapaxes(drawn.transform, 1, 2))
    np.testing.assert_array_equal(
        drawn.transform, initial_state(FRAMES, 2, init="random", n_init=4, rng=3).transform
    )
    one, two = np.eye(4)[[1, 0, 2, 3]], np.eye(4)[[3, 1, 2, 0]]
    for init, expected in (
        ("dct", [dct_matrix(4)] * 4),
        (one, [one, *drawn.transform[1:]]),
        (np.stack([one, two]), [one, two, *drawn.transform[2:]]),
    ):
        found = initial_state(FRAMES, 2, init=init, n_init=4, rng=3)
        np.testing.assert_allclose(found.transform, np.stack(expected), atol=1e-12)
        np.testing.assert_array_equal(found.activations, drawn.activations)
        np.testing.assert_array_equal(found.components, drawn.components)
    fewer = initial_state(FRAMES, 2, init=np.stack([one, two]), n_init=1, rng=3)
    np.testing.assert_allclose(fewer.transform, one[None], atol=1e-12)
    assert initial_state(FRAMES, None, init="dct", n_init=2, rng=3).activations is None


@pytest.mark.parametrize("n_given", [1, 2])
def test_given_factors_are_normalized_without_changing_their_product(n_given: int) -> None:
    rng = np.random.default_rng(1)
    H, W = rng.random((n_given, 2, 4)), rng.random((n_given, 9, 2))
    H[0, 0, 0] = W[0, 0, 0] = 0.0  # zeros are allowed
    init = (np.stack([np.eye(4)] * n_given), H, W)
    drawn = initial_state(FRAMES, 2, init=None, n_init=3, rng=0)
    found = initial_state(FRAMES, 2, init=init, n_init=3, rng=0)
    np.testing.assert_allclose(found.components.sum(axis=2), 1.0)
    np.testing.assert_allclose((found.activations @ found.components)[:n_given], W @ H)
    np.testing.assert_array_equal(found.activations[n_given:], drawn.activations[n_given:])
    # A joint diagonalization has no use for them.
    assert initial_state(FRAMES, None, init=init, n_init=3, rng=0).components is None


@pytest.mark.parametrize(
    ("init", "error", "words"),
    [
        ((np.eye(4), np.ones((2, 4)), -np.ones((9, 2))), NegativeDataError, "activations .* entry: -1"),
        ((np.eye(4), np.full((2, 4), np.inf), np.ones((9, 2))), InvalidParameterError, "components .* fin"),
        ((np.eye(4), np.ones((2, 2, 4)), np.ones((2, 9, 2))), ShapeError, "1 transforms, 2 components and"),
        ((np.eye(4), np.ones((1, 2, 4)), np.ones((2, 9, 2))), ShapeError, "1 components and 2 activations"),
        ((np.eye(4), np.array([[1.0, 0, 0, 0], [0] * 4]), np.ones((9, 2))), InvalidParameterError, "zeros"),
        (np.diag([1.0, 1.0, 1.0, 1.001]), InvalidParameterError, r"orthonormal ones by 0\.002"),
        (np.ones((1, 1, 4, 4)), ShapeError, r"\(4, 4\), got \(1, 1, 4, 4\)"),
        (np.full((4, 4), np.nan), InvalidParameterError, "finite"),
    ],
)  # fmt: skip
def test_initializations_that_cannot_be_used(init: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        initial_state(FRAMES, 2, init=init, n_init=1, rng=0)


def test_a_nearly_orthogonal_transform_is_made_orthogonal() -> None:
    found = initial_state(FRAMES, 2, init=np.eye(4) + 1e-6 * np.ones((4, 4)), n_init=1, rng=0)
    np.testing.assert_allclose(found.transform[0] @ found.transform[0].T, np.eye(4), atol=1e-12)
