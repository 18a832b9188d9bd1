"""`nonneg communities`: what it writes, what a browser shows, and what it says when something is wrong."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
import scipy.sparse as sp
from tests.report.browser import CHROMIUM, Shown, shown

from nonneg import load
from nonneg.cli import main


@pytest.mark.usefixtures("drawn")
def test_les_miserables_from_names_to_report(tmp_path, capsys):
    pytest.importorskip("networkx")
    out = tmp_path / "out"
    assert main(["communities", "--example", "lesmis", "-k", "5", "--quiet", "-o", str(out)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("5 communities in 77 nodes;")
    assert said.err == ""
    assert {path.name for path in out.iterdir()} == {
        "memberships.csv",
        "result.json",
        "graph.svg",
        "model.npz",
        "report.html",
    }
    with (out / "memberships.csv").open(encoding="utf-8") as stream:
        table = {row["node"]: row for row in csv.DictReader(stream)}
    assert len(table) == 77
    shares = {name: [float(row[f"community_{at}"]) for at in range(5)] for name, row in table.items()}
    assert all(sum(row) == pytest.approx(1.0) for row in shares.values())
    # The students of the barricade and the friends of Fantine's youth are apart.
    assert table["Enjolras"]["label"] == table["Combeferre"]["label"] != table["Favourite"]["label"]
    assert load(out / "model.npz").node_names_ == list(table)
    record = json.loads((out / "result.json").read_text())
    assert {entry["pure_node"] for entry in record["communities"]} >= {"Myriel", "Favourite"}
    assert record["data"]["n_edges"] == 254
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1
    assert "<script" not in page
    assert not re.findall(r"(?:src|href)=[\"'](?!data:|#)", page)
    if not CHROMIUM.exists():
        pytest.skip("chromium is not installed")
    assert shown(page, tmp_path) == Shown("", pictures=(0, 0), drawings=1, too_wide_by=0, sounds=(0, 0))


@pytest.fixture
def edges(tmp_path):
    """Two cliques with a node that is half in both, a loop, and a node alone."""
    lines: list[str] = []
    for first in (range(6), range(5, 11)):
        lines += [f"n<{a}>,n<{b}>,{1 if 5 in (a, b) else 2}" for a in first for b in first if a < b]
    path = tmp_path / "graph.csv"
    path.write_text("source,target,weight\n" + "\n".join([*lines, "n<0>,n<0>,1", "lonely,"]) + "\n")
    return path


@pytest.mark.parametrize("method", ["spa", "spoc"])
def test_odd_nodes_are_told_and_names_escaped(method, edges, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["communities", str(edges), "-k", "2", "--method", method, "-o", str(out)]
    assert main(words) == 0
    notes = capsys.readouterr().err
    assert "1 edge from a node to itself left out" in notes
    assert "1 of 12 nodes have no edges; their memberships are NaN" in notes
    with (out / "memberships.csv").open() as stream:
        table = {row["node"]: row for row in csv.DictReader(stream)}
    assert table["lonely"]["community_0"] == ""
    assert table["n<1>"]["label"] != table["n<8>"]["label"]
    assert 0.2 < float(table["n<5>"]["community_0"]) < 0.8
    page = (out / "report.html").read_text()
    assert "n&lt;1&gt;" in page
    assert "n<1>" not in page


def test_matrices_directions_and_weights(tmp_path, capsys):
    directed = np.zeros((8, 8))
    directed[:4, :4] = np.triu(np.full((4, 4), 3.0), 1)
    directed[4:, 4:] = np.triu(np.ones((4, 4)), 1)
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(directed))
    words = ["communities", str(tmp_path / "a.npz"), "-k", "2", "--method", "spa", "--quiet"]
    assert main([*words, "--kind", "undirected", "-o", str(tmp_path / "out")]) == 0
    record = json.loads((tmp_path / "out" / "result.json").read_text())
    assert sorted(entry["n_nodes"] for entry in record["communities"]) == [4, 4]
    signed = tmp_path / "signed.txt"
    signed.write_text("a b 1\nb c -1\n")
    assert main(["communities", str(signed), "-k", "1", "-o", str(tmp_path / "other")]) == 2
    assert "The graph is signed" in capsys.readouterr().err


def test_what_is_missing_is_said(tmp_path, capsys):
    assert main(["communities", "-k", "2"]) == 2
    assert "--example" in capsys.readouterr().err
    assert main(["communities", str(tmp_path / "none.txt"), "-k", "2", "-o", str(tmp_path / "o")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_the_number_is_found_and_labels_are_compared(tmp_path, capsys):
    networkx = pytest.importorskip("networkx")
    graph = networkx.planted_partition_graph(3, 25, 0.5, 0.03, seed=1)
    graph.graph.clear()  # lists, which GraphML does not hold
    for node, data in graph.nodes(data=True):
        data["party"] = "abc"[node // 25] if node else ""
    path, out = tmp_path / "parties.graphml", tmp_path / "out"
    networkx.write_graphml(graph, path)
    words = ["communities", str(path), "-k", "auto", "--labels", "party", "-o", str(out)]
    assert main([*words, "--export", "gexf", "graphml"]) == 0
    told = capsys.readouterr()
    assert "3 communities: " in told.out
    assert "main communities with party: 100.0% of the nodes" in told.out
    record = json.loads((out / "result.json").read_text())["result"]
    assert record["number"]["n_communities"] == 3
    assert record["labels"]["accuracy"] == 1.0
    assert record["labels"]["n_left_out"] == 1
    assert np.count_nonzero(record["labels"]["counts"]) == 3
    assert record["modularity"] > 0.4
    assert set(record["scores"]) == {"nmf", "regularized-spa", "poisson"}
    page = (out / "report.html").read_text(encoding="utf-8")
    for text in ("How many communities", "Communities and party", "adjusted Rand index"):
        assert text in page
    for graph in (networkx.read_gexf(out / "graph.gexf"), networkx.read_graphml(out / "graph.graphml")):
        first = dict(graph.nodes(data=True))["1"]
        assert first["community_0"] + first["community_1"] + first["community_2"] == pytest.approx(1.0)
        assert {data["community"] for _, data in graph.nodes(data=True)} == {0, 1, 2}
    assert main(["report", str(out)]) == 0
    assert "Communities and party" in (out / "report.html").read_text(encoding="utf-8")
    assert main([*words[:5], "color", "-o", str(tmp_path / "other")]) == 2
    assert "'party'" in capsys.readouterr().err


def test_labels_come_from_a_table_of_nodes(edges, tmp_path, capsys):
    table = tmp_path / "nodes.csv"
    table.write_text("Id,side\n" + "".join(f"n<{at}>,{'left' if at < 5 else 'right'}\n" for at in range(11)))
    out = tmp_path / "out"
    words = ["communities", str(edges), "-k", "2", "--quiet", "--labels", "side", "-o", str(out)]
    assert main([*words, "--nodes", str(table)]) == 0
    compared = json.loads((out / "result.json").read_text())["result"]["labels"]
    assert compared["accuracy"] > 0.9
    assert main(words) == 2
    assert "by --nodes" in capsys.readouterr().err
    assert main([*words[:5], "--nodes", str(table), "-o", str(out)]) == 2
    assert "--labels" in capsys.readouterr().err


def test_edges_with_directions_and_two_columns_of_different_things(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "edges.csv"
    pairs = [(i, j) for i in range(30) for j in range(30) if i % 2 != j % 2 and rng.random() < 0.7]
    path.write_text("\n".join(f"{i},{j}" for i, j in pairs if i < j or rng.random() < 0.2))
    words = ["communities", str(path), "-k", "2", "--quiet", "-o"]
    for kind, n_nodes in (("directed", 30), ("bipartite", 60), ("auto", 30)):
        out = tmp_path / kind
        assert main([*words, str(out), "--kind", kind]) == 0
        data = json.loads((out / "result.json").read_text())["data"]
        assert data["kind"] == ("bipartite" if kind == "auto" else kind)
        assert abs(data["n_nodes"] - n_nodes) <= 4
        with (out / "memberships.csv").open() as stream:
            names = set(next(csv.reader(stream)))
        assert ("sending_0" in names) == (kind == "directed")
        assert ("side" in names) == (kind != "directed")


def test_a_graph_too_small_for_an_estimate(tmp_path, capsys):
    star = tmp_path / "star.txt"
    star.write_text("".join(f"hub leaf{at}\n" for at in range(9)))
    assert main(["communities", str(star), "-o", str(tmp_path / "out")]) == 0
    assert "1 community: The graph is too small" in capsys.readouterr().out
