"""Claim: overlapping communities of a million nodes and ten million edges on an ordinary machine.

    python -m benchmarks.communities [--nodes N] [--degree D] [--methods spa,spoc] [--write FILE]

The graph is drawn once, from the mixed membership stochastic blockmodel, and kept in a file. Every method
runs in a fresh process, which reads it, fits, and reports its seconds, the largest resident memory of the
process, and the rank correlation with the true memberships.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.processes import measured_apart
from benchmarks.tables import markdown

N_NODES, MEAN_DEGREE, N_COMMUNITIES, SEED = 1_000_000, 20.0, 5, 20240601
METHODS = ("auto", "nmf", "poisson", "spa", "spoc")


def draw(folder: Path, n_nodes: int, mean_degree: float) -> dict[str, Any]:
    """Draw the graph and keep it."""
    from nonneg.datasets import mixed_membership_graph

    started = time.perf_counter()
    planted = mixed_membership_graph(
        n_nodes, N_COMMUNITIES, mean_degree=mean_degree, n_pure=max(1, n_nodes // 1000), rng=SEED
    )
    seconds = time.perf_counter() - started
    sp.save_npz(folder / "graph.npz", planted.adjacency, compressed=False)
    np.save(folder / "memberships.npy", planted.memberships)
    return {"nodes": n_nodes, "edges": planted.adjacency.nnz // 2, "drawn_s": round(seconds, 1)}


def fit_in_this_process(folder: Path, method: str) -> dict[str, Any]:
    """Fit one method and measure."""
    import resource

    from nonneg.applications import MixedMembership
    from nonneg.metrics import averaged_rank_correlation

    adjacency = sp.load_npz(folder / "graph.npz")
    read = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    started = time.perf_counter()
    model = MixedMembership(N_COMMUNITIES, method=method, random_state=0).fit(adjacency)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    truth = np.load(folder / "memberships.npy")
    return {
        "method": method,
        "s": round(seconds, 1),
        "GB": round(peak / 1e9, 2),
        "GB with the graph read": round(read / 1e9, 2),
        "rank correlation": round(averaged_rank_correlation(truth, model.memberships_, nan="omit"), 4),
        "isolated": len(model.isolated_nodes_),
    }


def main() -> None:
    """Draw, fit every method in a process of its own, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=N_NODES)
    parser.add_argument("--degree", type=float, default=MEAN_DEGREE)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--write", type=Path, help="also write the table to this file")
    parser.add_argument("--one", nargs=2, metavar=("FOLDER", "METHOD"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(fit_in_this_process(Path(options.one[0]), options.one[1])))
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        size = draw(folder, options.nodes, options.degree)
        print(size, flush=True)
        rows = []
        for method in options.methods.split(","):
            rows.append({"method": method} | measured_apart("communities", "--one", place, method, show=True))
            print(rows[-1], flush=True)
    # A method that failed stands in the table with what it said.
    head = list(dict.fromkeys(name for row in rows for name in row))
    table = markdown(head, [[str(row.get(name, "-")) for name in head] for row in rows])
    print(table)
    if options.write is not None:
        about = f"{size['nodes']} nodes, {size['edges']} edges, drawn in {size['drawn_s']} s.\n\n"
        options.write.write_text(about + table + "\n", encoding="utf-8")
    if any("failure" in row for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
