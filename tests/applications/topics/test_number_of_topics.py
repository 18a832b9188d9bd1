"""How many topics: the recommendation, its curves and its reason."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import load
from nonneg.applications import TopicModel
from nonneg.applications.topics import number_of_topics as module
from nonneg.applications.topics.methods import FoundTopics, Task
from nonneg.applications.topics.number_of_topics import (
    _reason,
    _without_small_groups,
    compare_numbers,
    group_modularity,
    recommended,
    similar_documents,
    word_agreement,
)
from nonneg.exceptions import InvalidParameterError, UnsupportedError


@pytest.fixture(scope="module")
def five_topics():
    # Sixty documents about each of five subjects, with twelve words of their own, among common words.
    rng = np.random.default_rng(0)
    own = [rng.dirichlet(np.full(12, 2.0)) for _ in range(5)]
    counts = np.zeros((300, 100))
    for row in range(300):
        subject = row % 5
        counts[row, 12 * subject : 12 * subject + 12] = rng.multinomial(12, own[subject])
        counts[row, 60:] = rng.multinomial(14, np.full(40, 1 / 40))
    return counts


def test_auto_finds_the_number_of_planted_topics(five_topics, tmp_path):
    model = TopicModel("auto", random_state=0).fit(five_topics)
    assert model.n_topics_ == len(model.topics_) == 5
    chosen = model.selection_
    assert chosen["n_topics"] == 5
    curves = ("candidates", "modularity", "stability", "stability_spread", "npmi")
    lengths = {len(chosen[name]) for name in curves}
    assert lengths == {len(chosen["candidates"])}
    assert chosen["candidates"][:4] == [2, 3, 4, 5]
    assert chosen["reason"].startswith("5 topics divide the documents most clearly")
    assert chosen["range"] == [5, 5]
    assert chosen["modularity"][3] == max(chosen["modularity"]) > 0.5
    # The same seed, the same choice; the parameter stays what the user typed.
    assert model.n_topics == "auto"
    assert model.transform(five_topics).shape == (300, 5)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.selection_ == chosen
    assert again.n_topics == "auto"
    np.testing.assert_allclose(again.transform(five_topics), model.transform(five_topics))


def test_candidates_can_be_given(five_topics):
    model = TopicModel([3, 5, 9], random_state=0).fit(five_topics)
    assert model.selection_["candidates"] == [3, 5, 9]
    assert model.n_topics_ == 5
    assert TopicModel(range(4, 5), random_state=0).fit(five_topics).selection_ is None
    # As many topics as anchors need no search.
    anchored = TopicModel("auto", anchors=[0, 12, 24], method="spa").fit(five_topics)
    assert (anchored.n_topics_, anchored.selection_) == (3, None)


@pytest.mark.parametrize("method", ["kl", pytest.param("lda", marks=pytest.mark.slow), "spa"])
def test_every_method_has_a_stability(five_topics, method):
    # Few passes of scikit-learn's method are enough here.
    limit = 2 if method == "lda" else None
    model = TopicModel([2, 5], method=method, max_iter=limit, random_state=0).fit(five_topics[:100])
    assert model.n_topics_ in (2, 5)
    assert all(0 <= value <= 1 for value in model.selection_["stability"])


def test_seed_words_and_streams(five_topics):
    seeds = {"one": [0, 1], "two": [12, 13], "three": [24]}
    model = TopicModel([2, 5], seed_words=seeds, random_state=0).fit(five_topics)
    assert model.selection_["candidates"] == [5]  # no fewer than there are seeds
    with pytest.raises(UnsupportedError, match="partial_fit needs a number of topics"):
        TopicModel("auto").partial_fit(five_topics)


@pytest.mark.parametrize("wrong", [[], [0, 3], [2.5], "many", 0, [400, 500]])
def test_wrong_numbers(five_topics, wrong):
    with pytest.raises(InvalidParameterError, match="n_topics"):
        TopicModel(wrong).fit(five_topics)


def test_agreement_is_the_average_jaccard_similarity_of_matched_topics():
    words = np.array([[0, 1, 2], [3, 4, 5]])
    assert word_agreement(words, words[::-1]) == 1.0
    assert word_agreement(words, words + 6) == 0.0
    # {0} {0,1} {0,1,2} against {0} {0,2} {0,2,9}: 1, 1/3 and 2/4; the other topic agrees in none.
    other = np.array([[7, 8, 6], [0, 2, 9]])
    assert word_agreement(words, other) == pytest.approx((1 + 1 / 3 + 2 / 4) / 3 / 2)


def test_the_largest_modularity_is_recommended_with_a_range():
    assert recommended(np.array([0.2, 0.5, 0.6, 0.58, 0.59, 0.4])) == (2, (2, 4))
    # Digits that depend on the machine do not decide.
    assert recommended(np.array([0.4, 0.6, 0.6 + 1e-9])) == (1, (1, 2))
    assert recommended(np.array([0.0, -0.1])) == (0, (0, 0))


def test_modularity_of_main_topics(rng):
    # Two groups of six documents that share no words.
    weights = sp.csr_array(np.kron(np.eye(2), np.ones((6, 4))) / 2.0)
    graph = similar_documents(weights, 3)
    assert (graph.toarray() == graph.toarray().T).all()
    assert graph.toarray()[:6, 6:].max() == 0.0 == graph.diagonal().max()
    assert np.diff(graph.indptr).min() >= 3
    right = np.repeat(np.eye(2), 6, axis=0)
    degrees = graph.sum(axis=1)
    shares = [degrees[:6].sum() / degrees.sum(), degrees[6:].sum() / degrees.sum()]
    assert group_modularity(graph, right) == pytest.approx(1.0 - np.square(shares).sum())
    assert group_modularity(graph, np.ones((12, 1))) == pytest.approx(0.0)
    assert group_modularity(graph, rng.random((12, 2))) < group_modularity(graph, right)
    # More neighbors than documents, and documents without common words.
    assert (np.diff(similar_documents(weights, 100).indptr) == 5).all()
    assert group_modularity(similar_documents(sp.csr_array(np.eye(4)), 2), np.eye(4)) == 0.0


def test_documents_without_subjects_are_called_so(rng):
    counts = rng.poisson(0.5, (150, 60))
    model = TopicModel([2, 4], random_state=0, max_iter=20).fit(counts)
    assert max(model.selection_["modularity"]) < 0.3
    assert model.selection_["reason"].startswith("None of the numbers of topics that were tried")


@pytest.mark.parametrize(
    ("numbers", "modularity", "at", "near", "said"),
    [
        ([2, 3, 4], [0.3, 0.6, 0.2], 1, (1, 1),
         "3 topics divide the documents most clearly (modularity 0.60). No other number that was tried"),
        ([2, 3, 4], [0.59, 0.6, 0.2], 1, (0, 1), "Numbers from 2 to 3 divide them nearly as well"),
        ([2, 3, 4], [0.6, 0.4, 0.6], 0, (0, 2), "Some numbers from 2 to 4 divide them nearly as well"),
        ([2, 3], [0.3, 0.6], 1, (1, 1), "comes near. Larger numbers were not tried."),
        ([5], [0.6], 0, (0, 0), "(modularity 0.60). No other number was tried."),
        ([2, 3], [0.2, 0.1], 0, (0, 0), "None of the numbers of topics that were tried divides"),
        ([2, 3], [0.2, 0.1], 0, (0, 0), "subjects, and 0.20 at most here, with 2 topics."),
    ],
)  # fmt: skip
def test_the_reason_says_what_was_compared(numbers, modularity, at, near, said):
    reason = _reason(numbers, modularity, at, near)
    assert said in reason
    assert ("Larger numbers were not tried" in reason) == (at == len(numbers) - 1 > 0)
    assert ("Some numbers" in reason) == said.startswith("Some")


def planted_task(**changes):
    """Two groups of ten documents without common words, and an empty document."""
    counts = np.zeros((21, 8))
    counts[:10, :4] = counts[10:20, 4:] = 1.0
    counts *= 1.0 + np.arange(21)[:, None] / 1e9  # no two are the same
    return Task(sp.csr_array(counts), np.ones(8), 2, rng=0, **changes)


def by_halves(seen):
    """Return a method that tells the two groups apart, and keeps what it was given."""

    def run(task):
        seen.append(task)
        components = np.zeros((task.n_topics, 8))
        components[0, :4] = components[1, 4:] = [4.0, 3.0, 2.0, 1.0]

        def encode(counts):
            return np.asarray(counts @ components.T)

        return FoundTopics(components, encode, None, 1, None, None, set_aside=np.array([0]))

    return run


def test_every_candidate_is_fitted_to_the_whole_and_to_samples(monkeypatch, capsys):
    seen = []
    task = planted_task(params={"init": "x", "callback": print}, verbose=1)
    found = compare_numbers(task, "nmf", by_halves(seen), [3, 2], verbose=0)
    assert (found.candidates, found.n_topics) == ([2, 3], 2)
    # Without the empty document and the one that was set aside: nineteen, and four fifths of them.
    sizes = [each.counts.shape[0] for each in seen]
    assert sizes == [20] + [19, 15, 15, 15] * 2
    assert [each.n_topics for each in seen] == [3] + [2] * 4 + [3] * 4
    assert {each.verbose for each in seen} == {0}
    assert [each.set_aside for each in seen] == [True] + [False] * 8
    assert len({each.rng for each in seen}) == 1
    expected = {"tol": 1e-4, "max_iter": 200, "init": "x"}
    assert all(dict(each.params) == expected for each in seen)
    assert found.stability == [1.0, pytest.approx(found.stability[1])]
    assert found.stability_spread[0] == 0.0
    # Both groups are cliques of nine and ten documents: 1 - sum of the squared shares of the degrees.
    degrees = np.array([9 * 8, 10 * 9])
    assert found.modularity[0] == pytest.approx(1.0 - np.sum((degrees / degrees.sum()) ** 2))
    assert np.isfinite(found.npmi).all()  # of the topics that have words
    assert found.range == [2, 3]
    assert capsys.readouterr().err == ""
    seen.clear()
    compare_numbers(task, "lda", by_halves(seen), [2])
    assert [each.counts.shape[0] for each in seen] == [20, 16, 16, 16]
    assert dict(seen[0].params) == {"max_iter": 10, "init": "x"}
    monkeypatch.setattr(module, "MAX_DOCUMENTS", 12)
    seen.clear()
    compare_numbers(task, "spa", by_halves(seen), [2])
    assert [each.counts.shape[0] for each in seen] == [12, 10, 10, 10]
    assert len(np.unique(seen[0].counts.toarray(), axis=0)) == 12
    assert capsys.readouterr().err == ""


def test_groups_that_are_too_small_are_left_out_once():
    seen = []
    task = planted_task()
    found = _without_small_groups(task, task.counts, [2, 18, 25], by_halves(seen))
    assert (seen[0].n_topics, found.shape[0]) == (18, 20)
    np.testing.assert_array_equal(found.toarray(), task.counts.toarray()[1:])

    def nothing(task):
        return FoundTopics(np.zeros((2, 8)), None, None, 1, None, None, set_aside=None)

    assert _without_small_groups(task, task.counts, [2], nothing) is task.counts
