"""Samples from anywhere: containers, chunks, threads, fresh rows and streams."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.data import purification_model
from reproduction.purification.perturbation import perturbed_features
from tests.references.containers import FILE_FORMS, MAIN_FORMS, as_container, plain
from tests.references.purification import purify_with_truth

from nonneg import purify
from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    NonnegError,
    NonnegWarning,
)


@pytest.fixture(scope="module")
def noisy(planted):
    return planted(
        n_samples=1500,
        n_features=40,
        n_components=8,
        sparsity=1.5,
        weights="uniform",
        noise="unbiased",
        noise_level=0.2,
    )


def at_twenty(X, init, **options):
    return purify(X, init, max_iter=20, tol=0, **options)


@pytest.mark.covering(1)
@pytest.mark.parametrize("form", MAIN_FORMS)
@pytest.mark.parametrize(
    "options", [{}, {"update": "covariance", "pseudo_inverse": "min-infinity"}], ids=["", "cov"]
)
def test_every_container_gives_the_same(noisy, form, options):
    X, init = noisy[0].X[:200], noisy[1]
    expected = at_twenty(X, init, **options)
    found = at_twenty(as_container(X, form), init, **options)
    np.testing.assert_allclose(plain(found.H), expected.H, atol=1e-8)
    np.testing.assert_allclose(plain(found.W), expected.W, atol=1e-8)
    assert type(found.W).__module__.partition(".")[0] == (
        "numpy"
        if form in ("dense", "fortran", "csr", "csc", *FILE_FORMS)
        else type(as_container(X, form)).__module__.partition(".")[0]
    )
    assert found.certificate["mixing-on-halves"].number == pytest.approx(
        expected.certificate["mixing-on-halves"].number, rel=1e-5
    )


def test_chunks_threads_and_streams_agree(noisy):
    data, init = noisy
    expected = at_twenty(data.X, init, n_jobs=1)
    da = pytest.importorskip("dask.array")
    for n_rows in (100, 1499):
        chunked = at_twenty(da.from_array(data.X, chunks=(n_rows, -1)), init)
        np.testing.assert_allclose(chunked.H, expected.H, atol=1e-8)
    np.testing.assert_allclose(at_twenty(data.X, init, n_jobs=3).H, expected.H, atol=1e-8)
    again = at_twenty(data.X, init, n_jobs=1)
    np.testing.assert_array_equal(again.H, expected.H)
    # What a stream's threshold is chosen from is its first batch, so it is given here.
    fixed = {"threshold": 0.2, "decode": "shifted"}
    expected = at_twenty(data.X, init, **fixed)
    for stream in (np.split(data.X, 5), lambda: iter(np.split(data.X, 30)), [data.X[:1000], data.X[1000:]]):
        found = at_twenty(stream, init, **fixed)
        np.testing.assert_allclose(found.H, expected.H, atol=1e-8)
        assert found.W is None
        assert found.certificate["mixing-on-halves"].number < 1


def test_fresh_rows_go_round(planted):
    data, init = planted(n_samples=2000)
    first = purify_with_truth(data.X, init, batch_size=800, max_iter=3, tol=0, truth=data.H)
    order = np.concatenate([np.arange(2000), np.arange(400)])
    parts = [data.X[order[i * 800 : (i + 1) * 800]] for i in range(3)]
    by_stream = purify(
        iter(parts), init, batch_size=800, tol=0, threshold=float(first.parameters["threshold"])
    )
    assert by_stream.n_iter == 3
    assert by_stream.stop_reason.name == "SAMPLES_ENDED"
    assert first.history["e_norm"][-1] < 1e-3
    np.testing.assert_allclose(by_stream.H, first.H, atol=1e-3)
    chunked = as_container(data.X, "dask-columns")
    np.testing.assert_allclose(purify(chunked, init, batch_size=800, max_iter=3, tol=0).H, first.H, atol=1e-8)
    assert first.W.shape == data.W.shape


def test_an_iterator_is_read_once_and_never_held():
    model = purification_model(60, 10, sparsity=2, rng=0)
    init = perturbed_features(model.H, 0.1, rng=1)
    alive = []

    def batches():
        import weakref

        for batch in model.batches(62_000, 1000, rng=2):
            alive.append(weakref.ref(batch))
            assert sum(reference() is not None for reference in alive) <= 2
            yield batch

    result = purify_with_truth(batches(), init, batch_size=3000, truth=model.H, tol=0)
    # Twenty iterations of 3000, and the last 2000 are more than half of one.
    assert result.n_iter == 21
    assert len(alive) == 62
    assert result.stop_reason.name == "SAMPLES_ENDED"
    assert result.history["e_norm"][-1] < 1e-10
    assert result.parameters["batch_size"] == 3000


def test_what_is_left_of_a_stream_is_dropped_below_half():
    model = purification_model(60, 10, sparsity=2, rng=0)
    init = perturbed_features(model.H, 0.1, rng=1)
    assert purify(model.batches(7000, 1000, rng=2), init, batch_size=3000, tol=0).n_iter == 2
    # By default an iteration takes 10 000 samples of an iterator, and all of what can be read again.
    assert purify(model.batches(20_000, 1000, rng=2), init, tol=0).n_iter == 2
    held = list(model.batches(4000, 1000, rng=2))
    assert purify(held, init, batch_size=3000, tol=0, max_iter=5).n_iter == 5
    with pytest.raises(InvalidDataError, match="empty"):
        purify(lambda: iter(()), init)


def test_a_single_batch_has_no_halves():
    model = purification_model(60, 10, sparsity=2, rng=0)
    init = perturbed_features(model.H, 0.1, rng=1)
    result = purify([model.draw(2000, rng=0).X], init, max_iter=3)
    assert str(result.certificate["mixing-on-halves"].verdict) == "not verifiable"


def test_a_function_may_return_any_iterable(noisy):
    data, init = noisy
    batches = [data.X[:700], data.X[700:]]
    expected = purify(batches, init, max_iter=5).H
    np.testing.assert_array_equal(purify(lambda: batches, init, max_iter=5).H, expected)
    with pytest.raises(InvalidParameterError, match="returned NoneType"):
        purify(lambda: None, init)
    with pytest.raises(NonnegError):
        purify(list, init, batch_size=50)  # nothing, however often it is called
    left = [batches]
    ended = purify(
        lambda: left.pop() if left else [], init, batch_size=1000
    )  # nothing from the second call on
    assert np.isfinite(ended.H).all()


def test_none_among_the_batches_is_not_their_end(noisy):
    data, init = noisy
    with pytest.raises(DataTypeError, match="got None"):
        purify(iter([data.X[:700], None, data.X[700:]]), init, batch_size=1400)


def test_a_stream_too_short_for_an_iteration_is_said_to_be(noisy):
    data, init = noisy
    with pytest.warns(NonnegWarning, match="ended after 1500 samples, but an iteration takes 10000"):
        result = purify(iter([data.X]), init)
    assert result.n_iter == 0
    np.testing.assert_array_equal(result.H, init)


@pytest.mark.parametrize("update", ["regression", "covariance"])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_weights_are_repetitions_and_only_their_shares_matter(noisy, update, form):
    data, init = noisy
    weights = np.random.default_rng(2).integers(0, 4, size=len(data.X))
    options = {"update": update, "max_iter": 12, "tol": 0, "pseudo_inverse": "moore-penrose"}
    X, repeated = (as_container(rows, form) for rows in (data.X, np.repeat(data.X, weights, axis=0)))
    wanted = purify(repeated, init, **options)
    found = purify(X, init, sample_weight=weights, **options)
    np.testing.assert_allclose(found.H, wanted.H, atol=1e-10)
    np.testing.assert_allclose(found.decoder.threshold, wanted.decoder.threshold, atol=1e-10)
    assert found.init_quality.level == pytest.approx(wanted.init_quality.level)
    assert found.parameters["batch_size"] == weights.sum()
    # A thousandth of every weight chooses other samples to look at, and nothing else.
    given = {"threshold": 0.3, "threshold_decay": 1.0}
    many, few = (purify(X, init, sample_weight=w, **options, **given) for w in (weights, weights / 1000))
    np.testing.assert_allclose(few.H, many.H, atol=1e-6)
