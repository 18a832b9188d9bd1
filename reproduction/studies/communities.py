"""Which method finds overlapping communities: planted graphs of many kinds, known networks, and peers."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse.linalg as sla

from nonneg._typing import FloatArray, SparseMatrix
from nonneg.applications import MixedMembership
from nonneg.exceptions import NonnegError, NonnegWarning
from nonneg.metrics import normalized_mutual_information, overlapping_modularity
from reproduction.artifacts import Artifact, Paragraph
from reproduction.experiment import Experiment, Record, Setting
from reproduction.registry import TITLES
from reproduction.scores import match_memberships
from reproduction.studies import communities_tables as tables
from reproduction.studies.communities_graphs import (
    DATA_SETS,
    FRESH,
    GROUPS,
    NETWORKS,
    NEW_NETWORKS,
    REPORTING,
    UNLABELED,
    graphs,
)
from reproduction.studies.communities_peers import PEERS, Absent

NAME = "studies/communities"
N_CHOOSING, N_REPORTING, N_BLOCK = 10, 50, 5
FIRST_SEED = {"choosing": 10_000, "reporting": 20_000, "fresh": 30_000}
PARTS: dict[str, dict[str, dict[str, Any]]] = {
    "default": {"auto": {"method": "auto"}, "symnmf": {"method": "symnmf"}},
    "published": {
        "merit": {"method": "merit"},
        "merit, spread": {"method": "merit", "choice": "spread", "spectrum": "auto"},
        "spoc": {"method": "spoc"},
        "geonmf": {"method": "geonmf"},
    },
    "greedy": {
        "spa": {"method": "spa"},
        "spa, magnitude": {"method": "spa", "spectrum": "magnitude"},
        "spa, algebraic": {"method": "spa", "spectrum": "algebraic"},
        "snpa": {"method": "snpa"},
        "fast-anchor": {"method": "fast-anchor"},
        "preconditioned-spa": {"method": "preconditioned-spa"},
        "vca": {"method": "vca"},
        "translated-spa": {"method": "translated-spa"},
        "lifted-spa": {"method": "lifted-spa"},
    },
    "smoothed": {
        "smoothed-spa": {"method": "smoothed-spa"},
        "smoothed-spa, one": {"method": "smoothed-spa", "method_params": {"n_members": 1}},
        "smoothed-spa, noise": {"method": "smoothed-spa", "method_params": {"n_members": "auto"}},
        "smoothed-vca": {"method": "smoothed-vca"},
        "pp-spa": {"method": "pp-spa"},
    },
    "convex": {"css-nmf": {"method": "css-nmf"}},
}
"""The candidates, with the defaults of their methods unless stated."""
CANDIDATES = {name: options for part in PARTS.values() for name, options in part.items()}
DEFAULT = "auto"
"""The candidate that `MixedMembership` has as its default."""
CSS_NODES, CSS_DRAWS = 600, 30
LARGE_NETWORKS = ("dblp1", "dblp2", "dblp4", "ego 107", "ego 1684", "ego 1912", *NEW_NETWORKS[3:])
# Draws of each kind on which the number of communities is estimated.
N_COUNTED = 20
# Peers run once per network; some of them need hours on graphs of many nodes.
PEER_NETWORKS = tuple(name for name in (*NETWORKS, *NEW_NETWORKS) if not name.startswith("dblp"))


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return blocks of draws of every kind of graph, and the networks."""
    if quick:
        parts = (*PARTS, "number")
        return [{"group": "quick", "graph": "quick", "seeds": [0], "part": part} for part in parts]
    settings: list[dict[str, Any]] = []
    for group, first in FIRST_SEED.items():
        for start in range(first, first + (N_CHOOSING if group == "choosing" else N_REPORTING), N_BLOCK):
            seeds = list(range(start, start + N_BLOCK))
            settings += [{"group": group, "graph": graph, "seeds": seeds} for graph in GROUPS[group]]
    settings += [{"group": "networks", "graph": name} for name in NETWORKS]
    settings += [{"group": "new networks", "graph": name} for name in NEW_NETWORKS]
    settings += [{"group": "unlabeled", "graph": name} for name in UNLABELED]
    whole = [
        {**setting, "part": part}
        for setting in settings
        for part in (*PARTS, "number", "peers", "modularity")
        if _runs(setting, part)
    ]
    # Draw after draw, so that a part of the trials compares all candidates on all kinds of graphs; the
    # longest first, so that processes end together.
    order = {"choosing": 0, "fresh": 2, "reporting": 2}
    return sorted(
        whole,
        key=lambda setting: (
            order.get(setting["group"], 1),
            setting.get("seeds", [0])[0] % 1000,
            -cost(setting),
        ),
    )


def _runs(setting: Setting, part: str) -> bool:
    is_network = "networks" in setting["group"]
    if part == "modularity" or setting["group"] == "unlabeled":
        return part == "modularity" and setting["group"] == "unlabeled"
    if part == "peers":
        return is_network and setting["graph"] in PEER_NETWORKS
    if part == "number":
        return is_network or setting["seeds"][0] < FIRST_SEED[setting["group"]] + N_COUNTED
    # All pairs of nodes in quadratic memory: on small graphs only.
    if part != "convex":
        return True
    if is_network:
        return setting["graph"] not in LARGE_NETWORKS
    few = setting["seeds"][0] < FIRST_SEED["reporting"] + CSS_DRAWS
    return few and GROUPS[setting["group"]][setting["graph"]]["n"] <= CSS_NODES


def cost(setting: Setting) -> float:
    """Return the relative cost of a trial."""
    each = {"default": 0.8, "published": 1.0, "convex": 3.0, "peers": 8.0}.get(setting["part"], 0.3)
    if "networks" in setting["group"] or setting["group"] == "unlabeled":
        return each * {"dblp1": 60.0, "dblp2": 60.0, "dblp4": 30.0}.get(setting["graph"], 1.0)
    n_nodes = GROUPS[setting["group"]][setting["graph"]]["n"]
    return each * len(setting["seeds"]) * (n_nodes / 1000.0) ** 1.5


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run the candidates of a part on some graphs."""
    if setting["part"] == "modularity":
        return _modularities(nx.to_scipy_sparse_array(UNLABELED[setting["graph"]](), dtype=float))
    records: list[dict[str, Any]] = []
    for seed, adjacency, truth in graphs(setting):
        known = truth.sum(axis=1) > 0
        if setting["part"] == "peers":
            records += _peers(adjacency, truth, known)
            continue
        if setting["part"] == "number":
            records.append({"seed": seed, **_number(adjacency, truth)})
            continue
        if setting["part"] == "greedy":
            records.append({"seed": seed, **_size_below_zero(adjacency, truth.shape[1], setting["graph"])})
        method = ""
        for name, options in PARTS[setting["part"]].items():
            if name == method:
                # The default chose it: the same fit.
                records.append({**records[-1], "candidate": name, "s": None})
                continue
            started = time.perf_counter()
            found, method = _memberships(adjacency, truth.shape[1], options)
            seconds = round(time.perf_counter() - started, 3)
            measures = _measures(truth[known], None if found is None else found[known])
            if setting["part"] == "default":
                measures["chosen"] = method
            records.append({"seed": seed, "candidate": name, **measures, "s": seconds})
    return records


def _size_below_zero(adjacency: SparseMatrix, k: int, graph: str) -> dict[str, Any]:
    """Return how large eigenvalues below zero are compared with those that compete with them."""
    if adjacency.shape[0] < 3 * k + 3:
        return {}
    below, above = (
        np.sort(np.abs(sla.eigsh(adjacency, k, which=which, return_eigenvectors=False)))[::-1]
        for which in ("SA", "LA")
    )
    if graph == "disassortative":
        # One above, all others below zero: the last of them against the first that is noise.
        return {"signal": round(float(below[k - 2] / above[1]), 4)}
    return {"noise": round(float(below[0] / above[k - 1]), 4)}


def _memberships(
    adjacency: SparseMatrix, k: int | str, options: Mapping[str, Any]
) -> tuple[FloatArray | None, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NonnegWarning)
        try:
            # The same rule for all where no eigenvector reaches a node.
            model = MixedMembership(k, unreached="mean", random_state=0, **options).fit(adjacency)
        except NonnegError:
            # GeoNMF needs eigenvalues above zero: that counts as no answer, a correlation of 0.
            return None, ""
        return model.memberships_, model.method_


def _measures(truth: FloatArray, found: FloatArray | None) -> dict[str, Any]:
    if found is None:
        return {"src": 0.0, "error": 1.0, "nmi": 0.0, "failed": True}
    matching = match_memberships(truth, found)
    kept = np.isfinite(found).all(axis=1)
    measures = {"src": round(float(matching.correlations.mean()), 5), "nmi": _nmi(truth, found)}
    if (matching.permutation >= 0).all():
        apart = np.linalg.norm(found[kept][:, matching.permutation] - truth[kept])
        measures["error"] = round(float(apart / np.linalg.norm(truth[kept])), 5)
    return measures | {"failed": False}


def _nmi(truth: FloatArray, found: FloatArray) -> float:
    """Return the agreement of the main communities; of several of the same size the first counts."""
    labels = np.where(np.isfinite(found).all(axis=1), np.nan_to_num(found).argmax(axis=1), -1)
    return round(normalized_mutual_information(truth.argmax(axis=1), labels), 5)


def _number(adjacency: SparseMatrix, truth: FloatArray) -> dict[str, Any]:
    """Return the estimates of the number of communities, and how well the default does with it."""
    known = truth.sum(axis=1) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NonnegWarning)
        model = MixedMembership("auto", unreached="mean", random_state=0).fit(adjacency)
    return {
        "true": truth.shape[1],
        "recommended": model.n_communities_,
        "estimates": dict(model.number_.estimates),
        "nmi": _nmi(truth[known], model.memberships_[known]),
        "src": _measures(truth[known], model.memberships_[known])["src"],
    }


def _modularities(adjacency: SparseMatrix) -> list[dict[str, Any]]:
    """Return the overlapping modularity of every candidate, with the recommended number of communities."""
    k = MixedMembership("auto", random_state=0).fit(adjacency).n_communities_
    records = []
    for name, options in CANDIDATES.items():
        found, _ = _memberships(adjacency, k, options)
        score = 0.0 if found is None else overlapping_modularity(adjacency, found)
        records.append({"judged": name, "communities": k, "modularity": round(score, 5)})
    return records


def _peers(adjacency: SparseMatrix, truth: FloatArray, known: Any) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for name, peer in PEERS.items():
        started = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = peer(adjacency, truth.shape[1])
        except Absent as error:
            records.append({"peer": name, "absent": str(error)})
            continue
        except Exception as error:  # a failure of a peer is recorded, not hidden
            records.append({"peer": name, "failed": f"{type(error).__name__}: {error}"[:200]})
            continue
        seconds = round(time.perf_counter() - started, 3)
        measures = _measures(truth[known], found[known])
        records.append({"peer": name, **measures, "found": found.shape[1], "s": seconds})
    return records


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the comparison."""
    numbers = [record for record in records if "recommended" in record]
    peers = [record for record in records if "peer" in record]
    sizes = [record for record in records if "noise" in record or "signal" in record]
    candidates = [record for record in records if "candidate" in record]
    shown: list[Artifact] = []
    verdicts: list[Artifact] = []
    for group, title in tables.TITLES.items():
        some = [record for record in candidates if record["group"] == group]
        if not some:
            continue
        shown += [tables.overview(some, title), tables.table(some, title, "src", "averaged rank correlation")]
        if "networks" not in group:
            shown.append(tables.table(some, title, "error", "relative error of the memberships"))
        verdicts += tables.verdicts(some, group, DEFAULT, _is_whole(some, group))
    if peers:
        shown += tables.peers(peers, candidates, numbers, DEFAULT)
    if numbers:
        shown.append(tables.numbers(numbers))
    if judged := [record for record in records if "judged" in record]:
        shown.append(tables.modularities(judged))
        verdicts.append(tables.modularity_verdict(judged, DEFAULT))
    return [
        *shown,
        Paragraph(tables.spectrum_sentence(sizes)),
        Paragraph(tables.cost_sentence(candidates)),
        *verdicts,
    ]


def _is_whole(records: Sequence[Record], group: str) -> bool:
    """Say whether all draws of the default are there."""
    kinds = {"reporting": REPORTING, "fresh": FRESH}.get(group)
    if kinds is None:
        return True
    draws = [record["graph"] for record in records if record["candidate"] == DEFAULT]
    return all(draws.count(graph) == N_REPORTING for graph in kinds)


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=DATA_SETS,
    quick_data_sets=(),
    cost=cost,
)
