"""Models on disk: nothing is lost, nothing is run, and what was there stays when writing fails."""

from __future__ import annotations

import io
import json
import pickle
import zipfile

import numpy as np
import pytest

import nonneg
from nonneg import NMF, ConeNMF, ConsensusNMF, IntegrativeNMF, SeparableNMF
from nonneg.exceptions import FileFormatError, NonnegWarning, OutputError, UnsafeFileError


@pytest.fixture
def model(low_rank):
    return NMF(3, random_state=0, max_iter=30, tol=0, alpha_W=0.001).fit(low_rank)


def rewritten(path, **changes):
    """Write the saved model again with other values in its header, or with other arrays."""
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    header = json.loads(bytes(arrays["header"]).decode())
    for name, value in changes.items():
        if name in header and not isinstance(value, np.ndarray):
            header[name] = value
        else:
            arrays[name] = value
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, **arrays)


def test_round_trip(model, low_rank, tmp_path):
    path = tmp_path / "model.npz"
    model.certify(low_rank)
    model.save(path)
    again = nonneg.load(str(path))
    assert type(again) is NMF
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.components_, model.components_)
    np.testing.assert_array_equal(again.transform(low_rank), model.transform(low_rank))
    for name in ("n_components_", "n_iter_", "n_features_in_", "reconstruction_err_"):
        assert getattr(again, name) == getattr(model, name)
    assert again.history_.as_dict() == model.history_.as_dict()
    assert again.certificate_ == model.certificate_
    assert list(tmp_path.iterdir()) == [path]  # no temporary file is left
    again.save(path)
    assert nonneg.load(path).get_params() == model.get_params()


def test_names_precision_and_odd_suffixes(low_rank, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(low_rank.astype(np.float32)).rename(columns=lambda at: f"größe {at}")
    model = NMF(2, max_iter=5, tol=0, beta_loss=1.5, random_state=np.int64(3)).fit(frame)
    model.save(tmp_path / "model.of mine")
    again = nonneg.load(tmp_path / "model.of mine")
    assert list(again.feature_names_in_) == list(frame.columns)
    assert again.components_.dtype == np.float32
    assert again.random_state == 3
    assert list(again.get_feature_names_out()) == ["nmf0", "nmf1"]


def test_a_model_of_tensors_comes_back_as_arrays(xp, low_rank, tmp_path):
    model = NMF(2, max_iter=5, tol=0).fit(xp.asarray(low_rank))
    model.save(tmp_path / "m.npz")
    again = nonneg.load(tmp_path / "m.npz")
    assert isinstance(again.components_, np.ndarray)
    W = again.transform(xp.asarray(low_rank))
    np.testing.assert_allclose(np.asarray(W), np.asarray(model.transform(xp.asarray(low_rank))), rtol=1e-12)


def test_what_cannot_be_stored_is_left_out_and_said(low_rank, tmp_path):
    model = NMF(2, callback=lambda now: now.n_iter > 2, random_state=np.random.RandomState(0))
    model.set_params(checkpoint=tmp_path / "run").fit(low_rank)
    with pytest.warns(NonnegWarning, match=r"callback was not saved.*checkpoint was.*random_state was"):
        model.save(tmp_path / "m.npz")
    again = nonneg.load(tmp_path / "m.npz")
    assert again.callback is again.random_state is again.checkpoint is None


def test_an_unfitted_model_is_not_saved(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        NMF().save(tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_old_file(model, largest_file, tmp_path):
    path = tmp_path / "m.npz"
    model.save(path)
    before = path.read_bytes()
    with (
        largest_file(512),
        pytest.raises(OutputError, match=r"could not be written.*before is unchanged") as caught,
    ):
        model.save(path)
    assert isinstance(caught.value, OSError)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there(model, tmp_path):
    with pytest.raises(OutputError, match="could not be written"):
        model.save(tmp_path / "nowhere" / "m.npz")
    with pytest.raises(FileFormatError, match=r"m.npz cannot be read: No such file"):
        nonneg.load(tmp_path / "m.npz")


class Bomb:
    ran = False

    def __reduce__(self):
        return setattr, (Bomb, "ran", True)


def test_a_pickle_is_refused_and_not_run(model, tmp_path):
    path = tmp_path / "m.npz"
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(FileFormatError, match="not a saved model, or it is damaged"):
        nonneg.load(path)
    model.save(path)
    rewritten(path, components_=np.array([Bomb()], dtype=object))
    with pytest.raises(UnsafeFileError, match=r"contains pickled objects, which can run code.*rejected"):
        nonneg.load(path)
    rewritten_header = np.array([Bomb()], dtype=object)
    np.savez(path, header=rewritten_header)
    with pytest.raises(UnsafeFileError, match="pickled objects"):
        nonneg.load(path)
    assert not Bomb.ran


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"class": "Popen"}, r"class 'Popen', which nonneg .* does not have. It has \[.*'NMF'"),
        ({"class": "__import__('os').system"}, "does not have"),
        ({"format": "other"}, "its format is 'other'"),
        ({"format_version": 99}, "written by a newer nonneg.*Upgrade"),
        ({"params": {"n_components": -1}}, "'n_components' parameter of NMF"),
        ({"params": {"shell": "rm"}}, r"parameters that NMF does not have: \['shell'\]"),
        (
            {"params": {"n_components": 3, "checkpoint": "elsewhere"}},
            "sets checkpoint, which saved models never",
        ),
        ({"format_version": 2}, "written by an older nonneg.*again"),
        ({"n_features_in_": 4}, r"expected finite components_ of shape \(3, 4\)"),
        ({"n_iter_": "x"}, "expected n_iter_ of type int"),
        ({"n_components_": None}, "n_components_ is missing. The file is damaged"),
        ({"more": np.ones(3)}, r"arrays that NMF does not have: \['more'\]"),
        ({"components_": -np.ones((3, 40))}, "expected nonnegative components_"),
        ({"components_": np.full((3, 40), np.nan)}, "expected finite components_"),
        ({"components_": np.array([["a"]])}, "expected finite components_"),
        ({"certificate_": {"statements": [1]}}, "damaged"),
        ({"certificate_": 3}, "damaged"),
        ({"history_": [1, 2]}, "damaged"),
        ({"_online": "none"}, "damaged"),
    ],
    ids=lambda value: str(list(value)) if isinstance(value, dict) else "",
)
def test_a_changed_file_is_refused(changes, said, model, tmp_path):
    path = tmp_path / "m.npz"
    model.save(path)
    rewritten(path, **changes)
    with pytest.raises(FileFormatError, match=said):
        nonneg.load(path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"_online.numerator": np.ones((2, 2))}, r"expected _online.numerator of shape \(40, 3\)"),
        ({"_online.denominator": np.ones((2, 3))}, "past batches do not fit"),
    ],
    ids=["numerator", "denominator"],
)
def test_sums_of_past_batches_are_checked(changes, said, model, low_rank, tmp_path):
    path = tmp_path / "m.npz"
    model.partial_fit(low_rank).save(path)
    rewritten(path, **changes)
    with pytest.raises(FileFormatError, match=said):
        nonneg.load(path)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_refused(share, model, tmp_path):
    path = tmp_path / "m.npz"
    model.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(FileFormatError, match="not a saved model, or it is damaged"):
        nonneg.load(path)


def test_a_damaged_byte_is_noticed(model, tmp_path):
    path = tmp_path / "m.npz"
    model.save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(FileFormatError, match="damaged"):
        nonneg.load(path)


def test_other_archives_are_refused(tmp_path):
    path = tmp_path / "m.npz"
    np.savez(path, X=np.ones(3))
    with pytest.raises(FileFormatError, match="not a saved model"):
        nonneg.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(FileFormatError, match="not a saved model"):
        nonneg.load(path)
    stream = io.BytesIO()
    np.save(stream, np.ones(3))
    path.write_bytes(stream.getvalue())
    with pytest.raises(FileFormatError, match="not a saved model"):
        nonneg.load(path)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        ConeNMF(3),
        ConsensusNMF([2, 3], n_init=3, max_iter=20, random_state=0),
        IntegrativeNMF(3, max_iter=5),
        SeparableNMF(3, method="merit", max_iter=20),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_every_array_of_a_file_is_checked(estimator, low_rank, tmp_path):
    path = tmp_path / "m.npz"
    estimator.fit(low_rank).save(path)
    saved = path.read_bytes()
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files if name != "header"}
    assert len(arrays) >= 4
    for name, array in arrays.items():
        another_type = np.ones(len(array)) if array.dtype.kind == "U" else array.astype(complex)
        for wrong in (another_type, array[None]):
            path.write_bytes(saved)
            rewritten(path, **{name: wrong})
            with pytest.raises(FileFormatError, match="damaged"):
                nonneg.load(path)


@pytest.mark.parametrize("part", ["indices", "indptr"])
def test_entries_outside_of_a_saved_sparse_matrix_are_refused(part, low_rank, tmp_path):
    path = tmp_path / "m.npz"
    SeparableNMF(3, method="merit", max_iter=20).fit(low_rank).save(path)
    with np.load(path) as stored:
        array = stored[f"coefficients_.{part}"]
    rewritten(path, **{f"coefficients_.{part}": array + len(low_rank)})
    with pytest.raises(FileFormatError, match=r"[Dd]amaged"):
        nonneg.load(path)
