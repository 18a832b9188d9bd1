"""LFR graphs with overlapping communities (Lancichinetti & Fortunato, 2009): two scores of what is found.

    python -m benchmarks.others.lfr [--nodes 1000] [--draws 1] [--memberships 2 4 8] [--peers SLPA] [--write]

Mean degree 20, largest 50, exponents 2 (degrees) and 1 (sizes), communities of 20 to 100 nodes. Overlapping
normalized mutual information by McDaid et al. and the omega index, both of `nonneg.metrics`. `--peers` runs
SLPA, DEMON and BigClam of cdlib beside it with their defaults, where they are installed.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from reproduction.data.lfr import OverlappingGraph, lfr_graph

from benchmarks.others.records import merge
from benchmarks.tables import markdown
from nonneg.applications import MixedMembership
from nonneg.metrics import omega_index, overlapping_nmi

MIXING, OVERLAPPING, MEMBERSHIPS = (0.1, 0.3), (0.1, 0.5), (2, 4, 8)
KEYS = ("nodes", "mixing", "overlapping", "memberships", "seed", "method")
TITLES = ("overlapping NMI", "omega index")


def ours(graph: OverlappingGraph, seed: int, n_communities: int | str) -> list[list[int]]:
    """Return the communities that the default finds; names are numbers of nodes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nodes without edges
        model = MixedMembership(n_communities, random_state=seed).fit(graph.adjacency)
    return [[int(name) for name in community] for community in model.communities() if community]


def cdlib_method(name: str, **options: Any) -> Callable[[OverlappingGraph, int], list[list[int]]]:
    """Return a method of cdlib, which takes a networkx graph."""

    def run(graph: OverlappingGraph, seed: int) -> list[list[int]]:
        import random

        import networkx
        from cdlib import algorithms

        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 (what the peers draw from)
        known = {"dimensions": len(graph.communities)} if name == "big_clam" else {}
        found = getattr(algorithms, name)(
            networkx.from_scipy_sparse_array(graph.adjacency), **options, **known
        )
        return [list(community) for community in found.communities]

    return run


METHODS: dict[str, Callable[[OverlappingGraph, int], list[list[int]]]] = {
    "nonneg, number known": lambda graph, seed: ours(graph, seed, len(graph.communities)),
    "nonneg, number estimated": lambda graph, seed: ours(graph, seed, "auto"),
}
PEERS = {
    "SLPA": cdlib_method("slpa"),
    "DEMON": cdlib_method("demon", epsilon=0.25),
    "BigClam": cdlib_method("big_clam"),
}


def tables(rows: list[dict[str, Any]]) -> str:
    """Return a table of both scores for each number of nodes: means over the draws."""
    parts = []
    for nodes, part in pd.DataFrame(rows).groupby("nodes"):
        methods = [name for name in (*METHODS, *PEERS) if name in set(part.method)]

        def cells(*keys: str, part: pd.DataFrame = part) -> pd.Series:
            means = part.groupby([*keys, "method"])[[*TITLES]].mean()
            return means.apply(lambda pair: ", ".join(f"{value:.2f}" for value in pair), axis=1)

        lines = [
            [f"{nodes:,}", f"{mixing}", f"{share:.0%}", str(many), *texts[methods]]
            for (mixing, share, many), texts in cells(*KEYS[1:4]).unstack().iterrows()
        ]
        lines.append([f"{nodes:,}", "mean", "", "", *cells()[methods]])
        parts.append(markdown((*KEYS[:4], *methods), lines))
    return "\n\n".join(parts)


def main() -> None:
    """Run and print, or also write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--memberships", type=int, nargs="+", default=MEMBERSHIPS)
    parser.add_argument("--peers", nargs="*", default=[], choices=[*PEERS])
    parser.add_argument("--write", action="store_true", help="write the record under docs/")
    options = parser.parse_args()
    methods = METHODS | {name: PEERS[name] for name in options.peers}
    rows: list[dict[str, Any]] = []
    seconds = dict.fromkeys(methods, 0.0)
    cases = list(product(MIXING, OVERLAPPING, options.memberships))
    for (mixing, share, many), seed in product(cases, range(options.draws)):
        graph = lfr_graph(
            options.nodes, mixing=mixing, overlapping=share, n_memberships=many, rng=seed
        )  # fmt: skip
        for name, run in methods.items():
            started = time.perf_counter()
            found = run(graph, seed)
            seconds[name] += time.perf_counter() - started
            pair = (overlapping_nmi(graph.communities, found), omega_index(graph.communities, found))
            case = (options.nodes, mixing, share, many, seed, name)
            rows.append(
                dict(zip((*KEYS, *TITLES), (*case, *(round(value, 4) for value in pair)), strict=True))
            )
            sys.stderr.write(f"{rows[-1]}\n")
    if options.write:
        rows = merge("lfr", rows, KEYS)
    sys.stdout.write(tables(rows) + "\n")
    sys.stderr.write(", ".join(f"{name} {value:.0f} s" for name, value in seconds.items()) + "\n")


if __name__ == "__main__":
    main()
