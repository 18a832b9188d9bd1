"""Graphs with communities, places and colors as files for Gephi and other programs."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.report.graph_drawing import color_rgb
from nonneg.report.graph_layout import corner_places, placed_nodes

FORMATS = ("gexf", "graphml")
# The layout compares all pairs of nodes in each of its steps; a larger graph is spread by its memberships.
N_PLACED = 1000
# The unit in which Gephi draws: edges of about a hundred.
_SIDE = 1000.0
# What XML cannot hold.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def write_graph(path: Path, model: Any) -> None:
    """Write the graph of a fit as GEXF or GraphML, as the ending says."""
    networkx = import_optional("networkx", extra="graphs", purpose=f"Writing {path.suffix} files")
    graph = model.to_networkx()
    places = _places(model)
    degrees = model.graph_.degrees
    sizes = 5.0 + 25.0 * np.sqrt(degrees / max(float(degrees.max()), 1e-300))
    for at, (name, data) in enumerate(zip(model.node_names_, graph.nodes.values(), strict=True)):
        red, green, blue = color_rgb(int(model.labels_[at]))
        x, y = (float(value) for value in places[at])
        data["label"] = _FORBIDDEN.sub(" ", name)
        if path.suffix == ".gexf":
            data["viz"] = {
                "color": {"r": red, "g": green, "b": blue, "a": 1.0},
                "position": {"x": x, "y": y, "z": 0.0},
                "size": float(sizes[at]),
            }
        else:
            data |= {"x": x, "y": y, "r": red, "g": green, "b": blue, "size": float(sizes[at])}
    # Names that XML cannot hold are told apart by number.
    if any(_FORBIDDEN.search(name) for name in model.node_names_):
        graph = networkx.convert_node_labels_to_integers(graph)
    writer = networkx.write_gexf if path.suffix == ".gexf" else networkx.write_graphml_xml
    writer(graph, path)


def _places(model: Any) -> FloatArray:
    memberships = np.nan_to_num(model.memberships_, nan=1.0 / model.memberships_.shape[1])
    n = len(memberships)
    if n <= N_PLACED:
        return _SIDE * (placed_nodes(model.graph_.undirected, memberships) - 0.5)
    # Around the corner of the main community, in a disc whose area grows with the number of nodes.
    rng = np.random.default_rng(n)
    angles, radii = 2 * np.pi * rng.random(n), np.sqrt(rng.random(n))
    around = 0.5 * (radii[:, None] * np.column_stack([np.cos(angles), np.sin(angles)]))
    spread = _SIDE * math.sqrt(n / N_PLACED)
    return 0.5 * spread * (memberships @ corner_places(memberships.shape[1]) + around)
