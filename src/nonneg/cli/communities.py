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
        "(.mtx .npz .npy .mat), .graphml, .gexf or .gml",
    )
    parser.add_argument("--example", choices=EXAMPLES, help="use a graph that comes with networkx")
    parser.add_argument(
        "-k",
        "--communities",
        type=arguments.components,
        required=True,
        metavar="K",
        help="number of communities, or auto: the widest gap of the eigenvalues, with its reason",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR",
        help="output folder (default: name of EDGES + -communities)",
    )  # fmt: skip
    _add_search_arguments(parser.add_argument_group("search"))
    _add_graph_arguments(parser.add_argument_group("graph"))
    group = parser.add_argument_group("comparison")
    group.add_argument(
        "--labels", metavar="NAME",
        help="compare the communities with this attribute of the nodes (.graphml, .gexf, .gml), e.g. party, "
        "or with this column of --nodes",
    )  # fmt: skip
    group.add_argument(
        "--nodes", type=Path, metavar="FILE", help="table of nodes (.csv .tsv) with their names and --labels"
    )
    group = parser.add_argument_group("output")
    group.add_argument(
        "--export", nargs="+", choices=["gexf", "graphml"], default=[], metavar="FORMAT",
        help="also write the graph with memberships, positions and colors for Gephi: gexf, graphml",
    )  # fmt: skip
    group.add_argument("-q", "--quiet", action="store_true", help="do not show progress")


def _add_search_arguments(group: Any) -> None:
    group.add_argument(
        "--method", metavar="NAME",
        help="auto (default), symnmf, regularized-spa, spa, merit, fast-gradient, spoc",
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
        help="search among the nodes that account for this fraction of the squared norm (default: 0.99)",
    )
    group.add_argument(
        "--spectrum", choices=["magnitude", "algebraic"],
        help="which eigenvalues count as leading; algebraic finds groups that span both sides of a bipartite "
        "graph",
    )  # fmt: skip
    group.add_argument(
        "--unreached", choices=["auto", "mean", "uniform", "zero", "nan"],
        help="membership of nodes that the leading eigenvectors do not reach",
    )  # fmt: skip
    group.add_argument("--lam", type=float, metavar="L", help="MERIT: weight of the row sparsity")
    group.add_argument(
        "--max-iter", type=int, metavar="N", help="convex methods, symnmf: maximum number of iterations"
    )
    group.add_argument(
        "--tol", type=float, metavar="TOL",
        help="stop at this duality gap (convex methods) or relative decrease (symnmf)",
    )  # fmt: skip
    group.add_argument("--seed", type=int, metavar="N", default=0, help="random seed (default: 0)")
    group.add_argument("--n-jobs", type=int, metavar="N", help="number of threads (default: all cores)")


def _add_graph_arguments(group: Any) -> None:
    group.add_argument(
        "--kind", choices=["auto", "undirected", "directed", "bipartite"],
        help="what kind of graph it is (default: auto, with the edges of a list undirected); directed gives "
        "memberships by sending and by receiving",
    )  # fmt: skip
    group.add_argument(
        "--symmetrize", choices=["sum", "mean", "max"], help="make a directed graph undirected"
    )
    group.add_argument(
        "--self-loops",
        choices=["drop", "keep"],
        help="what to do with edges from a node to itself (default: drop)",
    )
    group.add_argument("--weight", metavar="NAME", help="attribute that contains the weight (.graphml, .gml)")
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
    from nonneg._optional import import_optional
    from nonneg.applications import MixedMembership
    from nonneg.cli.results import say_results, write_csv, write_results
    from nonneg.exceptions import InvalidParameterError
    from nonneg.report.community_page import build_community_page, community_sentence, draw_graph
    from nonneg.report.folder import check_output_folder
    from nonneg.report.graph_export import write_graph

    if (options.edges is None) == (options.example is None):
        raise InvalidParameterError(
            f"Give either a file of edges or --example with one of {', '.join(EXAMPLES)}."
        )
    name = options.example or options.edges.name.split(".")[0]
    if options.nodes is not None and options.labels is None:
        raise InvalidParameterError("--nodes is a table of nodes: name the column to compare with --labels.")
    folder = options.output or Path(f"{name}-communities")
    check_output_folder(folder)
    graph = _read(options)
    labels = None if options.labels is None else _labels(options, graph)
    exports = tuple(f"graph.{ending}" for ending in dict.fromkeys(options.export))
    if exports:
        import_optional("networkx", extra="graphs", purpose="--export")
    with terminal.warnings_as_notes():
        model = MixedMembership(options.communities, **_parameters(options))
        started = time.perf_counter()
        model.fit(_unweighted(graph.graph) if options.unweighted else graph.graph, names=graph.names)
        seconds = time.perf_counter() - started
    if model.number_ is not None and not options.quiet:
        terminal.note(f"{model.n_communities_} communities: {model.number_.reason}")
    record = community_record(model, graph.source, seconds, options.labels, labels)

    def write_files(fresh: Path) -> None:
        columns = model.node_table()
        write_csv(fresh / MEMBERSHIPS, columns, zip(*map(_cells, columns.values()), strict=True))
        (fresh / GRAPH).write_text(draw_graph(model), encoding="utf-8")
        for export in exports:
            write_graph(fresh / export, model)

    written = write_results(
        folder,
        record,
        write_files,
        lambda: build_community_page(record, model),
        known=(MEMBERSHIPS, GRAPH, "graph.gexf", "graph.graphml"),
        model=model,
    )
    say_results(community_sentence(record), _table(record) + _agreement(record), written)
    return 0


def _agreement(record: dict[str, Any]) -> str:
    compared = record["result"]["labels"]
    if compared is None:
        return ""
    return (
        f"\nAgreement with {compared['name']}: {compared['accuracy']:.1%} of the nodes, "
        f"normalized mutual information {compared['nmi']:.3f}, adjusted Rand index {compared['ari']:.3f}."
    )


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


def community_record(
    model: Any, source: str, seconds: float, attribute: str | None, labels: Any
) -> dict[str, Any]:
    """Describe communities and, where there are labels, how they agree."""
    import numpy as np
    from scipy.sparse import block_array

    from nonneg.metrics import conductance, overlapping_modularity
    from nonneg.report.community_page import drawn_nodes, mostly_one, two_memberships
    from nonneg.report.records import run_record

    graph, memberships = model.graph_, np.nan_to_num(model.memberships_, nan=0.0)
    top = model.top_nodes(N_TOP)
    sending, receiving = two_memberships(model)
    outward = conductance(graph.adjacency, memberships)
    if graph.directed:
        # Senders and receivers are two kinds of nodes.
        whole = block_array([[None, graph.adjacency], [graph.adjacency.T, None]])
        outward = conductance(whole, np.concatenate([sending, receiving]))
    compared = None
    if labels is not None:
        by_name = labels if isinstance(labels, dict) else dict(enumerate(labels))
        keys = model.node_names_ if isinstance(labels, dict) else range(graph.n_nodes)
        shown = [str(by_name.get(keys[at]) or "") for at in drawn_nodes(model)]
        compared = model.compare(labels).as_dict() | {"name": attribute, "drawn": shown}
    return run_record(
        "communities",
        f"Communities of {source}",
        data={
            "source": source,
            "n_nodes": graph.n_nodes,
            "n_edges": graph.n_edges,
            "n_isolated": len(model.isolated_nodes_),
            "kind": graph.kind,
            "n_self_loops": graph.n_self_loops,
            "weighted": bool(np.ptp(graph.adjacency.data) > 0),
        },
        estimator=model,
        result={
            "method": model.method_,
            "scores": model.scores_,
            "number": None if model.number_ is None else model.number_.as_dict(),
            "labels": compared,
            "modularity": overlapping_modularity(graph.adjacency, sending, receiving=receiving),
            "n_communities": memberships.shape[1],
            "n_mostly_one": mostly_one(model.memberships_),
            "n_kept": len(model.kept_nodes_),
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
                "conductance": outward[at],
                "top": top[at],
            }
            for at, node in enumerate(model.pure_nodes_.tolist())
        ],
        connectivity=model.connectivity_,
        eigenvalues=model.eigenvalues_,
    )


def _read(options: argparse.Namespace) -> Any:
    from nonneg.applications.communities.files import GraphFile, read_graph
    from nonneg.datasets.real import networkx_graph

    started = time.perf_counter()
    if options.example is not None:
        found = networkx_graph(options.example)
        known = found.y is not None and (found.y >= 0).all()
        labels = [found.names[at] for at in found.y] if known else None
        graph = GraphFile(found.X, found.sample_names, options.example, labels=labels)
    else:
        graph = read_graph(
            options.edges,
            delimiter=options.delimiter,
            header=options.header,
            duplicates=options.duplicates,
            variable=options.variable,
            kind=options.kind or "auto",
        )
    for note in graph.notes:
        terminal.note(f"note: {note}")
    if not options.quiet:
        terminal.note(f"read {graph.source} in {time.perf_counter() - started:.1f} s")
    return graph


def _labels(options: argparse.Namespace, graph: Any) -> Any:
    """Return the labels to compare with: one per node, or by name."""
    from nonneg.applications.communities.files import node_labels, read_node_labels
    from nonneg.exceptions import InvalidParameterError

    if options.nodes is not None:
        return read_node_labels(options.nodes, options.labels, options.delimiter)
    if graph.labels is not None:
        return list(graph.labels)
    if hasattr(graph.graph, "is_directed"):
        return node_labels(graph.graph, options.labels)
    raise InvalidParameterError(
        f"{graph.source} has no node attributes. Pass a table of nodes with a column {options.labels!r} "
        "by --nodes."
    )


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
    """Collect what the user said; everything else is left to the defaults of `MixedMembership`."""
    said = {
        "method": options.method,
        "recovery": options.recovery,
        "energy": options.energy,
        "spectrum": options.spectrum,
        "unreached": options.unreached,
        "kind": options.kind,
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
