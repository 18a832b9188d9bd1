"""Weights of entries: 0 and 1 are a mask, integers are repetitions, and the optimum is that of the sum."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from tests.contracts.cases import (
    MISSING_CASES,
    N_ITER,
    close,
    entries,
    initial,
    run,
    run_until_settled,
    with_forms,
)
from tests.references.containers import SPARSE_TENSOR, TORCH, as_container, plain, sparse_array
from tests.references.objectives import objective

from nonneg import NMF, factorize
from nonneg.exceptions import InvalidParameterError, NonnegError, ShapeError, UnsupportedInputError

rng = np.random.default_rng(21)
WEIGHTS = rng.gamma(1.0, size=(24, 15))
HOLED = np.where(rng.random((24, 15)) < 0.2, 0.0, WEIGHTS)
# Most entries have the same weight, or were not observed: the others are listed.
LISTED = np.where(rng.random((24, 15)) < 0.7, 0.5, WEIGHTS)
FEW = np.where(rng.random((24, 15)) < 0.7, 0.0, WEIGHTS)
FEW[:, 0] = FEW[0] = 1.5
# Of the losses with Gram matrices per row, with shared and with own second derivatives, and without.
ONE_OF_A_KIND = [
    case for case in MISSING_CASES if case.values in (("hals", 2.0), ("newton", 1.0), ("mu", 1.5))
]
KINDS = {"all": WEIGHTS, "holed": HOLED, "mostly equal": LISTED, "mostly missing": FEW}


@pytest.mark.parametrize(("name", "beta"), MISSING_CASES)
def test_weights_of_0_and_1_are_a_mask(name, beta):
    X, mask = entries(beta), HOLED > 0
    expected = run(X, name, beta, mask=mask, **initial())
    result = run(X, name, beta, entry_weight=mask.astype(float), **initial())
    np.testing.assert_array_equal(result.W, expected.W)
    np.testing.assert_array_equal(result.H, expected.H)


def test_whole_fits_with_weights_of_0_and_1_are_those_with_a_mask():
    X, mask = entries(2.0), HOLED > 0
    expected = factorize(X, 3, mask=mask, rng=0)
    result = factorize(X, 3, entry_weight=mask.astype(np.int64), rng=0)
    np.testing.assert_array_equal(result.H, expected.H)


@pytest.mark.covering(2)
@pytest.mark.parametrize(("name", "beta"), MISSING_CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_the_weighted_sum_and_never_increases(name, beta, kind):
    X, weights = entries(beta), KINDS[kind]
    result = run(X, name, beta, entry_weight=weights, max_iter=40, **initial())
    # The mask of the reference may have any values.
    expected = objective(X, result.W, result.H, beta=beta, mask=weights)
    assert result.loss == pytest.approx(expected, rel=1e-9)
    losses = np.array(result.history.loss)
    assert np.diff(losses).max() <= 1e-12 * max(0.5 * float((weights * X**2).sum()), losses[0])


@pytest.mark.parametrize(("name", "beta"), MISSING_CASES)
def test_integer_weights_of_rows_are_repetitions(name, beta):
    X, given, counts = entries(beta), initial(), np.arange(24) % 3 + 1
    rows = {"W": np.repeat(given["W"], counts, axis=0), "H": given["H"]}
    repeated = run(
        np.repeat(X, counts, axis=0), name, beta, entry_weight=np.repeat(HOLED, counts, axis=0), **rows
    )
    by_sample = run(X, name, beta, entry_weight=HOLED, sample_weight=counts, **given)
    close(by_sample.H, repeated.H, 1e-8)
    if (
        beta == 2
    ):  # others share second derivatives among rows, which takes them to the same end by other steps
        by_entry = run_until_settled(
            X, name, beta, max_iter=2000, entry_weight=counts[:, None] * HOLED, **given
        )
        ends = run_until_settled(
            X, name, beta, max_iter=2000, entry_weight=HOLED, sample_weight=counts, **given
        )
        assert by_entry.loss == pytest.approx(ends.loss, rel=1e-8)


@pytest.mark.parametrize("beta", [2.0, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_the_minimizers_of_a_general_optimizer(beta, kind):
    X, weights = entries(beta), KINDS[kind]
    model = NMF(3, beta_loss=beta, init="random", random_state=0, max_iter=300)
    W = model.fit_transform(X, entry_weight=weights)
    np.testing.assert_allclose(model.transform(X, entry_weight=weights), W, rtol=1e-6, atol=1e-8)
    for row in range(0, 24, 5):
        here = slice(row, row + 1)

        def loss(w, here=here):
            return objective(X[here], w[None], model.components_, beta=beta, mask=weights[here])

        best = scipy.optimize.minimize(
            loss,
            np.full(3, 0.5),
            bounds=[(1e-12, None)] * 3,
            method="L-BFGS-B",
            options={"ftol": 0, "gtol": 1e-10},
        )
        assert loss(W[row]) <= best.fun * (1 + 1e-8) + 1e-12


def test_the_optimum_is_that_of_a_general_optimizer():
    # Both factors at once, from where the fit ended: nothing is left to gain.
    X = entries(2.0)[:8, :6]
    weights = WEIGHTS[:8, :6]
    result = run_until_settled(X, "hals", 2.0, k=2, entry_weight=weights, max_iter=5000)

    def loss(roots):
        W, H = roots[:16].reshape(8, 2) ** 2, roots[16:].reshape(2, 6) ** 2
        return 0.5 * float(np.sum(weights * (X - W @ H) ** 2))

    start = np.sqrt(np.concatenate([result.W.ravel(), result.H.ravel()]))
    best = scipy.optimize.minimize(loss, start, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-12})
    assert result.loss <= best.fun * (1 + 1e-8)
    assert result.certificate["stationarity"].holds


@pytest.mark.parametrize("beta", [2.0, 1.0])
def test_rank_one_weights_cost_no_gram_matrix_per_row_and_change_nothing(beta):
    X = entries(beta)
    outer = np.outer(np.linspace(0.2, 3.0, 24), np.geomspace(0.01, 100.0, 15))
    nearly = outer.copy()
    nearly[0, 0] *= 1 + 1e-7
    options = {"beta_loss": beta, "rng": 0, "tol": 1e-10, "max_iter": 2000}
    fast, slow = (factorize(X, 3, entry_weight=weights, **options) for weights in (outer, nearly))
    assert fast.loss == pytest.approx(slow.loss, rel=1e-5)
    assert fast.loss == pytest.approx(objective(X, fast.W, fast.H, beta=beta, mask=outer), rel=1e-9)


def test_the_lower_bound_holds_for_rank_one_weights_and_is_not_claimed_for_others():
    X = entries(2.0)
    outer = np.outer(np.linspace(0.2, 3.0, 24), np.geomspace(0.01, 100.0, 15))
    model = NMF(3, random_state=0, max_iter=2000).fit(X, entry_weight=outer)
    statement = model.certify(X, entry_weight=outer)["eckart-young-bound"]
    W = model.transform(X, entry_weight=outer)
    error = np.sqrt(np.sum(outer * (X - W @ model.components_) ** 2) / np.sum(outer * X**2))
    assert statement.quantities["relative_error"] == pytest.approx(error, rel=1e-6)
    scaled = np.sqrt(outer) * X
    tail = np.linalg.svd(scaled, compute_uv=False)[3:]
    assert statement.quantities["lower_bound"] == pytest.approx(
        np.linalg.norm(tail) / np.linalg.norm(scaled), rel=1e-6
    )
    other = model.certify(X, entry_weight=WEIGHTS)["eckart-young-bound"]
    assert other.verdict.name == "NOT_VERIFIABLE"


@pytest.mark.covering(2)
@pytest.mark.parametrize(
    ("name", "beta", "form"),
    with_forms(ONE_OF_A_KIND, ["csr", "strict", TORCH, SPARSE_TENSOR, "dask-columns", "dask-sparse"]),
)
@pytest.mark.parametrize("kind", ["holed", "mostly equal"])
def test_every_container_agrees_with_dense(name, beta, form, kind):
    X, options = entries(beta), {"max_iter": N_ITER.get(form, 8), "entry_weight": KINDS[kind], **initial()}
    expected = run(X, name, beta, **options)
    result = run(as_container(X, form), name, beta, **options)
    close(plain(result.W), expected.W, 1e-8)
    close(plain(result.H), expected.H, 1e-8)


@pytest.mark.parametrize("bring", [np.array, sp.csr_array])
def test_sparse_weights_with_one_weight_for_all_other_entries(bring):
    X = entries(2.0) * (FEW > 0)
    stored = sp.csr_array(FEW)
    expected = factorize(X, 3, entry_weight=np.where(FEW > 0, FEW, 0.1), rng=0, max_iter=20)
    result = factorize(bring(X), 3, entry_weight=(stored, 0.1), rng=0, max_iter=20)
    close(result.H, expected.H, 1e-8)
    alone = factorize(bring(X), 3, entry_weight=stored, rng=0, max_iter=20)
    close(alone.H, factorize(X, 3, entry_weight=FEW, rng=0, max_iter=20).H, 1e-8)


@pytest.mark.torch
@pytest.mark.covering(1)
@pytest.mark.parametrize("form", ["dense", "torch", "torch-csr", "dask"])
@pytest.mark.parametrize("weights", ["torch", "torch-csr", "torch-coo"])
def test_weights_in_tensors_are_those_in_arrays(form, weights):
    X = entries(2.0)
    expected = factorize(X, 3, entry_weight=FEW, rng=0, max_iter=8).H
    result = factorize(as_container(X, form), 3, entry_weight=as_container(FEW, weights), rng=0, max_iter=8)
    close(plain(result.H), expected, 1e-8)
    if weights != "torch":
        pair = sparse_array(FEW, *weights.split("-")), 0.1
        listed = factorize(as_container(X, form), 3, entry_weight=pair, rng=0, max_iter=8)
        filled = np.where(FEW > 0, FEW, 0.1)
        close(plain(listed.H), factorize(X, 3, entry_weight=filled, rng=0, max_iter=8).H, 1e-8)


@pytest.mark.parametrize("form", ["streamed", "streamed-sparse"])
@pytest.mark.parametrize("name", ["entry_weight", "uncertainty"])
def test_weights_on_disk_are_read_in_blocks(form, name):
    X, weights = entries(2.0), FEW if form == "streamed-sparse" else WEIGHTS
    expected = factorize(X, 3, **{name: sp.csr_array(weights)}, rng=0, max_iter=8).H
    for data in (X, as_container(X, "streamed"), as_container(X, "dask")):
        close(factorize(data, 3, **{name: as_container(weights, form)}, rng=0, max_iter=8).H, expected, 1e-8)


def test_uncertainties_are_inverse_roots_of_weights_and_nan_counts_nothing():
    X = entries(2.0)
    expected = factorize(X, 3, entry_weight=HOLED, rng=0)
    with np.errstate(divide="ignore"):
        result = factorize(X, 3, uncertainty=HOLED**-0.5, rng=0)
    close(result.H, expected.H, 1e-8)
    lost = np.where(HOLED > 0, X, np.nan)
    for weights in (np.where(HOLED > 0, HOLED, 7.0), (sp.csr_array(np.where(HOLED > 0, HOLED, 7.0)), 2.0)):
        for given in (lost, sp.csr_array(lost)):
            close(factorize(given, 3, entry_weight=weights, missing="mask", rng=0).H, expected.H, 1e-8)


def test_units_of_samples_and_features_do_not_matter():
    X, deviations = entries(2.0), WEIGHTS**-0.5
    units = np.geomspace(1e-3, 1e3, 15)
    expected = factorize(X, 3, uncertainty=deviations, rng=0, max_iter=50, tol=0)
    result = factorize(X * units, 3, uncertainty=deviations * units, rng=0, max_iter=50, tol=0)
    close(result.H / units, expected.H, 1e-6)


@pytest.mark.parametrize("unit", [1e2, 1e4, 1e8])
def test_most_entries_of_one_weight_and_others_in_other_units_lose_no_digits(unit):
    X, deviations, units = entries(2.0), np.full((24, 15), 0.1), np.where(np.arange(15) > 11, unit, 1.0)
    deviations[:, 12:] *= WEIGHTS[:, 12:] + 0.5
    options = {"rng": 0, "max_iter": 50, "tol": 0}
    expected = factorize(X, 3, uncertainty=deviations, **options)
    for bring in (np.array, sp.csr_array):
        result = factorize(X * units, 3, uncertainty=bring(deviations * units), **options)
        close(result.H / units, expected.H, 1e-8)


def test_batches_with_weights_approach_the_fit():
    generator = np.random.default_rng(0)
    H = generator.gamma(0.5, size=(3, 12))
    X = generator.gamma(0.5, size=(600, 3)) @ H
    deviations = generator.gamma(1.0, size=X.shape) + 0.1
    X = np.maximum(X + 0.1 * deviations * generator.normal(size=X.shape), 0)
    online = NMF(3, init="nndsvda", batch_size=60, forget_factor=1.0, random_state=0)
    for _ in range(3):
        for rows in np.split(np.arange(600), 10):
            online.partial_fit(X[rows], uncertainty=deviations[rows])
    whole = NMF(3, random_state=0, max_iter=1000).fit(X, uncertainty=deviations)

    def loss(model):
        W = model.transform(X, uncertainty=deviations)
        return float(np.sum(((X - W @ model.components_) / deviations) ** 2))

    assert loss(online) <= 1.2 * loss(whole)


BAD = {
    "negative": (
        {"entry_weight": np.where(np.arange(15) == 4, -1.0, WEIGHTS)},
        r"entry_weight\[0, 4\] is -1",
    ),
    "nan": ({"entry_weight": np.where(np.arange(15) == 4, np.nan, WEIGHTS)}, r"entry_weight\[0, 4\] is nan"),
    "infinite": ({"entry_weight": np.full((24, 15), np.inf)}, r"entry_weight\[0, 0\] is inf"),
    "row": ({"entry_weight": np.where(np.arange(24)[:, None] == 7, 0.0, WEIGHTS)}, "row 7"),
    "column": ({"entry_weight": np.where(np.arange(15) == 4, 0.0, WEIGHTS)}, "column 4"),
    "sparse": ({"entry_weight": sp.csr_array(np.where(np.arange(15) == 4, 0.0, WEIGHTS))}, "column 4"),
    "zero": ({"uncertainty": np.where(np.arange(15) == 4, 0.0, WEIGHTS)}, r"uncertainty\[0, 4\] is 0"),
    "tiny": ({"uncertainty": np.full((24, 15), 1e-200)}, r"uncertainty\[0, 0\] is 1e-200"),
    "unknown": ({"uncertainty": np.where(np.arange(24)[:, None] == 7, np.inf, WEIGHTS)}, "row 7"),
    "two": ({"uncertainty": WEIGHTS, "mask": WEIGHTS > 1}, "mask and uncertainty"),
    "pair": ({"entry_weight": (WEIGHTS, 1.0)}, "stores all entries"),
    "absent": ({"entry_weight": (sp.csr_array(WEIGHTS), -1.0)}, "not stored is -1"),
}


@pytest.mark.parametrize("kind", BAD)
def test_wrong_weights_are_named_by_their_place(kind):
    options, words = BAD[kind]
    with pytest.raises(NonnegError, match=words) as caught:
        NMF(3).fit(entries(2.0), **options)
    assert isinstance(caught.value, ValueError)


def test_new_samples_and_batches_may_lack_a_column():
    X = entries(2.0)
    holed = np.where(np.arange(15) == 4, 0.0, WEIGHTS)
    model = NMF(3, random_state=0).fit(X)
    seen = (holed[:1] > 0).astype(float)
    W = model.transform(X[:1], entry_weight=seen)
    np.testing.assert_array_equal(W, model.transform(X[:1], mask=seen > 0))
    online = NMF(3, random_state=0)
    for rows in (slice(0, 12), slice(12, 24)):
        online.partial_fit(X[rows], entry_weight=holed[rows])
    assert np.isfinite(online.components_).all()
    with pytest.raises(InvalidParameterError, match="row 0"):
        model.transform(X[:1], entry_weight=np.zeros((1, 15)))


@pytest.mark.parametrize("form", ["dense", TORCH])
def test_a_row_whose_weights_are_no_normal_numbers_counts_for_nothing(form):
    X, found = as_container(entries(2.0).astype(np.float32), form), []
    for deviation in (1e10, 2e19):  # whose weights are subnormal in float32
        deviations = (0.1 + WEIGHTS).astype(np.float32)
        deviations[5] = deviation
        found.append(NMF(5, random_state=0, max_iter=20, tol=0).fit(X, uncertainty=deviations).components_)
    np.testing.assert_allclose(*map(plain, found), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["mask", "entry_weight", "uncertainty"])
def test_data_frames_in_another_order_are_refused(name):
    pandas = pytest.importorskip("pandas")
    names = {"index": [f"day {at}" for at in range(24)], "columns": list("abcdefghijklmno")}
    X, table = pandas.DataFrame(entries(2.0), **names), pandas.DataFrame(np.ones((24, 15)), **names)
    for wrong, side in ((table.iloc[::-1], "row"), (table.iloc[:, ::-1], "column")):
        with pytest.raises(NonnegError, match=f"The {side}s of {name} are not those of X"):
            NMF(3, random_state=0).fit(X, **{name: wrong})
    for right in (table, table.reset_index(drop=True), table.to_numpy()):
        assert NMF(3, random_state=0, max_iter=2, tol=0).fit(X, **{name: right}).n_iter_ == 2


def test_wrong_shapes_and_wrong_company():
    X = entries(2.0)
    with pytest.raises(ShapeError, match=r"entry_weight of the same shape as X, \(24, 15\), got \(15, 24\)"):
        factorize(X, 3, entry_weight=WEIGHTS.T)
    with pytest.raises(InvalidParameterError, match="scale='max' and weights"):
        NMF(3, scale="max").fit(X, entry_weight=WEIGHTS)
    with pytest.raises(UnsupportedInputError, match="Pass n_components"):
        NMF("auto").fit(X, entry_weight=WEIGHTS)
