"""IntegrativeNMF: exact updates, every form of several data sets, and recovery of programs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references.least_squares import nonnegative_rows

import nonneg
from nonneg import NMF, IntegrativeNMF
from nonneg.datasets import single_cells
from nonneg.exceptions import (
    InvalidDataError,
    InvalidParameterError,
    NegativeDataError,
    ShapeError,
    UnknownNameError,
)
from nonneg.metrics import match_components
from nonneg.results import Verdict

K = 3
LAM = 0.7
SETS = [np.random.default_rng(at).gamma(0.7, size=(n, 5)) + 0.1 for at, n in enumerate((9, 6))]


@pytest.fixture(scope="module")
def sets():
    rng = np.random.default_rng(0)
    H = rng.gamma(0.5, size=(K, 14))
    return [rng.gamma(0.5, size=(n, K)) @ (H + 0.3 * rng.gamma(0.3, size=H.shape)) for n in (40, 25)]


@pytest.fixture(scope="module")
def model(sets):
    return IntegrativeNMF(K, max_iter=1000, tol=1e-5).fit(sets)


def objective(model, sets, W):
    """The objective as it is defined, without Gram matrices."""
    total = 0.0
    for X, scale, V, own in zip(sets, model.batch_scale_, model.specific_components_, W, strict=True):
        total += 0.5 * np.sum((X / scale - own @ (model.components_ + V)) ** 2)
        total += 0.5 * model.lam * np.sum((own @ V) ** 2)
    return total


def test_the_objective_never_increases_and_is_the_one_that_is_stated(sets, model):
    losses = np.asarray(model.history_.loss)
    assert np.all(np.diff(losses) <= 1e-10 * losses[0])
    W = model.transform(sets)
    assert model.reconstruction_err_ == pytest.approx(np.sqrt(2 * objective(model, sets, W)), rel=1e-9)
    assert losses[-1] >= 0.5 * model.reconstruction_err_**2 * (1 - 1e-12)
    assert model.certificate_["stationarity"].verdict is Verdict.HOLDS


@pytest.mark.parametrize("block", ["W", "H", "V"])
def test_no_block_alone_can_be_improved(sets, model, block):
    # Projected gradient steps by finite differences: independent of the Gram form.
    rng = np.random.default_rng(1)
    W = model.transform(sets)
    best = objective(model, sets, W)
    for _ in range(20):
        moved = nonneg.IntegrativeNMF(K, lam=model.lam)
        moved.components_, moved.batch_scale_ = model.components_, model.batch_scale_
        moved.specific_components_ = model.specific_components_
        if block == "W":
            other = [np.maximum(own + 1e-3 * rng.standard_normal(own.shape), 0) for own in W]
            assert objective(moved, sets, other) >= best * (1 - 1e-9)
            continue
        name = "components_" if block == "H" else "specific_components_"
        factor = getattr(model, name)
        setattr(moved, name, np.maximum(factor + 1e-3 * rng.standard_normal(factor.shape), 0))
        assert objective(moved, sets, W) >= best * (1 - 1e-6)


def test_a_violated_certificate_says_so(sets):
    with pytest.warns(match="max_iter"):
        rough = IntegrativeNMF(K, max_iter=1).fit(sets)
    assert rough.certificate_["stationarity"].verdict is Verdict.FAILS


def test_lists_and_labels_of_rows_are_the_same(sets, model):
    W = model.fit_transform(sets)
    found = IntegrativeNMF(K, max_iter=1000, tol=1e-5).fit_transform([sp.csr_array(X) for X in sets])
    np.testing.assert_allclose(found[1], W[1], atol=1e-8)
    order = np.random.default_rng(0).permutation(65)
    X, labels = np.vstack(sets)[order], np.repeat(["a", "b"], [40, 25])[order]
    mixed = IntegrativeNMF(K, max_iter=1000, tol=1e-5)
    np.testing.assert_allclose(mixed.fit_transform(X, batch=labels), np.vstack(W)[order], atol=1e-8)
    assert mixed.batch_names_ == ["a", "b"]
    np.testing.assert_allclose(mixed.transform(sets[1], batch="b"), W[1], atol=1e-8)
    np.testing.assert_array_equal(mixed.transform(X, batch=labels), mixed.transform(X, batch=labels.tolist()))
    with pytest.raises(InvalidParameterError, match=r"batch='c' is not known.*\['a', 'b'\]"):
        mixed.transform(X, batch="c")


def test_one_data_set_is_nmf_of_its_scaled_features(sets):
    X = sets[0] + 0.3 * np.random.default_rng(2).random(sets[0].shape)
    alone = IntegrativeNMF(K, max_iter=1000, tol=1e-4).fit(X)
    np.testing.assert_array_equal(alone.fit_transform(X), alone.transform(X))
    scaled = X / np.sqrt(np.mean(X**2, axis=0))
    expected = NMF(K, max_iter=3000, tol=1e-8).fit(scaled).score(scaled)
    assert alone.score(X) == pytest.approx(expected, rel=1e-3)
    error = np.mean(((alone.inverse_transform(alone.transform(X)) - X) / alone.batch_scale_[0]) ** 2)
    assert alone.score(X) == pytest.approx(-error, rel=1e-9)


def test_a_large_weight_leaves_nothing_specific_and_a_unit_does_not_matter(sets, model):
    shared = IntegrativeNMF(K, lam=1e6, max_iter=300).fit(sets)
    assert shared.specific_components_.max() < 1e-3 < model.specific_components_.max()
    units = np.random.default_rng(0).gamma(1.0, size=(2, 14))
    other = IntegrativeNMF(K, max_iter=1000, tol=1e-5).fit([X * u for X, u in zip(sets, units, strict=True)])
    np.testing.assert_allclose(other.components_, model.components_, atol=1e-6)
    W = other.transform([X * u for X, u in zip(sets, units, strict=True)])
    back = other.inverse_transform(W[1], batch="1")
    assert np.linalg.norm(back - sets[1] * units[1]) < 0.3 * np.linalg.norm(sets[1] * units[1])


def test_weights_repeat_samples(sets):
    counts = np.random.default_rng(0).integers(1, 3, 65)
    repeated = [np.repeat(X, own, axis=0) for X, own in zip(sets, np.split(counts, [40]), strict=True)]
    few = {"max_iter": 30, "tol": 0.0}
    weighted = IntegrativeNMF(K, **few).fit(sets, sample_weight=counts)
    np.testing.assert_allclose(
        weighted.components_, IntegrativeNMF(K, **few).fit(repeated).components_, atol=1e-8
    )


def test_a_saved_model_is_the_same(sets, model, tmp_path):
    model.save(tmp_path / "model.npz")
    loaded = nonneg.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.transform(sets)[1], model.transform(sets)[1])
    assert loaded.batch_names_ == ["0", "1"]


def test_a_resumed_run_is_the_uninterrupted_one(sets, tmp_path):
    class Kill(Exception):
        pass

    def kill(progress):
        if progress.n_iter == 12:
            raise Kill

    options = {"max_iter": 20, "tol": 0.0}
    whole = IntegrativeNMF(K, **options).fit(sets)
    with pytest.raises(Kill):
        IntegrativeNMF(K, checkpoint=tmp_path, callback=kill, **options).fit(sets)
    resumed = IntegrativeNMF(K, checkpoint=tmp_path, **options).fit(sets)
    np.testing.assert_allclose(resumed.components_, whole.components_, atol=1e-10)


def test_mistakes_are_named(sets):
    with pytest.raises(ValueError, match="5 features, but IntegrativeNMF is expecting 14"):
        IntegrativeNMF(K).fit([sets[0], sets[1][:, :5]])
    with pytest.raises(NegativeDataError, match=r"\[0, 0\]"):
        IntegrativeNMF(K).fit([sets[0], -sets[1]])
    with pytest.raises(ShapeError, match="3 labels, but X has 40"):
        IntegrativeNMF(K).fit(sets[0], batch=["a", "b", "a"])
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(sets[0][:3], index=["x", "y", "z"]).add_prefix("f")
    with pytest.raises(InvalidDataError, match="rows of batch are not those of X"):
        IntegrativeNMF(K).fit(frame, batch=pandas.Series(["a", "a", "b"], index=["z", "y", "x"]))
    for missing in (np.nan, None):
        with pytest.raises(InvalidParameterError, match=r"batch\[1\] is .*Give every sample a label"):
            IntegrativeNMF(K).fit(sets[0][:3], batch=["a", missing, "b"])
    untreated = ["None", "drug"] * 20  # a name like any other
    assert IntegrativeNMF(K, max_iter=1, tol=0).fit(sets[0], batch=untreated).batch_names_ == ["None", "drug"]
    with pytest.raises(ShapeError, match=r"a label per sample, such as batch=adata.obs.*got 'donor'"):
        IntegrativeNMF(K).fit(sets[0], batch="donor")  # as scanpy's functions take it
    with pytest.raises(InvalidParameterError, match="batch is for one array"):
        IntegrativeNMF(K).fit(sets, batch=["a", "b"])
    with pytest.raises(ShapeError, match="sample_weight"):
        IntegrativeNMF(K).fit(sets, sample_weight=np.ones(64))
    with pytest.raises(ShapeError, match="expected 2, got 1"):
        IntegrativeNMF(K, max_iter=5, tol=0.0).fit(sets).transform(sets[:1])


def test_annotated_data_by_a_column(sets, tmp_path):
    anndata = pytest.importorskip("anndata")
    pandas = pytest.importorskip("pandas")
    from nonneg.integrations.anndata import fit

    labels = np.repeat(["a", "b"], [40, 25])
    adata = anndata.AnnData(
        np.vstack(sets), obs=pandas.DataFrame({"donor": labels}, index=[f"c{at}" for at in range(65)])
    )
    options = {"max_iter": 30, "tol": 0.0}
    found = fit(IntegrativeNMF(K, **options), adata, batch=adata.obs["donor"])
    expected = IntegrativeNMF(K, **options).fit_transform(sets)
    np.testing.assert_allclose(adata.obsm["X_nmf"], np.vstack(expected), atol=1e-10)
    np.testing.assert_array_equal(adata.varm["NMF"], found.components_.T)
    several = IntegrativeNMF(K, **options).fit([adata[:40], adata[40:, ::-1]])
    np.testing.assert_allclose(several.components_, found.components_, atol=1e-10)
    adata.write_h5ad(tmp_path / "out.h5ad")


def test_shared_programs_of_planted_data_sets_are_found_where_nmf_mixes_them():
    cells = single_cells(
        400, 80, 5, n_activities=1, n_batches=2, batch_effect=0.5, program_effect=1.0, library_size=800, rng=0
    )
    X = cells.X.toarray() / cells.X.sum(axis=1)[:, None] * 800.0
    model = IntegrativeNMF(5).fit(X, batch=cells.batch)
    scale = np.sqrt(np.mean(model.batch_scale_**2, axis=0))
    joint = NMF(5, max_iter=1000).fit(X / np.sqrt(np.mean(X**2, axis=0)))
    ours, plain = (
        match_components(cells.H / scale, H).cosines.mean() for H in (model.components_, joint.components_)
    )
    assert ours > plain + 0.05


@pytest.fixture(scope="module")
def given():
    """Components that are given, not learned."""
    found = IntegrativeNMF(2, lam=LAM)
    rng = np.random.default_rng(1)
    found.n_features_in_, found.n_components_ = 5, 2
    found.batch_names_ = ["a", "b"]
    found.components_, found.specific_components_ = rng.random((2, 5)), rng.random((2, 2, 5))
    found.batch_scale_ = np.stack([np.sqrt(np.mean(X**2, axis=0)) for X in SETS])
    return found


def weights_of(model, X, at):
    """Minimize the objective of every row, by SciPy."""
    V = 0.0 * model.components_ if at is None else model.specific_components_[at]
    scale = np.sqrt(np.mean(model.batch_scale_**2, axis=0)) if at is None else model.batch_scale_[at]
    system = np.hstack([model.components_ + V, np.sqrt(LAM) * V])
    return nonnegative_rows(system.T, np.hstack([X / scale, np.zeros_like(X)])), model.components_ + V, scale


def test_weights_errors_and_products_are_those_of_the_data_set(given):
    X, model = SETS[1], given
    found = model.transform(SETS)
    errors = []
    for at, (name, own) in enumerate(zip("ab", SETS, strict=True)):
        W, K, scale = weights_of(model, own, at)
        np.testing.assert_allclose(found[at], W, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(model.inverse_transform(W, batch=name), W @ K * scale)
        errors.append((own / scale - W @ K) ** 2)
    assert model.score(SETS) == pytest.approx(-np.concatenate(errors).mean())
    weights = np.arange(1.0, 16.0)
    rows = np.concatenate(errors).mean(axis=1)
    assert model.score(SETS, sample_weight=weights) == pytest.approx(-weights @ rows / weights.sum())
    W, K, scale = weights_of(model, X, None)
    np.testing.assert_allclose(model.transform(X), W, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(W), W @ K * scale)
    assert model.score(X) == pytest.approx(-np.mean((X / scale - W @ K) ** 2))
    with pytest.raises(UnknownNameError, match="'c' is not known"):
        model.transform(X, batch="c")
