"""Degenerate input of every public estimator and function: a finite answer or an error of the package."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse

import nonneg
from nonneg import MinVolNMF, applications, metrics
from nonneg.applications import Unmixing
from nonneg.applications.hyperspectral import estimate_n_endmembers
from nonneg.exceptions import InvalidDataError, NonnegError

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
PLAIN = RNG.dirichlet(np.ones(3), 20) @ (0.2 + RNG.random((3, 6)))
CASES = {
    "plain": PLAIN,
    "30% zero rows": np.where(np.arange(20)[:, None] < 6, 0.0, PLAIN),
    "zero columns": np.where(np.arange(6) < 2, 0.0, PLAIN),
    "constant": np.full((20, 6), 3.0),
    "identical rows": np.repeat(PLAIN[:1], 20, axis=0),
    "all zero": np.zeros((20, 6)),
    "duplicates": np.repeat(PLAIN[:5], 4, axis=0),
    "one entry": np.array([[2.0]]),
    "two columns, mostly zeros": np.where(RNG.random((20, 2)) < 0.3, PLAIN[:, :2], 0.0),
    "rank one": np.outer(1.0 + np.arange(20), PLAIN[0]),
    "three rows": PLAIN[:3],
    "one column": PLAIN[:, :1],
    "1e-200": 1e-200 * PLAIN,
    "1e200": 1e200 * PLAIN,
    "denormals": 1e-310 * PLAIN,
    "float16": PLAIN.astype(np.float16),
    "float32, 1e30": (1e30 * PLAIN).astype(np.float32),
    "integers": np.round(100 * PLAIN).astype(int),
    "bool": PLAIN > 0.5,
    "nullable integers": pd.DataFrame(np.round(100 * PLAIN).astype(int)).add_prefix("x").astype("Int64"),
    "nullable floats": pd.DataFrame(PLAIN).add_prefix("x").astype("Float64"),
    "nullable bools": pd.DataFrame(PLAIN > 0.5).add_prefix("x").astype("boolean"),
    "nullable with gaps": pd.DataFrame(np.where(PLAIN > 0.5, PLAIN, np.nan))
    .add_prefix("x")
    .astype("Float64"),
}
"""Also used with k = min(shape) and with k above the rank."""

TYPES = ("plain", "float16", "integers", "bool", "nullable integers", "nullable floats", "nullable bools")
"""Sound entries in another type, which is converted once: for one number of components."""

START = np.eye(8, 6) + 0.1
LOSSES = {"frobenius": "frobenius", "kl": "kullback-leibler", "is": "itakura-saito", "beta 1.5": 1.5}


def plain(X):
    """Return an array where a domain has no frames."""
    return X if isinstance(X, np.ndarray) else X.to_numpy(float, na_value=np.nan)


def factors(model, X, **extra):
    """Fit, and return everything that should be finite."""
    W = model.fit_transform(X, **extra)
    assert str(model.certificate_)
    return W, model.components_


def nmf(solver="auto", loss="frobenius"):
    return lambda X, k: factors(
        nonneg.NMF(k, solver=solver, beta_loss=LOSSES[loss], max_iter=20, random_state=0), X
    )


def communities(X, k):
    X = plain(X)
    with np.errstate(over="ignore"):
        graph = X @ X.T if X.dtype != bool else X.astype(int) @ X.T.astype(int)
    model = applications.MixedMembership(k, random_state=0).fit(graph)
    assert str(model.certificate_)
    return (model.memberships_[graph.any(axis=1)],)  # documented: isolated nodes have NaN


def counts(X):
    X = plain(X)
    return X if X.dtype == bool or X.max(initial=0.0) > 50 else np.round(20 * X)


def topics(X, k):
    model = applications.TopicModel(k, min_df=1, min_documents=1, random_state=0)
    X = counts(X)
    return model.fit_transform(np.where(np.add.outer(*map(np.arange, X.shape)) % 3, X, 0)), model.components_


def signatures(X, k):
    wide = np.tile(counts(X), (1, -(-96 // X.shape[1])))[:, :96]
    model = applications.MutationalSignatures(k, n_init=3, max_iter=20, random_state=0).fit(wide)
    return model.signatures_, model.exposures_


def mixed_again(weights, again, H):
    """Compare what weights mix: those of more components than directions are not unique."""
    assert (H >= 0).all()
    np.testing.assert_allclose(again @ H, weights @ H, rtol=1e-5, atol=1e-6 * np.abs(H).max())
    return weights, H


def min_volume(X, k):
    model = nonneg.MinVolNMF(k, max_iter=10)
    weights, H = factors(model, X)
    return mixed_again(weights, model.transform(X), H)


def unmixing(**options):
    def unmix(X, k):
        model = applications.Unmixing(k, random_state=0, **options)
        cube = plain(X).reshape(len(X), 1, -1)
        maps = model.fit_transform(cube)
        assert str(model.certificate_)
        return mixed_again(maps[model.mask_], model.transform(cube)[model.mask_], model.endmembers_)

    return unmix


def separation(X, k):
    model = applications.SourceSeparation(k, n_components=3 * k, max_iter=5, random_state=0)
    return tuple(np.asarray(each) for each in model.fit_separate(np.tile(plain(X).ravel(), 20), 8000))


def frames(X):
    """Return three-dimensional frames."""
    X = plain(X)
    return np.stack([X, X[::-1]])


def transform(X, k):
    model = nonneg.TransformNMF(k, max_iter=5, random_state=0)
    W = model.fit_transform(frames(X))
    assert str(model.certificate_)
    return W, model.components_


def learned(X, k):
    result = nonneg.learn_transform(frames(X), k, max_iter=5, rng=0)
    return result.transform, result.W, result.H


def diagonalized(X, k):
    X = plain(X).astype(float)
    with np.errstate(over="ignore"):
        covariances = np.stack([X.T @ X, X[:k].T @ X[:k]])
    result = nonneg.joint_diagonalize(covariances, eps0=0.1, max_iter=5, rng=0)
    return (result.transform,)


def anchors(method):
    def select(X, k):
        result = nonneg.select_anchors(X, k, method=method, rng=0)
        assert str(result.certificate)
        return (result.anchors,)

    return select


def compared(X, k):
    return (np.array(nonneg.compare_ranks(X, candidates=sorted({1, k}), rng=0).rank),)


CALLS = {
    **{f"NMF, {solver}": nmf(solver) for solver in ("auto", "hals", "anls", "mu")},
    **{f"NMF, {loss}": nmf("auto", loss) for loss in LOSSES if loss != "frobenius"},
    "NMF, kl by mu": nmf("mu", "kl"),
    "ConeNMF": lambda X, k: factors(nonneg.ConeNMF(k, random_state=0), X),
    **{
        f"SeparableNMF, {method}": lambda X, k, method=method: factors(
            nonneg.SeparableNMF(k, method=method, random_state=0), X
        )
        for method in ("auto", "spa", "merit", "merit-exact", "snpa", "smoothed-spa", "xray")
    },
    "SeparableNMF of any number": lambda X, k: factors(nonneg.SeparableNMF(random_state=0), X),
    "ConsensusNMF": lambda X, k: factors(nonneg.ConsensusNMF(k, n_init=3, max_iter=20, random_state=0), X),
    "PurificationNMF": lambda X, k: factors(nonneg.PurificationNMF(k, max_iter=5, random_state=0), X),
    "TransformNMF": transform,
    "IntegrativeNMF": lambda X, k: factors(
        nonneg.IntegrativeNMF(k, max_iter=10), X, batch=np.arange(len(X)) % 2
    ),
    "MinVolNMF": min_volume,
    "MixedMembership": communities,
    "TopicModel": topics,
    "MutationalSignatures": signatures,
    "Unmixing": unmixing(),
    "Unmixing, min-volume": unmixing(method="min-volume", method_params={"max_iter": 10}),
    "Unmixing, snpa": unmixing(method="snpa"),
    "SourceSeparation": separation,
    "factorize": lambda X, k: (lambda r: (r.W, r.H, np.array(r.loss)))(
        nonneg.factorize(X, k, max_iter=20, rng=0)
    ),
    "select_anchors": anchors("spa"),  # other methods are those of SeparableNMF
    "purify": lambda X, k: (nonneg.purify(X, START[:k, : X.shape[1]], check_init="report", max_iter=5).H,),
    "estimate_rank": lambda X, k: (np.array(nonneg.estimate_rank(X, k_min=1, rng=0).rank),),
    "compare_ranks": compared,
    "estimate_n_endmembers": lambda X, k: (np.sqrt(min(estimate_n_endmembers(plain(X)).values()) - 1.0),),
    "cone_rank_one": lambda X, k: (lambda r: (r.W, r.H))(nonneg.cone_rank_one(X, k, rng=0)),
    "learn_transform": learned,
    "joint_diagonalize": diagonalized,
    "non_negative_factorization": lambda X, k: nonneg.non_negative_factorization(
        X, n_components=k, max_iter=20, random_state=0
    )[:2],
}


# What reads entries of a type: one call per door. Others take the same one, or here an array without gaps.
READERS = {
    "NMF, auto", "SeparableNMF, spa", "ConeNMF", "PurificationNMF", "IntegrativeNMF", "ConsensusNMF",
    "factorize", "select_anchors", "purify", "estimate_rank", "compare_ranks", "cone_rank_one",
    "non_negative_factorization", "MinVolNMF",
}  # fmt: skip


def check(case, call, numbers):
    X = CASES[case]
    before = X.copy()
    for k in numbers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of zeros, copies, clipping and iterations
            try:
                arrays = CALLS[call](X, k)
            except NonnegError:
                assert case != "plain"  # the contract is not met by refusing everything
                continue
            except Exception as error:
                error.add_note(f"{case}, k={k}")
                raise
        for array in arrays:
            assert np.isfinite(np.asarray(array, dtype=float)).all(), (case, k)
        assert np.asarray(before == X).all() or "gaps" in case, (case, k)


def numbers_for(case):
    return [2] if case in TYPES else sorted({1, 2, min(CASES[case].shape), 8})


# Every case with every call that reads it, and both with every number of components in turn.
@pytest.mark.parametrize("call", CALLS)
def test_a_finite_answer_or_an_error_of_the_package(call):
    for at, case in enumerate(CASES, list(CALLS).index(call)):
        if call in READERS or case not in TYPES[4:]:
            numbers = numbers_for(case)
            check(case, call, [numbers[at % len(numbers)]])


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_every_number_of_components(call):
    for case in CASES:
        check(case, call, numbers_for(case))


NO_COUNTS = (0, -1, 2.5, 1e30, float("nan"), "3", True, 10**30, np.float64(2), np.True_, 1j)


WITHOUT = ("estimate_", "compare_ranks", "SeparableNMF of any number", "purify", "joint_diagonalize")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("call", [call for call in CALLS if not call.startswith(WITHOUT)])
def test_what_is_no_number_of_components_is_refused(call):
    for k in NO_COUNTS:
        with pytest.raises(NonnegError, match=r"n_(components|topics|communities|signatures|sources|endmem)"):
            CALLS[call](PLAIN, k)


def test_integers_of_numpy_are_numbers_of_components():
    for call in ("NMF, auto", "non_negative_factorization"):
        assert CALLS[call](PLAIN, np.int64(2))[1].shape == (2, 6)


def test_answers_where_there_is_one():
    zeros = Unmixing(3, random_state=0)
    with pytest.warns(UserWarning, match="6 pixels are zero in every band and were left out"):
        zeros.fit(CASES["30% zero rows"].reshape(4, 5, 6))
    assert (zeros.n_zero_, zeros.mask_.sum()) == (6, 14)
    for case in ("constant", "identical rows"):
        cube = CASES[case].reshape(4, 5, 6)
        np.testing.assert_allclose(Unmixing(1).fit(cube).endmembers_, cube[0, :1])
        with pytest.raises(InvalidDataError, match=r"n_endmembers=2, but .* differ in too few directions"):
            Unmixing(2).fit(cube)
    with pytest.raises(InvalidDataError, match=r"entries up to .*e\+200, whose squares leave the range"):
        Unmixing(3).fit(CASES["1e200"].reshape(4, 5, 6))


@pytest.mark.parametrize("k", [2, 3])
def test_copies_of_one_sample_are_their_own_simplex(k):
    model = MinVolNMF(k).fit(CASES["identical rows"])
    np.testing.assert_allclose(model.components_, CASES["identical rows"][:k])
    # No step can lower the objective: more iterations are no advice.
    assert model.certificate_["stationarity"].verdict != "fails"


REFUSED = {
    "no samples": np.zeros((0, 6)),
    "no features": np.zeros((20, 0)),
    "a number": np.array(3.0),
    "one axis": PLAIN[0],
    "complex": PLAIN + 1j,
    "dates": np.zeros((20, 6), "M8[s]"),
    "records": np.zeros((20, 6), "V8"),
    "rows of different lengths": [[1, 2], [3]],
    "an integer beyond floats": np.array([[10**400, 1], [1, 2]], dtype=object),
    "a masked array": np.ma.masked_array(PLAIN, PLAIN > 0.5),
    "names of several types": pd.DataFrame(PLAIN[:, :2], columns=["a", 1]),
    "repeated names": pd.DataFrame(PLAIN[:, :2], columns=["a", "a"]),
    "a series": pd.Series(PLAIN[0]),
    "an empty frame": pd.DataFrame(),
}
MODELS = {
    "NMF": nonneg.NMF(2),
    "SeparableNMF": nonneg.SeparableNMF(2, method="spa"),
    "TransformNMF": nonneg.TransformNMF(2, max_iter=2),
    "TopicModel": applications.TopicModel(2, min_df=1),
    "MutationalSignatures": applications.MutationalSignatures(2),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_table_of_numbers_is_refused_by_the_package(case, model):
    if model == "TopicModel" and case in ("an integer beyond floats", "a masked array"):
        pytest.skip("counts of words are read as they are")
    with pytest.raises(NonnegError, match=r"\w+ .*"):
        MODELS[model].fit(REFUSED[case])


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil"])
@pytest.mark.parametrize("place", [99, -1])
@pytest.mark.parametrize("call", ["NMF", "factorize", "topics", "communities", "mask"])
def test_indices_outside_of_a_sparse_matrix_are_refused(layout, place, call):
    X = scipy.sparse.csr_array(PLAIN[:6] * (PLAIN[:6] > 0.3)).asformat(layout)
    parts = X.coords[1] if layout == "coo" else X.rows[3] if layout == "lil" else X.indices
    parts[0 if layout == "lil" else 3] = place
    calls = {
        "NMF": lambda: nonneg.NMF(2).fit(X),
        "factorize": lambda: nonneg.factorize(X, 2),
        "topics": lambda: applications.TopicModel(2, min_df=1).fit(X),
        "communities": lambda: applications.MixedMembership(2).fit(X),
        "mask": lambda: nonneg.factorize(PLAIN[:6], 2, mask=X),
    }
    with pytest.raises(InvalidDataError, match=r"Damaged indices of the sparse (X|graph|mask)"):
        calls[call]()


def damaged_lists(part, value):
    X = scipy.sparse.lil_array(PLAIN)
    getattr(X, part)[3] = value
    return X


@pytest.mark.parametrize("part", ["rows", "data"])
@pytest.mark.parametrize("value", [[1], None, ["a"] * 6, [0.5] * 7])
def test_lists_that_do_not_belong_together_are_refused(part, value):
    with pytest.raises(InvalidDataError, match=r"Damaged indices of the sparse X"):
        nonneg.NMF(2).fit(damaged_lists(part, value))
    with pytest.raises(InvalidDataError, match=r"Damaged indices of the sparse mask"):
        nonneg.factorize(PLAIN, 2, mask=damaged_lists(part, value))


@pytest.mark.parametrize(
    ("name", "value"), [("max_iter", 0), ("n_init", -1), ("tol", "x"), ("method_params", 3), ("verbose", "x")]
)
def test_parameters_of_applications_are_refused_by_the_package(name, value):
    with pytest.raises(NonnegError, match=name):
        applications.SourceSeparation(2).set_params(**{name: value}).fit(PLAIN.ravel(), 8000)
    if name in ("method_params", "verbose"):
        with pytest.raises(NonnegError, match=name):
            Unmixing(2).set_params(**{name: value}).fit(PLAIN.reshape(4, 5, 6))
    with pytest.raises(NonnegError, match=r"eps0=1e\+300 leaves the range"):
        nonneg.TransformNMF(2, eps0=1e300).fit(PLAIN)


ODD = (np.array([1.0, 2.0]), np.zeros((0,)), scipy.sparse.csr_array(PLAIN), object(), 1j, b"x", {"a": 1})
FUNCTIONS = {
    "factorize": (
        nonneg.factorize,
        (PLAIN, 2),
        ("solver", "init", "alpha_H", "shuffle", "accelerate", "device"),
    ),
    "select_anchors": (nonneg.select_anchors, (PLAIN, 2), ("method", "normalize", "max_iter")),
    "compare_ranks": (nonneg.compare_ranks, (PLAIN,), ("methods", "normalize", "k_max")),
    "learn_transform": (nonneg.learn_transform, (frames(PLAIN), 2), ("method", "cross_initialize", "n_init")),
    "non_negative_factorization": (nonneg.non_negative_factorization, (PLAIN,), ("update_H", "alpha_H")),
    "scene_like": (nonneg.datasets.scene_like, (), ("height", "n_bands", "noise")),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_of_functions_that_are_no_numbers_or_names_are_refused_by_the_package(name):
    function, data, parameters = FUNCTIONS[name]
    for parameter in parameters:
        for value in ODD:
            with pytest.raises(NonnegError, match=parameter):
                function(*data, **{parameter: value})


NEITHER = {
    "a text": "abc",
    "bytes": b"abc",
    "an object": object(),
    "a dict": {"a": 1},
    "a function": len,
    "a complex number": 1j,
    "rows of different lengths": [[1.0, 2.0], [3.0]],
    "texts": [["a", "b"], ["c", "d"]],
    "objects": [object(), object()],
    "an integer beyond floats": [[10**400, 1]],
    "dates": np.zeros((4, 4), "M8[s]"),
    "complex numbers": np.ones((4, 4)) * 1j,
    "three axes": np.ones((2, 2, 2)),
    "None": None,
}
"""No data, no name and no number of any of the functions below, but None where it is the default."""
SHARES = np.kron(np.eye(2), np.ones((2, 1)))
GRAPH = np.ones((4, 4)) - np.eye(4)
WORDS = np.array([[0, 1], [2, 3]])
PUBLIC = {
    "relative_error": (metrics.relative_error, (PLAIN, PLAIN[:, :2], PLAIN[:2]), {"sample_weight": None}),
    "match_components": (metrics.match_components, (PLAIN[:2], PLAIN[:2]), {}),
    "spectral_angles": (metrics.spectral_angles, (PLAIN[:2], PLAIN[:2]), {}),
    "anchors_found": (metrics.anchors_found, ([1, 2], [2, 3]), {}),
    "mixing": (metrics.mixing, (PLAIN[:2], PLAIN[:2]), {}),
    "purity": (metrics.purity, ([0, 1, 0], [1, 0, 1]), {}),
    "clustering_accuracy": (metrics.clustering_accuracy, ([0, 1, 0], [1, 0, 1]), {}),
    "normalized_mutual_information": (metrics.normalized_mutual_information, ([0, 1], [1, 0]), {}),
    "averaged_rank_correlation": (metrics.averaged_rank_correlation, (SHARES, SHARES), {"nan": "error"}),
    "conductance": (metrics.conductance, (GRAPH, SHARES), {}),
    "overlapping_modularity": (metrics.overlapping_modularity, (GRAPH, SHARES), {"receiving": None}),
    "separation_scores": (metrics.separation_scores, (PLAIN.T, PLAIN.T), {"distortion": "gain"}),
    "top_words": (metrics.top_words, (PLAIN[:2],), {"n_words": 3}),
    "umass_coherence": (metrics.umass_coherence, (PLAIN, WORDS), {"smoothing": 0.01}),
    "npmi_coherence": (metrics.npmi_coherence, (PLAIN, WORDS), {}),
    "topic_diversity": (metrics.topic_diversity, (WORDS,), {}),
    "estimate_errors": (
        nonneg.estimate_errors,
        (nonneg.NMF(2, tol=1.0).fit(PLAIN), PLAIN),
        {"method": "bootstrap", "n_resamples": 2, "level": 0.9, "mask": None},
    ),
    "inverse_transform": (nonneg.NMF(2, tol=1.0).fit(PLAIN).inverse_transform, (PLAIN[:, :2],), {}),
    "plot_components": (nonneg.plotting.plot_components, (PLAIN,), {"names": None}),
    "purify": (nonneg.purify, (PLAIN, START[:2]), {"max_iter": 2}),
    "scene_like": (nonneg.datasets.scene_like, (4, 4, 6, 2), {"purity": 1.0, "snr": None}),
    "separable_dirichlet": (nonneg.datasets.separable_dirichlet, (9, 6, 2), {"alpha": 1.0, "snr": None}),
    "mixed_membership_graph": (
        nonneg.datasets.mixed_membership_graph,
        (30, 2),
        {"mean_degree": 4.0, "alpha": 0.2, "n_pure": 1, "degree_parameters": None},
    ),
    "single_cells": (nonneg.datasets.single_cells, (30, 20, 4), {"n_activities": 1, "dispersion": 0.1}),
    "load_samson": (nonneg.datasets.load_samson, (), {"data_home": None}),
    "load": (nonneg.load, ("model.npz",), {}),
    "open_matrix": (nonneg.open_matrix, ("X.npy",), {"variable": None, "memory": None, "dtype": None}),
}
TAKEN = {
    ("purify", 0, "a function"),  # of which batches are asked
    ("load_samson", "data_home", "a text"),  # a folder without the file: others are searched
}


@pytest.mark.filterwarnings("ignore")  # of what is adapted or discarded
@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_neither_data_nor_a_name_nor_a_number_is_refused_by_the_package(name, monkeypatch):
    monkeypatch.setenv("NONNEG_DOWNLOAD", "never")
    function, given, named = PUBLIC[name]
    for place in (*range(len(given)), *named):
        for case, value in NEITHER.items():
            if (case == "None" and named.get(place, 0) is None) or (name, place, case) in TAKEN:
                continue
            parts = [value if at == place else part for at, part in enumerate(given)]
            more = {key: value if key == place else part for key, part in named.items()}
            with pytest.raises(NonnegError, match=r"\w+ .*"):
                function(*parts, **more)


@pytest.mark.parametrize("score", [metrics.omega_index, metrics.overlapping_nmi, metrics.cv_coherence])
@pytest.mark.parametrize(
    "case", ["a text", "bytes", "an object", "a dict", "a complex number", "objects", "None"]
)
def test_what_is_no_sequence_of_sequences_is_refused_by_the_package(score, case):
    for arguments in ((NEITHER[case], [["a", "b"], ["c"]]), ([["a", "b"], ["c"]], NEITHER[case])):
        with pytest.raises(NonnegError, match=r"Expected .*sequence of sequences of (nodes|tokens|words)"):
            score(*arguments)
