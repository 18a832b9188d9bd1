"""Loaders of real data sets: from a folder, from a source, and what they say where neither is there."""

from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from nonneg import datasets
from nonneg.datasets import real, store
from nonneg.exceptions import FileFormatError, MissingDependencyError, NonnegError


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No folder of data sets and an empty cache."""
    monkeypatch.delenv(store.ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.delenv(store.DOWNLOAD_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def serve():
    """Return a function that serves bytes from this machine under a name."""
    pages: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = pages.get(self.path.strip("/"))
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *details):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()

    def put(name: str, body: bytes, sha256: str | None = None) -> store.Source:
        pages[name] = body
        digest = sha256 or hashlib.sha256(body).hexdigest()
        return store.Source(f"http://127.0.0.1:{server.server_port}/{name}", digest)

    yield put
    server.shutdown()
    server.server_close()
    thread.join()


def scene() -> dict[str, np.ndarray]:
    """Four pixels of a 2 x 2 scene, column after column."""
    return {"Y": np.arange(12.0).reshape(3, 4), "A": np.eye(3, 4), "M": np.ones((3, 3))}


def test_pixels_are_rows_in_the_order_of_the_image(nowhere):
    (nowhere / "samson").mkdir()
    np.savez(nowhere / "samson/data.npz", **scene())
    samson = datasets.load_samson(nowhere)
    assert samson.sample_shape == (2, 2)
    np.testing.assert_array_equal(samson.X[:, 0], [0, 2, 1, 3])  # stored 0 1 / 2 3 by columns
    np.testing.assert_array_equal(samson.y, [0, 2, 1, 0])


def test_a_source_is_downloaded_once_and_gives_what_the_folder_gives(nowhere, serve, monkeypatch):
    pytest.importorskip("pooch")
    arrays = scene()
    for name, keys in (("SAMSON", ["Y"]), ("SAMSON_TRUTH", ["A", "M"])):
        path = nowhere / f"{name}.mat"
        scipy.io.savemat(path, {key: arrays[key] for key in keys})
        monkeypatch.setattr(real, name, serve(path.name, path.read_bytes()))
    first = datasets.load_samson()
    monkeypatch.setenv(store.DOWNLOAD_VARIABLE, "never")  # the cache has it now
    again = datasets.load_samson()
    (nowhere / "samson").mkdir()
    np.savez(nowhere / "samson/data.npz", **arrays)
    for other in (again, datasets.load_samson(nowhere)):
        np.testing.assert_array_equal(other.X, first.X)
        np.testing.assert_array_equal(other.extras["abundances"], first.extras["abundances"])


def test_other_contents_than_the_known_ones_are_refused(nowhere, serve, monkeypatch):
    pytest.importorskip("pooch")
    monkeypatch.setattr(real, "ARMSTRONG", serve("armstrong.wav", b"other", sha256="0" * 64))
    with pytest.raises(datasets.DatasetNotFoundError, match="could not be downloaded"):
        datasets.load_armstrong()


def test_without_a_folder_and_a_network_the_error_says_what_to_put_where(nowhere, monkeypatch):
    monkeypatch.setenv(store.DOWNLOAD_VARIABLE, "never")
    with pytest.raises(datasets.DatasetNotFoundError, match=r"NONNEG_DATA=FOLDER") as caught:
        datasets.load_bbc()
    assert isinstance(caught.value, FileNotFoundError)
    assert isinstance(caught.value, NonnegError)


def test_a_missing_library_is_named(nowhere, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(MissingDependencyError, match=r"needs pooch.*\[datasets\]"):
        datasets.load_armstrong()


def test_a_file_that_is_no_archive_of_arrays_is_refused(nowhere):
    (nowhere / "samson").mkdir()
    (nowhere / "samson/data.npz").write_bytes(b"not an archive")
    with pytest.raises(FileFormatError, match=r"cannot be read as an \.npz file"):
        datasets.load_samson(nowhere)


def test_mutations_of_cohorts_are_joined_by_type(nowhere):
    folder = nowhere / "brca_sbs96_wgs"
    folder.mkdir()
    for at, name in enumerate(real.COHORTS):
        types = ["A[C>A]A", "A[C>A]C"][:: 1 if at % 2 else -1]
        np.savez(folder / f"BRCA-{name}.npz", V=np.array([[at], [9]]), types=types, samples=[f"p{at}"])
    tumors = datasets.load_brca_sbs96(nowhere)
    assert tumors.feature_names == ("A[C>A]C", "A[C>A]A")
    np.testing.assert_array_equal(tumors.X, [[0, 9], [9, 1], [2, 9], [9, 3]])
    np.testing.assert_array_equal(tumors.y, range(4))


def test_articles_stay_sparse_and_have_their_words(nowhere):
    counts = scipy.sparse.csr_matrix(np.array([[2, 0, 1], [0, 0, 3]], dtype=np.uint8))
    (nowhere / "bbc").mkdir()
    scipy.sparse.save_npz(nowhere / "bbc/X.npz", counts)
    np.savez(nowhere / "bbc/labels.npz", y=np.array([4, 0], np.uint8))
    np.savez(nowhere / "bbc/vocab.npz", vocab=np.array(["ball", "bank", "vote"]))
    news = datasets.load_bbc(nowhere)
    assert (news.X.format, news.X.dtype) == ("csr", np.float64)
    np.testing.assert_array_equal(news.X.toarray(), counts.toarray())
    assert [news.names[section] for section in news.y] == ["tech", "business"]
    assert news.feature_names == ("ball", "bank", "vote")


@pytest.mark.parametrize(
    ("load", "shape"),
    [
        (datasets.load_samson, (9025, 156)),
        (datasets.load_brca_sbs96, (793, 96)),
        (datasets.load_bbc, (2225, 9635)),
    ],
)
def test_published_sizes(load, shape, monkeypatch):
    monkeypatch.setenv(store.DOWNLOAD_VARIABLE, "never")
    try:
        found = load()
    except (datasets.DatasetNotFoundError, MissingDependencyError):
        pytest.skip("the data set is not on this machine")
    assert found.X.shape == shape
    assert len(np.unique(found.y)) == len(found.names)


def test_graphs_of_networkx_have_names_and_known_sides():
    pytest.importorskip("networkx")
    novel = datasets.load_les_miserables()
    assert (novel.X.shape, novel.X.dtype) == ((77, 77), np.float64)
    assert novel.X.max() > 1
    assert "Valjean" in novel.sample_names
    assert set(novel.y) == {-1}
    club, women = real.networkx_graph("karate"), real.networkx_graph("southern-women")
    assert (club.X.nnz, club.X.max(), club.names) == (156, 1, ("Mr. Hi", "Officer"))
    assert women.names == ("women", "events")
    np.testing.assert_array_equal(np.bincount(women.y), [18, 14])
