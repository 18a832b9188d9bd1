"""Co-authorship networks with known memberships, and the methods of Table IV on them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nonneg._typing import SparseMatrix
from nonneg.applications.communities import Eigenpairs, MixedMembership, leading_eigenvectors
from nonneg.applications.communities.methods import energetic_nodes, fill_unreached
from nonneg.data import as_data_matrix
from nonneg.datasets import mixed_membership_graph
from nonneg.metrics import averaged_rank_correlation
from nonneg.separable.weights import anchor_weights
from reproduction.data import load_dblp, load_mag
from reproduction.data.store import is_available
from reproduction.experiment import Setting
from reproduction.merit.geonmf import GeoNMFOptions, geonmf
from reproduction.published_values import published_values

NETWORKS = {
    "dblp1": "DBLP1", "dblp2": "DBLP2", "dblp3": "DBLP3", "dblp4": "DBLP4", "dblp5": "DBLP5", "mag1": "MAG1",
    "mag2": "MAG2",
}  # fmt: skip
"""Our names of the networks -> the paper's."""
NEEDED = ("dblp1", "dblp2", "dblp4")
"""Without these the experiments do not run; the others are left out where they are not at hand."""
GENERATED = "generated"
"""The network of the quick setting."""
METHODS = {
    "geonmf": "GeoNMF", "spoc": "SPOC", "fast-gradient": "FastGradient", "merit": "MERIT",
    "merit-0": "MERIT(0)", "spa": "SPA",
}  # fmt: skip
ENERGY = 0.99


@dataclass(frozen=True)
class Network:
    """A graph and what is known about it."""

    adjacency: SparseMatrix  # symmetric, 0 and 1
    memberships: Any  # the known ones

    @property
    def k(self) -> int:
        """How many communities there are."""
        return int(self.memberships.shape[1])


@lru_cache(maxsize=1)
def load_network(name: str) -> Network:
    """Load a network."""
    if name == GENERATED:
        planted = mixed_membership_graph(400, 3, mean_degree=40, n_pure=10, rng=0)
        return Network(planted.adjacency, planted.memberships)
    found = load_mag(name) if name.startswith("mag") else load_dblp(name)
    return Network(found.X, found.extras["memberships"])


def networks_at_hand(quick: bool) -> list[str]:
    """Return which networks are run."""
    return [GENERATED] if quick else [name for name in NETWORKS if name in NEEDED or is_available(name)]


def published_row(table: str, network: str) -> dict[str, Any]:
    """Return the published values of a network."""
    published = published_values("merit")[table]
    for row in published["rows"]:
        if row[0] == NETWORKS.get(network):
            return dict(zip(published["columns"], row, strict=True))
    return {}


def lacking_sentence(names: Sequence[str]) -> str:
    """Say which networks are missing."""
    missing = [words for name, words in NETWORKS.items() if name not in names]
    if not missing or GENERATED in names:
        return ""
    return (
        f"Not measured, because the networks were not on the machine: {', '.join(missing)}. "
        "`reproduction.data.load_dblp` and `load_mag` say where they come from; once they are there, the "
        "same command adds them."
    )


def run_method(setting: Setting) -> list[dict[str, Any]]:
    """Run one method on one network."""
    network = load_network(setting["network"])
    if setting["method"] == "geonmf":
        return [_geonmf_record(network, setting, seed) for seed in setting["seeds"]]
    started = time.perf_counter()
    method, params = setting["method"], {"lam": setting["lam"]} if "lam" in setting else None
    if method == "merit-0":
        method, params = "merit", {"lam": 0.0}
    model = (
        MixedMembership(network.k, random_state=0)
        if method == "default"
        else MixedMembership(
            network.k,
            method=method,
            unreached=setting.get("unreached", "auto"),
            energy=ENERGY,
            # As published, sides or not.
            kind="undirected",
            method_params=params,
            max_iter=setting.get("max_iter"),
            random_state=0,
        )
    )
    model.fit(network.adjacency)
    memberships = model.memberships_
    if setting.get("recovery") == "simplex":
        # As in the paper: fully constrained least squares on the rows of the pure nodes.
        corners = model.eigenvectors_[model.pure_nodes_]
        memberships = anchor_weights(as_data_matrix(model.eigenvectors_), corners, sum_to_one=True)
    seconds = time.perf_counter() - started
    return [
        {
            "src": round(averaged_rank_correlation(network.memberships, memberships), 6),
            "kept": len(energetic_nodes(model.eigenvectors_, 1.0 if method == "spoc" else ENERGY)),
            "n_unreached": len(model.unreached_nodes_),
            "n_iter": model.n_iter_,
            "s": round(seconds, 3),
        }
    ]


def _geonmf_record(network: Network, setting: Setting, seed: int) -> dict[str, Any]:
    # The eigensolver's initial vector is random too: rows of pure rounding enter the authors' recovery.
    started = time.perf_counter()
    pairs: Eigenpairs = leading_eigenvectors(network.adjacency, network.k, spectrum="algebraic", rng=seed)
    degrees = network.adjacency.sum(axis=1)
    found = geonmf(
        pairs.values, pairs.vectors, degrees, options=GeoNMFOptions(n_init=setting["n_init"]), rng=seed
    )
    rule = setting.get("unreached", "auto")
    shares = found.memberships.values if rule == "auto" else fill_unreached(found.memberships, rule)
    return {
        "seed": seed,
        "src": round(averaged_rank_correlation(network.memberships, shares), 6),
        "condition": round(found.condition, 3),
        "n_unreached": int((~found.memberships.reached).sum()),
        "s": round(time.perf_counter() - started, 3),
    }
