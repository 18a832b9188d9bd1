"""`nonneg communities EDGES`: overlapping communities of a graph."""

from __future__ import annotations

import argparse
import re
from functools import partial
from pathlib import Path
from typing import Any

from nonneg.cli import arguments, terminal
from nonneg.exceptions import InvalidParameterError

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # what XML cannot hold


OPTIONS = """
edges EDGES?: edge list (.txt .edges .csv .tsv, also .gz: two names and a weight per line), adjacency matrix
    (.mtx .npz .npy .mat), .graphml, .gexf or .gml
--example lesmis|karate|southern-women: use a graph that comes with networkx
-k/--communities K [auto]: number of communities, or auto (default): an eigengap, judged by hidden edges

[search]
--method NAME: auto (default), nmf, poisson, regularized-spa, spa, merit, fast-gradient, spoc
--max-iter
--tol
--seed
--n-jobs
--checkpoint

[graph]
--kind auto|undirected|directed|bipartite: what kind of graph it is (default: auto, with the edges of a list
    undirected); directed gives memberships by sending and by receiving, undirected adds the
    weights of both directions
--weight NAME: attribute that contains the weight (.graphml, .gml)
--delimiter CHAR: separator of the cells (default: detect)
--[no-]header: whether the first line of an edge list is a header (default: detect)
--variable NAME: which array of a .npz or .mat file to read

[comparison]
--labels NAME: compare the communities with this attribute of the nodes (.graphml, .gexf, .gml), e.g. party,
    or with this column of --nodes
--nodes FILE: table of nodes (.csv .tsv) with their names and --labels

[output]
--export FORMAT: also write the graph with memberships for Gephi: gexf, graphml
"""
KINDS: dict[str, Any] = {
    "export": {"choices": ["gexf", "graphml"], "nargs": "+", "default": []},
}


def run(options: argparse.Namespace) -> None:
    """Read, search, write."""
    from nonneg._optional import import_optional
    from nonneg.applications import MixedMembership
    from nonneg.cli import files
    from nonneg.report import communities
    from nonneg.report.drawings import graph
    from nonneg.report.record import clean

    if (options.edges is None) == (options.example is None):
        raise InvalidParameterError("Give either a file of edges or --example with the name of a graph.")
    if options.nodes is not None and options.labels is None:
        raise InvalidParameterError("--nodes is a table of nodes: name the column to compare with --labels.")
    folder = arguments.output_folder(options, options.example or options.edges, "communities")
    read = _read(options)
    labels = None if options.labels is None else _labels(options, read)
    if options.export:
        import_optional("networkx", extra="graphs", purpose="--export")
    params = arguments.parameters(options, "method", "kind", "weight", "max_iter", "tol", "checkpoint")
    model = MixedMembership(options.communities, **params)
    _, seconds = terminal.timed(model.fit, read.graph, names=read.names)
    record = communities.describe(model, read.source, seconds, attribute=options.labels, labels=labels)
    columns = model.node_table()
    record.files = {"memberships.csv": files.table_file(columns, list(zip(*columns.values(), strict=True)))}
    if drawn := record.sections[-1][1]:
        picture = clean(graph(drawn["nodes"], drawn["edges"]))
        record.files["graph.svg"] = lambda path: path.write_text(picture, encoding="utf-8")
    record.files |= {f"graph.{ending}": partial(_write_graph, model) for ending in options.export}
    terminal.finish(folder, record)


def _read(options: argparse.Namespace) -> Any:
    from nonneg.applications.communities.files import GraphFile, read_graph
    from nonneg.datasets.real import networkx_graph

    if options.example is not None:
        known = networkx_graph(options.example)
        labeled = known.y is not None and (known.y >= 0).all()
        labels = [known.names[at] for at in known.y] if labeled else None
        graph = GraphFile(known.X, known.sample_names, options.example, labels=labels)
    else:
        params = arguments.chosen(options, "delimiter", "header", "variable", "kind")
        graph = read_graph(options.edges, **params)
    for note in graph.notes:
        terminal.note(f"note: {note}")
    return graph


def _labels(options: argparse.Namespace, graph: Any) -> Any:
    """Return the labels to compare with: one per node, or by name."""
    from nonneg.applications.communities.files import node_labels, read_node_labels

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


def _write_graph(model: Any, path: Path) -> None:
    """Write the graph with its communities for Gephi: GEXF or GraphML, as the ending says."""
    from nonneg._optional import import_optional

    networkx = import_optional("networkx", extra="graphs", purpose=f"Writing {path.suffix} files")
    graph = model.to_networkx()
    # Names that XML cannot hold are told apart by number.
    if any(_FORBIDDEN.search(name) for name in model.node_names_):
        graph = networkx.convert_node_labels_to_integers(graph)
    writer = networkx.write_gexf if path.suffix == ".gexf" else networkx.write_graphml_xml
    writer(graph, path)
