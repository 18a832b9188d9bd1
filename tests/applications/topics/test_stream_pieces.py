"""What is kept of a stream of documents, against plain formulas."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls

from nonneg.applications import TopicModel
from nonneg.applications.topics import stream as module
from nonneg.applications.topics import streaming
from nonneg.applications.topics.stream import Balance, Stream, error_of, learned, sampled, scaled, tf
from nonneg.estimators.stored_fields import Content
from nonneg.exceptions import FileFormatError, InvalidDataError, UnsupportedError

K = 2
WORDS = np.array([0, 1, 3, 4, 5])


@pytest.fixture
def counts(rng):
    X = rng.poisson(1.2, (9, 6)).astype(float)
    X[:, 0] += 1.0
    X[4], X[6] = 0.0, 0.0
    X[4, 2] = X[6, 5] = 3.0  # a word that is not used, and a common one
    return sp.csr_array(X)


@pytest.fixture
def stream(rng, counts):
    """A stream of twenty documents of half the weight."""
    gram, frequencies = rng.random((K, K)), rng.uniform(2.0, 8.0, 6)
    frequencies[5] = 9.7
    return Stream(
        counts[:3], np.zeros(3), 20, 16, 2, 10.0, frequencies, rng.uniform(3.0, 9.0, 6), 7.0,
        rng.random(K), gram @ gram.T, rng.random((6, K)), rng.random((6, K)),
    )  # fmt: skip


def logarithms(counts):
    dense = counts.toarray()
    return np.where(dense > 0, 1.0 + np.log(np.maximum(dense, 1.0)), 0.0)


def plain_scaled(stream, counts, balance):
    """Return the weighted documents over the used words, without and with inverse frequencies."""
    inverse = np.zeros(6)
    inverse[WORDS] = np.log(stream.n_documents / stream.frequencies[WORDS])
    plain = logarithms(counts)
    weights = plain * inverse
    lengths = np.linalg.norm(weights, axis=1)
    size = lengths**2
    if balance.balanced:
        mean_length = (stream.length + lengths.sum()) / stream.n_documents
        size = weights @ (stream.sums * inverse) / stream.n_documents + balance.added * mean_length * lengths
    scale = np.array([1.0 / np.sqrt(value) if value > 0 else 0.0 for value in size])
    return scale[:, None] * plain, (scale[:, None] * weights)[:, WORDS], inverse[WORDS], lengths.sum()


def encoded(X, topics):
    return np.array([nnls(topics, row)[0] for row in X])


def test_new_words_have_no_past(stream):
    assert stream.widened(6) is stream
    wide = stream.widened(8)
    assert wide.kept.shape == (3, 8)
    np.testing.assert_array_equal(wide.kept.toarray()[:, :6], stream.kept.toarray())
    for name in ("frequencies", "sums", "cross", "topics"):
        found = getattr(wide, name)
        np.testing.assert_array_equal(found[:6], getattr(stream, name))
        assert found.shape[0] == 8
        assert not found[6:].any()
    assert wide.cross.shape == wide.topics.shape == (8, K)


def test_the_past_loses_its_weight_and_documents_are_counted(stream, counts):
    less = stream.decayed(0.25)
    for name in ("n_documents", "frequencies", "sums", "length", "shares", "gram", "cross"):
        np.testing.assert_allclose(getattr(less, name), 0.25 * np.asarray(getattr(stream, name)))
    assert less.topics is stream.topics
    assert (less.n_seen, less.n_fitted, less.n_batches) == (20, 16, 2)
    more = stream.with_counted(counts)
    assert more.n_documents == 19.0
    np.testing.assert_allclose(more.frequencies, stream.frequencies + (counts.toarray() > 0).sum(axis=0))
    np.testing.assert_allclose(more.sums, stream.sums + logarithms(counts).sum(axis=0))
    np.testing.assert_allclose(tf(counts).toarray(), logarithms(counts))


def test_the_documents_of_largest_priority_are_kept_in_their_order(stream, counts, monkeypatch):
    kept, all_of_them = sampled(None, counts, None)
    assert kept.shape[0] == len(all_of_them) == 9
    monkeypatch.setattr(module, "N_KEPT", 9)
    assert sampled(None, counts, None)[0].shape[0] == 9
    monkeypatch.setattr(module, "N_KEPT", 4)
    kept, priorities = sampled(None, counts, None)
    chosen = np.sort(np.argsort(-all_of_them)[:4])
    np.testing.assert_array_equal(priorities, all_of_them[chosen])
    np.testing.assert_array_equal(kept.toarray(), counts.toarray()[chosen])
    # A later batch competes with what was kept, by numbers of its own.
    past = replace(stream, kept=kept, priorities=np.array([9.0, -9.0, 9.0, -9.0]), n_seen=9)
    monkeypatch.setattr(module, "N_KEPT", 99)
    both, later = sampled(past, counts, None)
    np.testing.assert_array_equal(both.toarray(), np.vstack([kept.toarray(), counts.toarray()]))
    np.testing.assert_array_equal(later[:4], past.priorities)
    assert not np.isin(later[4:], all_of_them).any()
    monkeypatch.setattr(module, "N_KEPT", 3)
    few, priorities = sampled(past, counts, None)
    assert priorities[:2].tolist() == [9.0, 9.0]
    np.testing.assert_array_equal(few.toarray()[:2], kept.toarray()[[0, 2]])


def test_late_documents_weigh_twice_as_much_after_the_half_life(stream, counts):
    _, first = sampled(None, counts, None)
    _, late = sampled(None, counts, 6.0)
    # As many as the documents so far weigh: 6 / log 2 = 8.7.
    np.testing.assert_allclose(late, first + np.arange(9) * np.log(2.0) / 6.0)
    past = replace(stream, kept=counts[:0], priorities=np.zeros(0))
    (_, plain), (kept, weighted) = (sampled(past, counts, half_life) for half_life in (None, 60.0))
    np.testing.assert_allclose(weighted, plain + (20 + np.arange(9)) * np.log(2.0) / 60.0)
    assert sampled(past, counts, 2.0)[0].shape[0] == 3  # 2 / log 2 = 2.9
    assert sampled(past, counts, 0.1)[0].shape[0] == 1
    assert kept.shape[0] == 9


@pytest.mark.parametrize("balance", [Balance(True, 0.5), Balance(True, 0.0), Balance(False, 0.5)])
def test_documents_are_weighted_by_what_is_known_of_the_stream(stream, counts, balance):
    documents, weighted, inverse, total = plain_scaled(stream, counts, balance)
    found, by_word, length = scaled(stream, counts, WORDS, balance)
    np.testing.assert_allclose(found.toarray(), documents)
    np.testing.assert_allclose(by_word, inverse)
    assert length == pytest.approx(total)
    topics = stream.topics[WORDS] * inverse[:, None]
    error = np.sum((weighted - encoded(weighted, topics) @ topics.T) ** 2)
    assert error_of(stream, counts, WORDS, balance) == pytest.approx(error)


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_sums_are_those_of_the_topics_that_were_learned(stream, counts, rounds):
    balance = Balance(True, 0.5)
    documents, weighted, inverse, total = plain_scaled(stream, counts, balance)
    found = learned(stream, counts, WORDS, balance, rounds=rounds)
    W = encoded(weighted, found.topics[WORDS] * inverse[:, None])
    np.testing.assert_allclose(found.gram, stream.gram + W.T @ W, rtol=1e-6)
    np.testing.assert_allclose(found.cross, stream.cross + documents.T @ W, rtol=1e-6)
    sums = W.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        found.shares, stream.shares + (W / np.where(sums > 0, sums, 1.0)).sum(axis=0), rtol=1e-6
    )
    assert found.length == pytest.approx(stream.length + total)
    assert np.allclose(found.topics, stream.topics, rtol=1e-12) == (rounds == 0)
    np.testing.assert_array_equal(found.topics[2], stream.topics[2])  # a word that is not used
    if rounds == 3:
        np.testing.assert_array_equal(learned(stream, counts, WORDS, balance).topics, found.topics)


@pytest.mark.parametrize(
    ("indptr", "good"),
    [
        ([0, 1, 3], True),
        ([0, 3], True),
        ([0], False),
        ([1, 3], False),
        ([0, 2], False),
        ([0, 2, 1, 3], False),
    ],
)
def test_stored_counts_are_rows_of_all_entries(indptr, good):
    content, field = Content(sizes={"n_features_in_": 2}), module.StoredCounts()
    assert not field.is_in("kept", content)
    field.write("kept", sp.csr_array([[1.0, 0.0], [2.0, 3.0]]), content)
    assert field.is_in("kept", content)
    content.arrays["kept.indptr"] = np.array(indptr)
    if good:
        assert field.read("kept", content).shape == (len(indptr) - 1, 2)
    else:
        with pytest.raises(FileFormatError, match="do not match each other"):
            field.read("kept", content)


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    topics = np.kron(np.eye(3), rng.dirichlet(np.full(8, 3.0))) + 0.002
    labels = np.arange(80) % 3
    X = rng.multinomial(30, topics[labels] / topics[labels].sum(axis=1, keepdims=True))
    return sp.csr_array(np.column_stack([X, np.ones(80)]).astype(float))  # the last word is in all


@pytest.fixture(scope="module")
def streamed(planted):
    return TopicModel(3, random_state=0).partial_fit(planted[:40]).partial_fit(planted[40:49])


def test_a_batch_of_a_stream_sets_what_a_fit_sets(streamed, planted):
    stream, words = streamed._stream, streamed.word_indices_
    assert (stream.n_seen, stream.n_fitted, stream.n_batches, stream.kept.shape[0]) == (49, 40, 2, 49)
    frequencies = (planted[:49].toarray() > 0).sum(axis=0)
    np.testing.assert_allclose(stream.frequencies, frequencies)
    assert 24 not in words
    np.testing.assert_array_equal(words, np.flatnonzero((frequencies >= 2) & (frequencies < 49)))
    np.testing.assert_allclose(streamed._inverse, np.log(49 / frequencies[words]))
    np.testing.assert_allclose(np.linalg.norm(streamed.components_, axis=1), 1.0)
    expected = (stream.topics[words] * streamed._inverse[:, None]).T
    np.testing.assert_allclose(
        streamed.components_[:, words], expected / np.linalg.norm(expected, axis=1, keepdims=True)
    )
    np.testing.assert_allclose(streamed.topic_proportions_, stream.shares / stream.shares.sum())
    assert stream.shares.sum() == pytest.approx(49.0)
    np.testing.assert_array_equal(streamed.duplicate_of_, np.arange(49))
    assert len(streamed.set_aside_) == 0
    assert streamed.result_ is None
    said = streamed.certificate_["topics-streamed"]
    assert said.quantities == {"n_batches": 2, "n_fitted": 40}
    assert "49 documents in 2 batches" in said.sentence
    assert "refer to 49 documents" in said.sentence


def test_topics_keep_the_order_of_the_stream(streamed):
    turned, stream = copy.copy(streamed), streamed._stream
    words = streamed.word_indices_
    turned._take_over(replace(stream, topics=stream.topics[:, ::-1]), words, np.float64)
    np.testing.assert_allclose(turned.components_, streamed.components_[::-1])


def test_topics_are_found_from_scratch_when_documents_have_grown_by_a_quarter(planted):
    model = TopicModel(3, random_state=0).partial_fit(planted[:40]).partial_fit(planted[40:50])
    assert (model._stream.n_seen, model._stream.n_fitted, model._stream.n_batches) == (50, 50, 2)
    assert "topics-streamed" not in model.certificate_
    whole = TopicModel(3, random_state=0).fit(planted[:50])
    np.testing.assert_allclose(np.sort(model.topic_proportions_), np.sort(whole.topic_proportions_))


def test_after_a_fit_its_documents_are_like_those_of_the_batch(planted):
    model = TopicModel(3, random_state=0).fit(planted[:40])
    before = (planted[:40].toarray() > 0).sum(axis=0)
    batch = planted[40:45]
    past = model._remembered(batch)
    assert (past.n_seen, past.n_fitted, past.n_batches, past.n_documents) == (40, 40, 0, 40)
    np.testing.assert_allclose(past.frequencies[model.word_indices_], before[model.word_indices_])
    assert past.kept.shape == (0, 25)
    np.testing.assert_allclose(past.cross, past.topics @ past.gram)
    words = model.word_indices_
    np.testing.assert_allclose(past.topics[words] * model._inverse[:, None], model.components_[:, words].T)
    assert past.shares.sum() == pytest.approx(40.0)
    model.partial_fit(batch)
    assert (model._stream.n_seen, model._stream.n_batches) == (45, 1)
    # A model of an earlier version does not know how many documents it was fitted to.
    model.documents_per_topic_ = np.full(3, -1)
    assert model._remembered(batch).n_seen == 5


def test_weights_of_documents_in_a_stream(streamed):
    stream = streamed._stream
    assert streamed._balance_of(stream) == Balance(True, pytest.approx(1 / 3))
    given = TopicModel(3, balance=False, min_documents=7.0)
    given.components_ = streamed.components_
    assert given._balance_of(stream) == Balance(False, pytest.approx(7.0 / 49))
    # Words that only forgotten documents contain are not used.
    rare = replace(stream, kept=stream.kept[:2])
    present = np.flatnonzero(stream.kept.toarray()[:2].any(axis=0))
    assert set(streamed._words_of(rare).tolist()) == set(present.tolist()) & set(streamed.word_indices_)
    with pytest.raises(InvalidDataError, match="No word is left"):
        streamed._words_of(replace(stream, frequencies=np.full(25, 49.0)))


def test_a_stream_goes_on_after_new_names_but_not_after_a_split(streamed, planted):
    named = streamed.rename_topics({1: "second"})
    assert named.partial_fit(planted[49:51]).topic_names_ == [None, "second", None]
    with pytest.raises(UnsupportedError, match="merged or split"):
        streamed.split_topic(0, planted[:49]).partial_fit(planted[49:51])


def test_topics_from_scratch_are_taken_over_where_they_fit_better(streamed, monkeypatch):
    stream = replace(streamed._stream, n_documents=98.0)  # twice as many as are kept
    dense, held_out = stream.kept.toarray(), np.arange(49) % 3 == 0
    started, tested, values = [], [], []
    start = TopicModel._start

    def recorded(self, counts):
        started.append(counts.toarray())
        start(self, counts)

    def error_of(stream, counts, words, balance):
        tested.append(counts.toarray())
        return values.pop(0)

    monkeypatch.setattr(TopicModel, "_start", recorded)
    monkeypatch.setattr(streaming, "error_of", error_of)
    for ratio, taken in ((0.98, True), (0.995, False)):
        started.clear()
        values[:] = [100.0, 100.0 * ratio]
        found = streamed._restarted(stream, streamed.word_indices_)
        assert (found.n_fitted, found.n_seen, found.n_batches) == (49, 49, 2)
        # Searched in two thirds of the sample, compared in the others, and then found in all of it.
        np.testing.assert_array_equal(started[0], dense[~held_out])
        assert all(np.array_equal(counts, dense[held_out]) for counts in tested)
        assert len(started) == 1 + taken
        assert (found.gram is stream.gram) == (not taken)
        if taken:
            np.testing.assert_array_equal(started[1], dense)
            assert found.shares.sum() == pytest.approx(98.0)
            assert (found.n_documents, found.frequencies is stream.frequencies) == (98.0, True)
    monkeypatch.setattr(TopicModel, "_start", lambda self, counts: self._words_of(None))
    monkeypatch.setattr(TopicModel, "_words_of", fail)
    assert streamed._restarted(stream, streamed.word_indices_).topics is stream.topics


def fail(self, stream):
    raise InvalidDataError("too few")


@pytest.mark.parametrize(("half_life", "restart"), [(None, 80), (12.0, 52), (90.0, 80)])
def test_topics_are_sought_again_when_documents_have_doubled(half_life, restart, planted, monkeypatch):
    for place in (module, streaming):
        monkeypatch.setattr(place, "N_KEPT", 30)
    sought = []
    monkeypatch.setattr(
        TopicModel, "_restarted", lambda self, stream, words: sought.append(stream.n_seen) or stream
    )
    model = TopicModel(3, half_life=half_life, random_state=0).partial_fit(planted[:40])
    assert (model._stream.n_fitted, model._stream.n_seen) == (40, 40)
    before = model._stream.n_documents
    model.partial_fit(planted[40 : restart - 1])
    assert sought == []
    n, share = restart - 41, 1.0 if half_life is None else 0.5 ** ((restart - 41) / half_life)
    assert model._stream.n_documents == pytest.approx(share * before + n)
    model.partial_fit(planted[restart - 1 : restart])
    assert sought == [restart]


@pytest.mark.parametrize(
    ("half_life", "n_kept", "fitted"), [(None, 60, 60), (None, 59, 40), (60.0, 99, 60), (59.0, 99, 40)]
)
def test_documents_that_are_all_kept_are_fitted_as_a_whole(half_life, n_kept, fitted, planted, monkeypatch):
    for place in (module, streaming):
        monkeypatch.setattr(place, "N_KEPT", n_kept)
    model = TopicModel(3, half_life=half_life, random_state=0).partial_fit(planted[:40])
    assert model.partial_fit(planted[40:60])._stream.n_fitted == fitted
