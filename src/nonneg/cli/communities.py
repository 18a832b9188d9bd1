"""`nonneg communities EDGES`: overlapping communities of a graph."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from nonneg.cli import arguments, terminal

EXAMPLES = ("lesmis", "karate", "southern-women")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "edges",
        type=Path,
        nargs="?",
        metavar="EDGES",
        help="edge list (.txt .edges .csv .tsv, also .gz: two names and a weight a line), adjacency matrix "
        "(.mtx .npz .npy .mat), .graphml or .gml",
    )
    parser.add_argument(
        "--example", choices=EXAMPLES, help="a graph that comes with networkx, in place of a file"
    )
    parser.add_argument(
        "-k", "--communities", type=arguments.count, required=True, metavar="K", help="how many communities"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR",
        help="folder for the results (default: EDGES' name + -communities)",
    )  # fmt: skip
    _add_search_arguments(parser.add_argument_group("search"))
    _add_graph_arguments(parser.add_argument_group("graph"))
    parser.add_argument_group("output").add_argument("--quiet", action="store_true", help="show no progress")


def _add_search_arguments(group: Any) -> None:
    group.add_argument(
        "--method", metavar="NAME",
        help="merit (default), merit-0, spa, snpa, fast-anchor, preconditioned-spa, vca, fast-gradient, "
        "spoc or geonmf",
    )  # fmt: skip
    group.add_argument(
        "--recovery", choices=["least-squares", "simplex"], help="how memberships follow from pure nodes"
    )
    group.add_argument(
        "--energy", type=float, metavar="S", help="look among nodes with this share of the norm (0.99)"
    )
    group.add_argument("--candidates", type=arguments.count, metavar="N", help="MERIT looks at so many nodes")
    group.add_argument(
        "--choice",
        choices=["row-maxima", "spread"],
        help="MERIT: how pure nodes are chosen; spread avoids twins",
    )
    group.add_argument(
        "--spectrum", choices=["magnitude", "algebraic"], help="which eigenvalues lead; algebraic finds "
        "groups that span both sides of a bipartite graph",
    )  # fmt: skip
    group.add_argument(
        "--unreached", choices=["auto", "mean", "uniform", "zero", "nan"],
        help="membership of nodes that the leading eigenvectors do not reach",
    )  # fmt: skip
    group.add_argument("--lam", type=float, metavar="L", help="MERIT: weight of the row sparsity")
    group.add_argument("--max-iter", type=int, metavar="N", help="MERIT: at most so many iterations")
    group.add_argument("--tol", type=float, metavar="TOL", help="MERIT: stop at this duality gap")
    group.add_argument("--seed", type=int, metavar="N", default=0, help="of the random numbers (default: 0)")
    group.add_argument("--n-jobs", type=int, metavar="N", help="threads (default: all cores)")


def _add_graph_arguments(group: Any) -> None:
    group.add_argument(
        "--symmetrize", choices=["sum", "mean", "max"], help="make a directed graph undirected"
    )
    group.add_argument("--self-loops", choices=["drop", "keep"], help="edges from a node to itself")
    group.add_argument("--weight", metavar="NAME", help="attribute that holds the weight (.graphml, .gml)")
    group.add_argument("--unweighted", action="store_true", help="count every edge as 1")
    group.add_argument("--delimiter", metavar="CHAR", help="what separates the cells (default: look)")
    group.add_argument(
        "--header", action=argparse.BooleanOptionalAction, default=None,
        help="the first line of an edge list holds headings (default: look)",
    )  # fmt: skip
    group.add_argument(
        "--duplicates", choices=["sum", "max"], default="sum",
        help="what becomes of several lines about one pair (default: sum)",
    )  # fmt: skip
    group.add_argument("--variable", metavar="NAME", help="which array of a .npz or .mat file")


def run(options: argparse.Namespace) -> int:
    """Read, search, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    from nonneg.applications import MixedMembership
    from nonneg.cli.community_results import community_table, write_community_results
    from nonneg.exceptions import InvalidParameterError
    from nonneg.report.community_page import community_sentence
    from nonneg.report.folder import check_output_folder

    if (options.edges is None) == (options.example is None):
        raise InvalidParameterError(
            f"Give a file of edges, or --example with one of {', '.join(EXAMPLES)}, and not both."
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
    record, written = write_community_results(
        folder, model, source=graph.source, seconds=seconds, title=f"Communities of {graph.source}"
    )
    terminal.say(community_sentence(record))
    terminal.say(community_table(record))
    for path in written:
        terminal.say(str(path))
    return 0


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
        "lam": options.lam,
        "max_iter": options.max_iter,
        "tol": options.tol,
        "random_state": options.seed,
        "n_jobs": options.n_jobs,
        "verbose": 0 if options.quiet else 1,
    }
    said = {name: value for name, value in said.items() if value is not None}
    if options.unweighted:
        said["weight"] = None
    return said
