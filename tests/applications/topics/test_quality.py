"""Topics rest on enough documents, or it is said of them."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.studies.topic_collections import planted_collection
from sklearn.utils import get_tags

from nonneg import load
from nonneg.applications import TopicModel
from nonneg.exceptions import InvalidParameterError


def test_topics_that_rest_on_few_documents_are_marked(tmp_path):
    # Found on 20 Newsgroups: one of twenty topics rested on 8 documents, as five lists of words do here.
    X, y = planted_collection(1000, 10)
    model = TopicModel(10, random_state=0).fit(X)
    few = np.flatnonzero(model.few_documents_)
    assert len(few)
    assert (model.documents_per_topic_[few] < 10).all()
    assert (y[np.isin(model.predict(X), few)] == -1).all()
    statement = model.certificate_["topics-supported"]
    assert not statement.holds
    assert f": {few[0]} ({model.documents_per_topic_[few[0]]})" in statement.sentence
    assert np.diff(model.topic_proportions_).max() <= 1e-9  # numbered by share
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    for name in ("few_documents_", "documents_per_topic_", "npmi_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert np.array_equal(again.predict(X), model.predict(X))


def test_wrong_limits():
    for parameters in ({"min_documents": -1.0}, {"min_df": 0}):
        with pytest.raises(InvalidParameterError, match=next(iter(parameters))):
            TopicModel(2, **parameters).fit(np.eye(4))


def test_tags_say_what_a_topic_model_reads():
    tags = get_tags(TopicModel()).input_tags
    assert (tags.sparse, tags.string, tags.positive_only) == (True, True, True)
