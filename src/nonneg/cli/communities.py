"""`nonneg communities EDGES`: overlapping communities of a graph."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from nonneg.cli import arguments, terminal

MEMBERSHIPS, GRAPH = "memberships.csv", "graph.svg"
N_TOP = 8
EXAMPLES = ("lesmis", "karate", "southern-women")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "edges",
        type=Path,
        nargs="?",
        metavar="EDGES",
        help="edge list (.txt .edges .csv .tsv, also .gz: two names and a weight per line), adjacency matrix "
        "(.mtx .npz .npy .mat), .graphml or .gml",
    )
    parser.add_argument("--example", choices=EXAMPLES, help="use a graph that comes with networkx")
    parser.add_argument(
        "-k", "--communities", type=arguments.count, required=True, metavar="K", help="number of communities"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR",
        help="output folder (default: name of EDGES + -communities)",
    )  # fmt: skip
    _add_search_arguments(parser.add_argument_group("search"))
    _add_graph_arguments(parser.add_argument_group("graph"))
    parser.add_argument_group("output").add_argument(
        "--quiet", action="store_true", help="do not show progress"
    )


def _add_search_arguments(group: Any) -> None:
    group.add_argument(
        "--method", metavar="NAME",
        help="smoothed-spa (default), spa, snpa, fast-anchor, preconditioned-spa, pp-spa, vca, merit, "
        "merit-0, css-nmf, fast-gradient, spoc, geonmf, ...",
    )  # fmt: skip
    group.add_argument(
        "--recovery",
        choices=["least-squares", "simplex"],
        help="how memberships are computed from pure nodes",
    )
    group.add_argument(
        "--energy",
        type=float,
        metavar="S",
        help="search among the nodes that hold this fraction of the squared norm (default: 0.99)",
    )
    group.add_argument(
        "--candidates", type=arguments.count, metavar="N", help="convex methods: number of nodes to consider"
    )
    group.add_argument(
        "--choice",
        choices=["row-maxima", "spread"],
        help="convex methods: how pure nodes are chosen; spread avoids near duplicates",
    )
    group.add_argument(
        "--spectrum", choices=["auto", "magnitude", "algebraic"], help="which eigenvalues lead; algebraic "
        "finds groups that span both sides of a bipartite graph",
    )  # fmt: skip
    group.add_argument(
        "--unreached", choices=["auto", "mean", "uniform", "zero", "nan"],
        help="membership of nodes that the leading eigenvectors do not reach",
    )  # fmt: skip
    group.add_argument("--lam", type=float, metavar="L", help="MERIT: weight of the row sparsity")
    group.add_argument(
        "--max-iter", type=int, metavar="N", help="convex methods: maximum number of iterations"
    )
    group.add_argument("--tol", type=float, metavar="TOL", help="convex methods: stop at this duality gap")
    group.add_argument("--seed", type=int, metavar="N", default=0, help="random seed (default: 0)")
    group.add_argument("--n-jobs", type=int, metavar="N", help="number of threads (default: all cores)")


def _add_graph_arguments(group: Any) -> None:
    group.add_argument(
        "--symmetrize", choices=["sum", "mean", "max"], help="make a directed graph undirected"
    )
    group.add_argument(
        "--self-loops",
        choices=["drop", "keep"],
        help="what to do with edges from a node to itself (default: drop)",
    )
    group.add_argument("--weight", metavar="NAME", help="attribute that holds the weight (.graphml, .gml)")
    group.add_argument("--unweighted", action="store_true", help="count every edge as 1")
    group.add_argument("--delimiter", metavar="CHAR", help="separator of the cells (default: detect)")
    group.add_argument(
        "--header", action=argparse.BooleanOptionalAction, default=None,
        help="whether the first line of an edge list is a header (default: detect)",
    )  # fmt: skip
    group.add_argument(
        "--duplicates", choices=["sum", "max"], default="sum",
        help="how repeated edges are combined (default: sum)",
    )  # fmt: skip
    group.add_argument("--variable", metavar="NAME", help="which array of a .npz or .mat file to read")


def run(options: argparse.Namespace) -> int:
    """Read, search, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    from nonneg.applications import MixedMembership
    from nonneg.cli.results import say_results, write_csv, write_results
    from nonneg.exceptions import InvalidParameterError
    from nonneg.report.community_page import build_community_page, community_sentence, draw_graph
    from nonneg.report.folder import check_output_folder

    if (options.edges is None) == (options.example is None):
        raise InvalidParameterError(
            f"Give either a file of edges or --example with one of {', '.join(EXAMPLES)}."
        )
    name = options.example or options.edges.name.split(".")[0]
    folder = options.output or Path(f"{name}-communities")
    check_output_folder(folder)
    graph = _read(options)
    with terminal.warnings_as_notes():
        model = MixedMembership(options.communities, **_parameters(options))
        started = time.perf_counter()
        model.fit(_unweighted(graph.graph) if options.unweighted else graph.graph, names=graph.names)
        seconds = time.perf_counter() - started
    record = _record(model, graph.source, seconds)

    def write_files(fresh: Path) -> None:
        columns = model.node_table()
        write_csv(fresh / MEMBERSHIPS, columns, zip(*map(_cells, columns.values()), strict=True))
        (fresh / GRAPH).write_text(draw_graph(model), encoding="utf-8")

    written = write_results(
        folder,
        record,
        write_files,
        lambda: build_community_page(record, model),
        known=(MEMBERSHIPS, GRAPH),
        model=model,
    )
    say_results(community_sentence(record), _table(record), written)
    return 0


def _table(record: dict[str, Any]) -> str:
    from nonneg.report.tables import markdown_table

    rows = [
        entry | {"top": ", ".join(f"{name} {share:.0%}" for name, share in entry["top"][:4])}
        for entry in record["communities"]
    ]
    headings = {
        "community": "community",
        "pure_node": "pure node",
        "size": "size",
        "top": "strongest members",
    }
    return markdown_table(rows, headings).rstrip("\n")


def _cells(column: Any) -> list[Any]:
    import numpy as np

    values = np.asarray(column)
    if values.dtype.kind == "b":
        return values.astype(int).tolist()
    if values.dtype.kind == "f":
        # An empty cell where there is no membership.
        return ["" if np.isnan(value) else repr(value) for value in values.tolist()]
    return values.tolist()


def _record(model: Any, source: str, seconds: float) -> dict[str, Any]:
    import numpy as np

    from nonneg.report.community_page import mostly_one
    from nonneg.report.records import run_record

    graph, memberships = model.graph_, np.nan_to_num(model.memberships_, nan=0.0)
    top = model.top_nodes(N_TOP)
    return run_record(
        "communities",
        f"Communities of {source}",
        data={
            "source": source,
            "n_nodes": graph.n_nodes,
            "n_edges": graph.n_edges,
            "n_isolated": len(model.isolated_nodes_),
            "n_self_loops": graph.n_self_loops,
            "weighted": bool(np.ptp(graph.adjacency.data) > 0),
        },
        estimator=model,
        result={
            "method": model.method,
            "n_communities": memberships.shape[1],
            "n_mostly_one": mostly_one(model.memberships_),
            "n_kept": len(model.kept_nodes_),
            "n_seen": model.facts_["n_seen"],
            "n_unreached": len(model.unreached_nodes_),
            "n_iter": model.n_iter_,
            "duality_gap": model.result_.gap,
            "seconds": seconds,
        },
        communities=[
            {
                "community": at,
                "pure_node": model.node_names_[node],
                "size": memberships[:, at].sum(),
                "n_nodes": np.count_nonzero(model.labels_ == at),
                "top": top[at],
            }
            for at, node in enumerate(model.pure_nodes_.tolist())
        ],
        connectivity=model.connectivity_,
        eigenvalues=model.eigenvalues_,
    )


def _read(options: argparse.Namespace) -> Any:
    from nonneg.applications.communities.files import GraphFile, read_graph
    from nonneg.datasets.real.networkx_graphs import NETWORKX_GRAPHS

    started = time.perf_counter()
    if options.example is not None:
        found = NETWORKX_GRAPHS[options.example]()
        graph = GraphFile(found.X, found.sample_names, options.example)
    else:
        graph = read_graph(
            options.edges,
            delimiter=options.delimiter,
            header=options.header,
            duplicates=options.duplicates,
            variable=options.variable,
        )
    for note in graph.notes:
        terminal.note(f"note: {note}")
    if not options.quiet:
        terminal.note(f"read {graph.source} in {time.perf_counter() - started:.1f} s")
    return graph


def _unweighted(graph: Any) -> Any:
    # networkx graphs are told by weight=None.
    import numpy as np
    from scipy import sparse

    if hasattr(graph, "is_directed"):
        return graph
    matrix = sparse.csr_array(graph, copy=True)
    matrix.data = np.sign(matrix.data)
    return matrix


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Collect what the user said; all else is left to the defaults of `MixedMembership`."""
    said = {
        "method": options.method,
        "recovery": options.recovery,
        "energy": options.energy,
        "n_candidates": options.candidates,
        "choice": options.choice,
        "spectrum": options.spectrum,
        "unreached": options.unreached,
        "symmetrize": options.symmetrize,
        "self_loops": options.self_loops,
        "weight": options.weight,
        "max_iter": options.max_iter,
        "tol": options.tol,
        "random_state": options.seed,
        "n_jobs": options.n_jobs,
        "verbose": 0 if options.quiet else 1,
        "method_params": None if options.lam is None else {"lam": options.lam},
    }
    said = {name: value for name, value in said.items() if value is not None}
    if options.unweighted:
        said["weight"] = None
    return said
