"""Real data sets: a scene, mutations of tumors, news articles, a network of characters, a recording."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg.datasets.dataset import Dataset, Recording
from nonneg.datasets.store import Home, Source, look_up, read_archive, retrieve

_HOST = "https://raw.githubusercontent.com"
_SCENES = f"{_HOST}/mhaut/HSI-datasets"
_TUMORS = f"{_HOST}/jeyabbalas/mutational-signatures-data/871fb8c60e9b9356e7db14c8f33fd44aad19d5d2/data"
_NEWS = (
    f"{_HOST}/mohit3011/Document-Classification-and-Clustering/4ce59a05724d0a1d6fca0aa9383b16e03a3d1ffc/bbc"
)
SAMSON = Source(
    f"{_SCENES}/29efb503bdde94f620ba3873d3a56039fef18257/Unmixing/Samson.mat",
    "4ce4b636feb6f429f8d03ac4ecc94bb97fd87d380ff25ce505765e372d6a1cd9",
)
SAMSON_TRUTH = Source(
    f"{_SCENES}/6e351f13603d4ac76ef4e40811c072d5329ccb63/Unmixing/_EndSamson.mat",
    "ce768182ce5292390180f827ff5769112cf3d299f4e64ab43e950a310b7ec9fa",
)
COHORTS = {
    "EU": "7e0d9c243ad11447352d06aeddb15338af8f756da3d4d6fa999cc39080684155",
    "FR": "9dd4512aa44c3bce7b335f7d550b02d16a749891d8609f3b0379f293cf49fb8e",
    "UK": "b7f810115e608b0bd3e5f0a5fc2bb3aea33fd57a80de0b69ca5e433b62d9299c",
    "US": "e96063e35aea9e4ce1ecbc05f4aa3ac9934c2bf2a89a9f64aa0214cec656d23e",
}
"""The cohorts of breast cancers and the sha256 of their tables."""
NEWS = {
    "mtx": "dd056da69c67f942f1be354163754a43d5cf3d9fdb62746be1f3231803983539",
    "classes": "9c509b0f32e428868c040b2c40e353d82ba3910453a3ed4065f3e496e52ebce3",
    "terms": "6c369196ff6de6bb2cd7f60b11a51a38e73f522f2b656f3dde20d6d45729d7c6",
}
"""The files of the BBC articles and their sha256."""
ARMSTRONG = Source(
    f"{_HOST}/pierreablin/tlnmf/c67d7da6b114/datasets/armstrong.wav",
    "2f3c258d51c6852d543f0ad2ec25a8815b1cb0a9a2f2360c2e147a2f521a13f1",
)


def load_samson(data_home: Home = None) -> Dataset:
    """Return the Samson scene with its published endmembers.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``samson/data.npz``; None searches ``NONNEG_DATA``, then the user's cache,
        then the source.

    Returns
    -------
    Dataset
        `X` of shape (9025, 156), one pixel per row. `extras` has ``"endmembers"`` of shape (3, 156), each
        scaled to a largest entry of 1 (compare by angle), and ``"abundances"`` of shape (9025, 3); `names`
        are those of the endmembers, and `y` is the most abundant one.
    """
    path = look_up("samson/data.npz", data_home)
    if path is not None:
        arrays = read_archive(path)
    else:
        from scipy.io import loadmat

        arrays = {"Y": loadmat(retrieve(SAMSON, "samson"))["Y"]}
        truth = loadmat(retrieve(SAMSON_TRUTH, "samson"))
        arrays |= {name: truth[name] for name in ("A", "M")}
    side = round(arrays["Y"].shape[1] ** 0.5)  # the scene is square

    def pixels(rows: Any) -> Any:  # stored column after column
        return rows.T.reshape(side, side, -1).transpose(1, 0, 2).reshape(side * side, -1).astype(np.float64)

    abundances = pixels(arrays["A"])
    return Dataset(
        X=pixels(arrays["Y"]),
        y=abundances.argmax(axis=1),
        names=("rock", "tree", "water"),
        description=(
            "Samson: 95 x 95 pixels, one pixel per row, 156 bands, reflectances as stored; endmembers rock, "
            "tree and water. The published abundances ignore the brightness of each pixel: as a linear model "
            "they leave a residual of 31%."
        ),
        sample_shape=(side, side),
        extras={"endmembers": arrays["M"].T.astype(np.float64), "abundances": abundances},
    )


def load_brca_sbs96(data_home: Home = None) -> Dataset:
    """Return the mutations of whole genomes of breast cancers.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``brca_sbs96_wgs/BRCA-EU.npz`` and the other cohorts; None searches
        ``NONNEG_DATA``, then the user's cache, then the source.

    Returns
    -------
    Dataset
        `X` of shape (n_patients, 96), counts of the 96 types of single-base substitutions, one patient per
        row (793 in all); `feature_names` are the types, `sample_names` the patients, `names` and `y` the
        cohorts.
    """
    tables = [_cohort(name, data_home) for name in COHORTS]
    # The type of a mutation is the same column in every cohort, whatever the order in its file.
    types = [str(name) for name in tables[0]["types"]]
    columns = [[list(map(str, table["types"])).index(name) for name in types] for table in tables]
    parts = [table["V"][order].T for table, order in zip(tables, columns, strict=True)]
    return Dataset(
        X=np.concatenate(parts).astype(np.float64),
        y=np.repeat(np.arange(len(parts), dtype=np.intp), [len(part) for part in parts]),
        names=tuple(COHORTS),
        description=(
            "Breast cancers of ICGC, whole genomes: counts of the 96 types of single-base substitutions, one "
            f"patient per row. Cohorts: {', '.join(COHORTS)}."
        ),
        sample_names=tuple(str(name) for table in tables for name in table["samples"]),
        feature_names=tuple(types),
    )


def _cohort(name: str, data_home: Home) -> dict[str, Any]:
    path = look_up(f"brca_sbs96_wgs/BRCA-{name}.npz", data_home)
    if path is not None:
        return read_archive(path)
    source = Source(f"{_TUMORS}/mutational_spectra_wgs/BRCA-{name}.csv", COHORTS[name])
    table = np.loadtxt(retrieve(source, "brca_sbs96_wgs"), delimiter=",", dtype=str, encoding="utf-8")
    return {"V": table[1:, 1:].astype(np.float64), "types": table[1:, 0], "samples": table[0, 1:]}


def load_bbc(data_home: Home = None) -> Dataset:
    """Return the BBC news articles.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``bbc/X.npz`` and its companions; None searches ``NONNEG_DATA``, then the
        user's cache, then the source.

    Returns
    -------
    Dataset
        `X` is a CSR array of counts of shape (2225, 9635), `y` the section; `feature_names` are the stemmed
        words.
    """
    import scipy.io
    import scipy.sparse

    paths = [look_up(f"bbc/{file}.npz", data_home) for file in ("X", "labels", "vocab")]
    if None not in paths:
        counts, labels, words = (read_archive(path) for path in paths if path is not None)
        entries = (counts["data"], counts["indices"], counts["indptr"])
        X = scipy.sparse.csr_array(entries, shape=tuple(counts["shape"]))
        y, vocabulary = labels["y"], list(words["vocab"])
    else:
        files = {kind: retrieve(Source(f"{_NEWS}/bbc.{kind}", sha), "bbc") for kind, sha in NEWS.items()}
        X = scipy.sparse.csr_array(scipy.io.mmread(files["mtx"])).T.tocsr()
        classes = np.loadtxt(files["classes"], dtype=np.int64, comments="%", ndmin=2)
        y = classes[np.argsort(classes[:, 0], kind="stable"), 1]
        vocabulary = files["terms"].read_text(encoding="utf-8").split()
    return Dataset(
        X=X.astype(np.float64),
        y=y.astype(np.intp),
        names=("business", "entertainment", "politics", "sport", "tech"),
        description=(
            "BBC news, 2004 and 2005 (Machine Learning Group, University College Dublin): 2225 articles of "
            "five sections, one per row, counts of 9635 stemmed words."
        ),
        feature_names=tuple(map(str, vocabulary)),
    )


def load_les_miserables() -> Dataset:
    """Return the co-appearance network of Les Miserables from networkx.

    Returns
    -------
    Dataset
        `X` of shape (77, 77) in CSR with the number of chapters that two characters share; `sample_names` are
        the characters.

    References
    ----------
    .. [1] Knuth (1993), The Stanford GraphBase.
    """
    return networkx_graph("lesmis")


NETWORKX_GRAPHS = {
    "lesmis": (
        "les_miserables_graph",
        "Les Miserables (Knuth, 1993): 77 characters of the novel, connected if they appear in the same "
        "chapter, weighted by the number of such chapters.",
    ),
    "karate": (
        "karate_club_graph",
        "Zachary's karate club (1977): 34 members, connected if they met outside the club, which later split "
        "in two.",
    ),
    "southern-women": (
        "davis_southern_women_graph",
        "Southern women (Davis, Gardner and Gardner, 1941): 18 women and the 14 social events that they "
        "attended, a bipartite graph.",
    ),
}
"""Example graphs by name: the function of networkx, and what the graph is."""


def networkx_graph(name: str) -> Dataset:
    """Return an example graph of networkx by name; its known sides or clubs are the classes."""
    networkx = import_optional("networkx", extra="graphs", purpose="This graph")
    function, description = NETWORKX_GRAPHS[name]
    graph = getattr(networkx, function)()
    sides = [data.get("club", data.get("bipartite")) for _, data in graph.nodes(data=True)]
    classes = [] if None in sides else sorted(set(sides))
    weight = "weight" if name == "lesmis" else None
    return Dataset(
        X=networkx.to_scipy_sparse_array(graph, weight=weight, dtype=np.float64, format="csr"),
        y=np.array([classes.index(side) if classes else -1 for side in sides], dtype=np.intp),
        names=tuple({0: "women", 1: "events"}.get(side, side) for side in classes),
        description=f"{description} From networkx (BSD license).",
        sample_names=tuple(map(str, graph.nodes)),
    )


def load_armstrong(data_home: Home = None) -> Recording:
    """Return an old recording of Louis Armstrong.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``audio_armstrong/armstrong.wav``; None searches ``NONNEG_DATA``, then the
        user's cache, then the source.

    Returns
    -------
    Recording
        `signals` of shape (1, 1191735) in [-1, 1), 11025 samples per second.
    """
    from scipy.io import wavfile

    path = look_up("audio_armstrong/armstrong.wav", data_home) or retrieve(ARMSTRONG, "audio_armstrong")
    rate, samples = wavfile.read(path)
    return Recording(
        signals=samples[None, :] / 32768.0,
        rate=int(rate),
        sources=None,
        description=(
            "Louis Armstrong, an old recording with noise (as used for transform learning): one channel, "
            "16 bits, divided by 32768."
        ),
    )
