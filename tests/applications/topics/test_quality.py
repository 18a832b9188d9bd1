"""Topics rest on enough documents: small groups, copies, and what is said of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from reproduction.data import load_reuters21578
from reproduction.data.store import is_available
from reproduction.studies.topic_collections import planted_collection
from sklearn.utils import get_tags

from nonneg import load
from nonneg.applications import TopicModel
from nonneg.exceptions import DataChangedWarning, InvalidParameterError
from nonneg.metrics import normalized_mutual_information

PUBLISHED = {"min_documents": 0}


@pytest.fixture(scope="module")
def collection():
    return planted_collection(1000, 10)


@pytest.fixture(scope="module")
def of_collection(collection):
    return fitted(collection[0])


def fitted(X, **parameters):
    with warnings.catch_warnings():
        # Lists that were set aside contain no word of a topic.
        warnings.simplefilter("ignore", DataChangedWarning)
        model = TopicModel(10, random_state=0, **parameters).fit(X)
        return model, model.predict(X)


def test_small_groups_and_copies_do_not_become_topics(collection, of_collection):
    # Found on 20 Newsgroups: five of twenty topics held under 1% of the documents, one rested on 8.
    X, y = collection
    known = y >= 0
    before, main = fitted(X, **PUBLISHED)
    assert np.sum(before.documents_per_topic_ < 0.01 * len(y)) == 5
    assert before.documents_per_topic_.min() == 8
    score = normalized_mutual_information(y[known], main[known])
    assert "documents-used" not in before.certificate_

    model, main = of_collection
    assert model.documents_per_topic_.min() >= 0.02 * len(y)
    assert not model.few_documents_.any()
    assert model.certificate_["topics-supported"].holds
    assert normalized_mutual_information(y[known], main[known]) > score + 0.05
    left_out = model.certificate_["documents-used"]
    assert left_out.quantities == {"n_copies": 50, "n_set_aside": 40}
    assert "from 910 of 1000 documents: 50 have the same words" in left_out.sentence
    assert len(model.set_aside_) == 40
    assert (y[model.set_aside_] == -1).all()
    assert np.diff(model.topic_proportions_).max() <= 1e-9  # numbered by share


@pytest.mark.skipif(not is_available("reuters21578"), reason="Reuters-21578 is not on this machine")
def test_no_topic_of_real_articles_rests_on_a_handful():
    found = load_reuters21578()
    rows = np.isin(found.y, found.extras["class_subsets"][10][2])
    X = sp.csr_array(found.X[rows])
    # 7 of 2958 articles had a topic of their own.
    assert fitted(X, **PUBLISHED)[0].documents_per_topic_.min() < 0.005 * X.shape[0]
    assert fitted(X)[0].documents_per_topic_.min() > 0.01 * X.shape[0]


def test_what_was_set_aside_is_saved(collection, of_collection, tmp_path):
    X, _ = collection
    model, main = of_collection
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    for name in ("set_aside_", "few_documents_", "documents_per_topic_", "npmi_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataChangedWarning)
        assert np.array_equal(again.predict(X), main)


def test_too_few_distinct_documents_are_all_kept():
    X = np.kron(np.eye(2), np.ones((6, 12))) + 0.0
    X[:, 0] = 1.0
    X[0, 0] = 0.0
    # Three different documents, and four topics.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TopicModel(4, random_state=0).fit(X)
    assert "documents-used" not in model.certificate_


def test_wrong_limits():
    for parameters in ({"min_documents": -1.0}, {"min_df": 0}):
        with pytest.raises(InvalidParameterError, match=next(iter(parameters))):
            TopicModel(2, **parameters).fit(np.eye(4))


def test_tags_say_what_a_topic_model_reads():
    tags = get_tags(TopicModel()).input_tags
    assert (tags.sparse, tags.string, tags.positive_only) == (True, True, True)
