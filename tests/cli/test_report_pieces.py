"""What `model.report` asks for, and what the terminal shows."""

from __future__ import annotations

import argparse
import io
import json
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.applications.hyperspectral import SpectralLibrary
from nonneg.cli import build_parser, communities, model_reports, table_inputs, terminal, unmix
from nonneg.cli import signatures as signature_command
from nonneg.exceptions import InvalidParameterError, OutputError


def test_only_the_command_that_is_asked_for_is_loaded():
    parser, command = build_parser(["fit"])
    assert command is not None
    assert "run" in vars(parser.parse_args(["fit", "x.npy"]))
    assert "run" not in vars(parser.parse_args(["demo"]))
    parser, command = build_parser(["--debug"])
    assert command is None
    parser, command = build_parser(["fit"], every=True)
    assert command.prog == "nonneg fit"
    assert "run" in vars(parser.parse_args(["demo"]))


@pytest.mark.parametrize(
    ("words", "draws"), [([], 100), (["--n-bootstrap", "1"], 2), (["--n-bootstrap", "7"], 7)]
)
def test_intervals_of_exposures_have_two_draws_or_more(words, draws, tmp_path, monkeypatch):
    class Stop(Exception):
        pass

    class Model:
        def __init__(self, ranks, **options):
            assert ranks == [2]
            assert options["resample"] == "poisson"

        def fit(self, frame):
            return self

        def exposure_intervals(self, frame, *, n_bootstrap):
            raise Stop(n_bootstrap)

    monkeypatch.setattr("nonneg.applications.signatures.MutationalSignatures", Model)
    monkeypatch.setattr(signature_command, "_read", lambda path: (None, None))
    parser, _ = build_parser(["signatures"])
    options = parser.parse_args(["signatures", "x.tsv", "-k", "2", "-o", str(tmp_path / "out"), *words])
    with pytest.raises(Stop) as stopped:
        options.run(options)
    assert stopped.value.args == (draws,)


def test_signatures_are_told_with_their_matches():
    common = {"stability": 0.5, "usage": 0.75}
    programs = [
        {"number": 0, "stability": 0.987, "usage": 0.25, "match": None},
        {"number": 1, **common, "match": {"name": None, "nearest": "B", "cosine": 0.5}},
        {"number": 2, **common, "match": {"name": "A", "nearest": "A", "cosine": 0.98765}},
    ]
    lines = signature_command._table(programs).splitlines()
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == ["0", "0.99", "25.0%", ""]
    assert "none (B: 0.500)" in lines[3]
    assert "A (A: 0.988)" in lines[4]


def scene_model(wavelengths=None):
    return SimpleNamespace(
        n_endmembers_=3, endmembers_=np.arange(6.0).reshape(3, 2), wavelengths_=wavelengths,
        bands_=np.array([False, True, True]), mask_=np.ones((2, 2), bool), abundances_=np.ones((2, 2, 3)),
        residuals_=None, unexplained_=None, pure_pixels_=None,
    )  # fmt: skip


def test_known_spectra_stand_beside_the_endmembers_that_they_match(monkeypatch):
    library = SpectralLibrary(("tree", "rock"), [[1.0, 2.0], [3.0, 4.0]])
    scene = SimpleNamespace(library=library, cube=SimpleNamespace(wavelengths=None))
    monkeypatch.setattr("nonneg.applications.hyperspectral.rgb_preview", lambda cube, mask: None)
    match = SimpleNamespace(chosen=np.array([1, -1, 0]), names=("rock", "", "tree"))
    found = unmix._pictures(scene_model(), scene, match, ["a", "b", "c"])
    np.testing.assert_array_equal(found.known_spectra, [[3.0, 4.0], [np.nan, np.nan], [1.0, 2.0]])
    assert unmix._pictures(scene_model(), scene, None, ["a", "b", "c"]).known_spectra is None
    model = scene_model()
    model.match = lambda library: match
    assert unmix._matched(model, scene)[1] == ["rock", "endmember 1", "tree"]
    scene.library = None
    assert unmix._matched(model, scene) == (None, ["endmember 0", "endmember 1", "endmember 2"])


@pytest.mark.parametrize("known", [True, False])
def test_spectra_are_written_by_wavelength_or_band(known, tmp_path):
    model = scene_model(np.array([0.5, 0.75]) if known else None)
    unmix._write_spectra(tmp_path / "a.csv", model, ["x", "y", "z"])
    lines = (tmp_path / "a.csv").read_text().split()
    assert lines[0] == ("wavelength,x,y,z" if known else "band,x,y,z")
    first = ["500.0", "750.0"] if known else ["1", "2"]
    assert lines[1:] == [f"{first[0]},0.0,2.0,4.0", f"{first[1]},1.0,3.0,5.0"]


@pytest.mark.parametrize(
    ("library", "columns"),
    [
        (None, 4),
        ({"map_error": None}, 6),
        ({"map_error": 0.1}, 7),
    ],
)
def test_columns_of_endmembers(library, columns):
    names = ("endmember", "row", "column", "mean_abundance", "name", "angle", "map_error")
    record = {"library": library, "endmembers": [dict.fromkeys(names, 1)]}
    assert unmix._table(record).splitlines()[0].count("|") == columns + 1


def test_models_that_cannot_be_reported():
    with pytest.raises(InvalidParameterError, match="Call report on the model that was fitted"):
        model_reports.write_report(SimpleNamespace(), "a.html", None)
    with pytest.raises(InvalidParameterError, match="shows the data of the fit: pass X"):
        model_reports._needed(None, "the data")
    assert model_reports._needed(3, "the data") == 3


@pytest.mark.parametrize("attribute", ["result_", "documents_per_topic_", "ranks_"])
@pytest.mark.parametrize("inner", [True, False])
def test_any_fitted_model_writes_its_page(attribute, inner, tmp_path, monkeypatch):
    class NMF:
        pass

    class Special(NMF):
        pass

    model = Special()
    setattr(model, "model_", SimpleNamespace(**{attribute: 1})) if inner else setattr(model, attribute, 1)
    monkeypatch.setitem(model_reports.PAGES, "NMF", lambda one, X, **details: f"{X} {details}")
    place = model_reports.write_report(model, str(tmp_path / "a.html"), 5, title="x")
    assert place == tmp_path / "a.html"
    assert place.read_text() == "5 {'title': 'x'}"
    with pytest.raises(OutputError, match="could not be written to"):
        model_reports.write_report(model, tmp_path / "none" / "a.html", 5)


def test_tables_of_frames_and_arrays():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    found = model_reports._table(frame, "title", None, None)
    assert (found.column_names, found.row_names, found.source) == (("a", "b"), None, "title")
    frame.index = ["x", "y"]
    assert model_reports._table(frame, "title", None, None).row_names == ("x", "y")
    named = model_reports._table(frame, "title", [1, 2], ["c", "d"])
    assert (named.row_names, named.column_names) == (("1", "2"), ("c", "d"))
    plain = model_reports._table(np.ones((2, 2)), "title", None, None)
    assert (plain.row_names, plain.column_names) == (None, None)


def test_seconds_and_parameters_of_a_model():
    class History:
        seconds = (0.5, 1.5)

        def __init__(self, length):
            self.length = length

        def __len__(self):
            return self.length

    assert model_reports._seconds(SimpleNamespace(history_=History(2))) == 1.5
    assert model_reports._seconds(SimpleNamespace(history_=History(0))) == 0.0
    assert model_reports._seconds(SimpleNamespace()) == 0.0
    given = {"a": 1, "b": "x", "c": [1], "d": None, "verbose": 1, "n_jobs": 2, "e": object()}
    model = SimpleNamespace(get_params=lambda deep: given)
    assert model_reports._parameters(model) == {"a": 1, "b": "x", "c": [1]}


@pytest.mark.parametrize(
    ("content", "command", "suffix"),
    [
        (b"\x93NUMPY...", "fit", ".npy"),
        (b"PK\x03", "fit", ".npz"),
        (b"%%MatrixMarket", "fit", ".mtx"),
        (b"RIFF", "separate", ".wav"),
        (b"1,2", "fit", ".csv"),
        (b"some words", "topics", ".txt"),
        (b"a b", "communities", ".txt"),
        (b"{}", "topics", ".jsonl"),
    ],
)
def test_standard_input_becomes_a_file_of_its_format(content, command, suffix, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    options = argparse.Namespace(command=command, file=Path("-"), files=[Path("-")], other=Path("x"))
    with terminal.standard_input_as_file(options):
        assert options.file.suffix == suffix
        assert options.files == [options.file]
        assert options.file.read_bytes() == content
        assert options.other == Path("x")
    assert not options.file.exists()


@pytest.mark.parametrize("as_json", [True, False])
def test_results_and_notes_go_to_different_places(as_json, capsys):
    terminal.begin(json=as_json, quiet=False)
    terminal.say("result")
    terminal.note("note")
    said = capsys.readouterr()
    assert (said.out, said.err) == (("", "result\nnote\n") if as_json else ("result\n", "note\n"))
    terminal.outcome.files = [Path("a.html")]
    terminal.say_outcome()
    assert json.loads(capsys.readouterr().out) == {"files": ["a.html"]}
    terminal.begin(json=False, quiet=True)
    assert (terminal.outcome.json, terminal.outcome.quiet, terminal.outcome.files) == (False, True, [])


@pytest.mark.parametrize(
    ("files", "found", "said"),
    [
        (["a.csv"], True, "note: there is no report to open\n"),
        (["a.html", "b.html"], True, ""),
        (["a.html", "b.html"], False, "note: no browser was found; open b.html yourself\n"),
    ],
)
def test_the_last_page_is_opened(files, found, said, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: (opened.append(address), found)[1])
    terminal.begin(json=False, quiet=False)
    terminal.outcome.files = [Path(name) for name in files]
    terminal.open_report()
    assert capsys.readouterr().err == said
    assert [address.rsplit("/", 1)[1] for address in opened] == (["b.html"] if len(files) > 1 else [])


def test_warnings_are_notes_of_one_line(capsys):
    with terminal.warnings_as_notes():
        warnings.warn("two\nlines", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "note: two lines\n"


@pytest.mark.parametrize(
    ("memory", "size", "opened"),
    [
        (None, 10, False),  # could not exceed the memory if it were compressed
        (None, 200, True),
        ("1000", 10, True),
        ("1000", 2000, True),
    ],
)
def test_small_files_are_not_opened_twice(memory, size, opened, tmp_path, monkeypatch):
    class Opened(Exception):
        pass

    def open_stored(*_):
        raise Opened

    monkeypatch.setattr("nonneg.io.open_matrix.open_stored", open_stored)
    monkeypatch.setattr("nonneg.io.memory.checked_memory", lambda given: 1000)
    monkeypatch.setattr(table_inputs, "_MOST_COMPRESSED", 10)
    monkeypatch.setattr(table_inputs, "_reading", lambda options: {})
    path = tmp_path / "x.npy"
    path.write_bytes(b"0" * size)
    options = argparse.Namespace(memory=memory, file=path)
    if opened:
        with pytest.raises(Opened):
            table_inputs._streamed_table(options, signed=False)
    else:
        assert table_inputs._streamed_table(options, signed=False) is None
    # A format that cannot be cut into blocks is read whole, unless it is larger than what was allowed.
    text = tmp_path / "x.csv"
    text.write_bytes(b"0" * size)
    options.file = text
    if memory is not None and size > 1000:
        with pytest.raises(Opened):
            table_inputs._streamed_table(options, signed=False)
    else:
        assert table_inputs._streamed_table(options, signed=False) is None
    assert table_inputs._streamed_table(argparse.Namespace(file=path), signed=False) is None


def test_tables_that_are_sparse_stay_so():
    X = sp.csr_array(np.eye(3))
    assert model_reports._table(X, "title", None, None).X is X


def test_labels_to_compare_communities_with(monkeypatch):
    files = "nonneg.applications.communities.files"
    monkeypatch.setattr(f"{files}.read_node_labels", lambda *given: ("table", *given))
    monkeypatch.setattr(f"{files}.node_labels", lambda *given: ("attribute", *given))
    options = argparse.Namespace(nodes="n.csv", labels="club", delimiter=";")
    graph = SimpleNamespace(labels=("a", "b"), graph=SimpleNamespace(is_directed=None), source="x.csv")
    assert communities._labels(options, graph) == ("table", "n.csv", "club", ";")
    options.nodes = None
    assert communities._labels(options, graph) == ["a", "b"]
    graph.labels = None
    assert communities._labels(options, graph) == ("attribute", graph.graph, "club")
    graph.graph = object()
    with pytest.raises(InvalidParameterError, match=r"x\.csv has no node attributes.*column 'club'"):
        communities._labels(options, graph)


@pytest.mark.parametrize(("y", "labels"), [(None, None), ([0, 1, -1], None), ([0, 1, 1], ["u", "v", "v"])])
def test_examples_have_labels_where_all_nodes_have_one(y, labels, monkeypatch, capsys):
    found = SimpleNamespace(
        X=np.eye(3), y=None if y is None else np.array(y), names=("u", "v"), sample_names=list("abc")
    )
    monkeypatch.setattr("nonneg.datasets.real.networkx_graphs.NETWORKX_GRAPHS", {"karate": lambda: found})
    graph = communities._read(argparse.Namespace(example="karate", quiet=False))
    assert graph.labels == labels
    assert (graph.source, graph.names) == ("karate", list("abc"))
    assert "read karate in 0." in capsys.readouterr().err
