"""Progress of applications: lines that name the class of the user, and what it decided."""

from __future__ import annotations

import numpy as np

from nonneg.applications import MixedMembership, TopicModel


def test_communities_say_their_number_and_method(capsys):
    graph = np.kron(np.eye(2), np.ones((6, 6)) - np.eye(6))
    graph[5, 6] = graph[6, 5] = 1.0
    model = MixedMembership("auto", random_state=0, verbose=1).fit(graph)
    number = model.number_["n_communities"]
    said = f"MixedMembership: {number} communities by method={model.method_!r}"
    assert capsys.readouterr().err.splitlines() == [said]


def test_topics_do_not_speak_of_another_estimator(capsys):
    counts = np.random.default_rng(0).poisson(1.0, size=(40, 30))
    for method in ("nmf", "kl"):
        TopicModel(3, method=method, random_state=0, verbose=1).fit(counts)
        said = capsys.readouterr().err
        assert said.startswith("TopicModel: iteration")
        assert "NMF:" not in said
