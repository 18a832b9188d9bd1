"""Models of the applications on disk: what comes back does what the saved one did, and damage is noticed."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

import nonneg
from nonneg.applications import MixedMembership, SourceSeparation, TopicModel, Unmixing
from nonneg.datasets import mixed_membership_graph, scene_like
from nonneg.exceptions import FileFormatError, NonnegWarning

TEXTS = [
    "cat dog cat",
    "dog cat pet",
    "bond stock",
    "stock market bond",
    "pet dog",
    "market stock",
    "cat bond",
]


@pytest.fixture(scope="module")
def recording():
    t = np.arange(1600) / 4000
    return np.sin(2 * np.pi * 200 * t) * (t < 0.25) + np.sin(2 * np.pi * 700 * t) * (t > 0.12)


@pytest.fixture(scope="module")
def separation(recording):
    return SourceSeparation(2, method="dct", frame_length=32, max_iter=5, n_init=1, random_state=0).fit(
        recording, 4000
    )


@pytest.fixture(scope="module")
def cube():
    return scene_like(6, 7, n_bands=12, n_materials=3, noise=0.0, rng=0).X.reshape(6, 7, 12)


@pytest.fixture(scope="module")
def unmixing(cube):
    return Unmixing(3).fit(cube, wavelengths=np.arange(12.0))


@pytest.fixture(scope="module")
def communities():
    adjacency = sp.lil_array(mixed_membership_graph(60, 2, mean_degree=15, rng=0).adjacency)
    adjacency[5], adjacency[:, 5] = 0, 0
    names = [f"näme {at}" for at in range(60)]
    with pytest.warns(NonnegWarning, match="no edge"):
        return MixedMembership(2, method="spa").fit(adjacency.tocsr(), names=names)


def again(model, folder):
    """Save and load a model; whatever both hold that is no account of the fit must be equal."""
    model.save(folder / "m.npz")
    found = nonneg.load(folder / "m.npz")
    assert type(found) is type(model)
    assert found.certificate_ == model.certificate_ if hasattr(model, "certificate_") else True
    kept = {name for name in vars(model) if name.endswith("_")} - {"result_"}
    assert kept == {name for name in vars(found) if name.endswith("_")}
    for name in kept:
        if isinstance(value := getattr(model, name), np.ndarray):
            np.testing.assert_array_equal(getattr(found, name), value)
            assert getattr(found, name).dtype == value.dtype
    return found


def test_a_separation(separation, recording, tmp_path):
    found = again(separation, tmp_path)
    assert found.get_params() == separation.get_params()  # the window, a tuple, among them
    assert found.rate_ == 4000
    np.testing.assert_array_equal(found.separate(recording), separation.separate(recording))
    assert found.model_.history_.as_dict() == separation.model_.history_.as_dict()


def test_given_arrays_are_stored(recording, tmp_path):
    window = np.hanning(34)[1:-1]
    model = SourceSeparation(
        2,
        method="tl",
        n_components=3,
        grouping={"low": [0], "high": [1, 2]},
        window=window,
        frame_length=32,
        max_iter=2,
        n_init=1,
    ).fit(recording)
    found = again(model, tmp_path)
    assert found.grouping == {"low": [0], "high": [1, 2]}
    np.testing.assert_array_equal(found.window, window)
    np.testing.assert_array_equal(found.separate(recording), model.separate(recording))


def test_a_scene(unmixing, cube, tmp_path):
    found = again(unmixing, tmp_path)
    assert found.get_params() == unmixing.get_params()
    assert (found.n_endmembers_, found.relative_error_) == (3, unmixing.relative_error_)
    np.testing.assert_array_equal(found.transform(cube[:3]), unmixing.transform(cube[:3]))


def test_communities(communities, tmp_path):
    found = again(communities, tmp_path)
    assert found.node_names_ == communities.node_names_
    assert found.graph_.names == communities.graph_.names
    assert found.top_nodes(3) == communities.top_nodes(3)
    for name, column in communities.node_table().items():
        np.testing.assert_array_equal(found.node_table()[name], column)


@pytest.mark.parametrize(
    ("method", "max_iter", "params"),
    [("nmf", 50, {"init": "nndsvda"}), ("kl", np.int64(5), None), ("spa", None, {})],
)
def test_topics_of_texts(method, max_iter, params, tmp_path):
    model = TopicModel(
        2,
        method=method,
        min_df=1,
        stop_words=["stock"],
        max_iter=max_iter,
        method_params=params,
        random_state=0,
    ).fit(TEXTS)
    found = again(model, tmp_path)
    assert found.get_params() == model.get_params()
    assert found.top_words(3) == model.top_words(3)
    assert found.anchor_words_ == model.anchor_words_
    np.testing.assert_array_equal(found.transform(TEXTS[:4]), model.transform(TEXTS[:4]))
    np.testing.assert_array_equal(found.coherence_, model.coherence_)


def test_topics_of_counts_with_names(counts, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(counts.toarray().astype(np.float32)).rename(columns=lambda at: f"wort {at}")
    model = TopicModel(2, method="spa", anchors=["wort 3", "wort 8"]).fit(frame)
    found = again(model, tmp_path)
    np.testing.assert_array_equal(found.transform(frame), model.transform(frame))
    assert found.anchor_words_ == ["wort 3", "wort 8"]


def test_a_vectorizer_of_ones_own_is_left_out_and_its_counts_are_taken(tmp_path):
    model = TopicModel(2, vectorizer=CountVectorizer(ngram_range=(1, 2)), random_state=0).fit(TEXTS)
    with pytest.warns(NonnegWarning, match="vectorizer was not saved"):
        model.save(tmp_path / "m.npz")
    found = nonneg.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(found.transform(model.vectorizer_.transform(TEXTS)), model.transform(TEXTS))


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("separation", {"groups_": np.array([0, 7])}, "components of each of 2 sources"),
        ("separation", {"framing_.window": np.zeros(32)}, "weight zero"),
        ("separation", {"framing_": {"class": "Framing", "frame_length": 32, "hop": 0}}, "damaged"),
        ("unmixing", {"endmembers_": -np.ones((3, 12))}, "nonnegative endmembers"),
        ("unmixing", {"pure_pixels_": np.full((3, 2), 9)}, "exceed the 6"),
        ("unmixing", {"mask_": np.ones((6, 7))}, "expected mask_"),
        ("communities", {"graph_.adjacency.indices": None}, "graph_.adjacency.indices is missing"),
        ("communities", {"pure_nodes_": np.array([0, 60])}, "exceed the 60"),
        ("communities", {"graph_.adjacency.indptr": np.arange(61)[::-1]}, "damaged"),
        ("communities", {"scores_": 3}, "damaged"),
    ],
)
def test_a_changed_file_is_refused(name, change, said, request, tmp_path):
    path = tmp_path / "m.npz"
    request.getfixturevalue(name).save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    header = json.loads(bytes(arrays["header"]).decode())
    for key, value in change.items():
        (arrays if key in arrays else header)[key] = value
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
    with pytest.raises(FileFormatError, match=said):
        nonneg.load(path)
