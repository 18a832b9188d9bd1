"""Number of topics: the recommendation, its curves and its reason."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg import load
from nonneg.applications import TopicModel
from nonneg.applications.topics.number_of_topics import recommendation
from nonneg.exceptions import InvalidParameterError


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
    model = TopicModel(random_state=0).fit(five_topics)
    assert TopicModel(None, random_state=0).fit(five_topics).n_topics_ == 5
    assert model.n_topics_ == len(model.topics_) == 5
    chosen = model.selection_
    assert chosen["n_topics"] == 5
    curves = ("candidates", "modularity", "modularity_error", "npmi")
    lengths = {len(chosen[name]) for name in curves}
    assert lengths == {len(chosen["candidates"])}
    assert chosen["candidates"][:4] == [2, 3, 4, 5]
    assert chosen["reason"].startswith("5 topics have the largest modularity")
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


def test_seed_words_and_streams(five_topics):
    seeds = {"one": [0, 1], "two": [12, 13], "three": [24]}
    model = TopicModel([2, 5], seed_words=seeds, random_state=0).fit(five_topics)
    assert model.selection_["candidates"] == [5]  # no fewer than there are seeds
    # A stream has as many topics as its first batch.
    stream = TopicModel([2, 5], random_state=0).partial_fit(five_topics[:200])
    assert stream.partial_fit(five_topics[200:]).n_topics_ == 5


@pytest.mark.parametrize("wrong", [[], [0, 3], [2.5], "many", 0, [400, 500]])
def test_wrong_numbers(five_topics, wrong):
    with pytest.raises(InvalidParameterError, match="n_topics"):
        TopicModel(wrong).fit(five_topics)


def test_documents_without_subjects_are_called_so(rng):
    counts = rng.poisson(0.5, (150, 60))
    model = TopicModel([2, 4], random_state=0, max_iter=20).fit(counts)
    assert max(model.selection_["modularity"]) < 0.3
    assert model.selection_["reason"].startswith("No number stands out: ")


@pytest.mark.parametrize(
    ("modularity", "words"),
    [
        ([0.5, 0.2, 0.2, 0.2], "(0.50); within one standard error: no other number that was tried."),
        (
            [0.2, 0.5, 0.499, 0.2],
            "(0.50); within one standard error: 4.",
        ),
        (
            [0.499, 0.5, 0.499, 0.2],
            "No number stands out: 3 topics have the largest modularity (0.50); within one",
        ),
        (
            [0.1, 0.29, 0.1, 0.1],
            "No number stands out: 3 topics have the largest modularity (0.29), and docum",
        ),
        ([0.2, 0.2, 0.2, 0.5], "was tried. Larger numbers were not tried."),
    ],
)
def test_the_reason_says_which_numbers_are_within_one_standard_error(modularity, words, rng):
    noise = rng.normal(size=(4, 400))
    noise = 1e-4 * (noise - noise.mean(axis=1, keepdims=True))
    parts = np.array(modularity)[:, None] / 400 + noise
    chosen = recommendation([2, 3, 4, 5], parts)
    assert words in chosen["reason"]
    assert chosen["range"][0] <= chosen["n_topics"] <= chosen["range"][1]
    np.testing.assert_allclose(chosen["modularity"], modularity)
