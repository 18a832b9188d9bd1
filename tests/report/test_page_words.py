"""The words and numbers of pages of scenes and fits, for records that are written by hand."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
from nonneg.report import hyperspectral_page as scenes
from nonneg.report import page as fits


def scene(**changes):
    record = {
        "title": "t",
        "library": None,
        "data": {
            "source": "a.hdr", "shape": [1200, 30, 5], "dtype": "float32", "n_pixels": 35000, "n_bands": 4,
            "bands_left_out": [], "scale": 1, "isolated_pixels": [], "n_isolated": 0, "n_unexplained": 0,
            "n_left_out": 0, "n_clipped": 0, "preview_bands": [3, 2, 1], "preview_wavelengths": None,
        },
        "result": {
            "n_endmembers": 3, "explained": 0.875, "relative_error": 0.123456789, "seconds": 2.5,
            "method": "spa", "how": None, "constraint": "normalized",
            "duality_gap": None, "n_iter": 3, "estimate": None,
        },
        "parameters": {"n_endmembers": 3},
    }  # fmt: skip
    for place, value in changes.items():
        part, _, name = place.partition("__")
        if name:
            record[part][name] = value
        else:
            record[part] = value
    return record


def plain(text):
    """A text with commas and the letter x, as they are typed."""
    return text.replace("\N{NARROW NO-BREAK SPACE}", ",").replace("\N{MULTIPLICATION SIGN}", "x")


ALL = "of the squared norm of the image"
LIBRARY = {"mean_angle": 1.2345, "known_as": "the truth", "map_error": 0.04567}


def test_tiles_of_a_scene():
    seconds = scenes.wording.seconds(2.5)
    expected = [("endmembers", "3"), ("relative error", "0.1235"), ("pixels", "35,000"), ("time", seconds)]
    assert [(name, plain(text)) for name, text in scenes._tiles(scene())] == expected
    found = scenes._tiles(scene(library=LIBRARY))
    assert found[:3] == [("endmembers", "3"), ("mean angle", "1.23°"), ("map error (RMS)", "0.0457")]
    assert found[3:] == scenes._tiles(scene())[1:]
    found = scenes._tiles(scene(library=LIBRARY | {"map_error": None}))
    assert [name for name, _ in found] == ["endmembers", "mean angle", "relative error", "pixels", "time"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, f"3 endmembers explain 87.5% {ALL}."),
        ({"result__n_endmembers": 1}, f"1 endmember explains 87.5% {ALL}."),
        ({"result__explained": -0.5}, f"3 endmembers explain 0.0% {ALL}."),
        (
            {"library": LIBRARY},
            f"3 endmembers explain 87.5% {ALL}; they are 1.23° from the truth on average.",
        ),
        (
            {"data__n_unexplained": 3500, "data__n_isolated": 1},
            f"3 endmembers explain 87.5% {ALL}; they do not explain 3,500 pixels (10.0%), "
            "hatched in the maps; 1 pixel unlike all others was set aside.",
        ),
        (
            {"data__n_unexplained": 1, "data__n_isolated": 2},
            f"3 endmembers explain 87.5% {ALL}; they do not explain 1 pixel (0.0%), "
            "hatched in the maps; 2 pixels unlike all others were set aside.",
        ),
    ],
)
def test_the_sentence_of_a_scene(changes, sentence):
    assert plain(scenes.scene_sentence(scene(**changes))) == sentence


@pytest.mark.parametrize(
    ("method", "how", "pure"),
    [
        ("spa", None, True),
        ("min-volume", None, False),
        ("robust", "minimum volume", False),
        ("robust", "x", True),
    ],
)
def test_whether_pixels_are_pure(method, how, pure):
    record = scene(result__method=method, result__how=how)
    assert scenes._scene_text(record) == (
        f"Red, green and blue are the bands 3, 2, 1. Rings mark the {'pure' if pure else 'purest'} pixels."
    )
    record["data"]["preview_wavelengths"] = [640.4, 549.6, 460.0]
    assert scenes._scene_text(record).startswith("Red, green and blue are 640 nm, 550 nm, 460 nm. ")
    named = method if how is None else f"{method} ({how})"
    assert f"{'Pure pixels' if pure else 'Endmembers'} by {named}, abundances" in scenes._outcome(record)


def test_the_outcome_of_a_scene():
    start = (
        "1,200 x 30 pixels with 5 bands from a.hdr. Pure pixels by spa, abundances with the constraint "
        f"normalized, in {scenes.wording.seconds(2.5)}."
    )
    assert plain(scenes._outcome(scene())) == start
    found = scenes._outcome(
        scene(
            data__bands_left_out=[0, 1], data__n_left_out=1000, data__n_clipped=7,
            result__estimate={"reason": "because"},
        )
    )  # fmt: skip
    assert plain(found) == start + (
        " 2 of the bands, which the header flags as bad, were left out."
        " 1,000 pixels have no data or were left "
        "out. The number of endmembers was estimated: because. 7 entries below zero were set to zero."
    )


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([4], "4"), ([0, 1], "0-1"), ([0, 1, 2, 3, 7], "0-3, 7"), ([1, 3, 4, 6], "1, 3-4, 6"), ([], "")],
)
def test_runs_of_numbers(numbers, text):
    assert scenes._runs(numbers) == text


def test_facts_of_a_scene():
    facts = dict(scenes._facts(scene()))
    assert [plain(text) for _, text in facts["Data"]] == ["a.hdr", "1,200 x 30 x 5", "float32", "35,000", "4"]
    names = ["source", "shape", "entries", "pixels used", "bands used"]
    assert [name for name, _ in facts["Data"]] == names
    assert dict(facts["Result"]) == {
        "method": "spa", "constraint": "normalized", "relative error": "0.12345679", "n iter": "3",
    }  # fmt: skip
    assert facts["Parameters"] == [("n_endmembers", "3")]
    estimate = {"hysime": 4, "virtual_dimensionality": 5, "eigenvalues": 6, "reason": ""}
    found = dict(
        scenes._facts(
            scene(
                data__bands_left_out=[1], data__scale=10000, data__isolated_pixels=[(1, 2), (3, 4)],
                data__n_isolated=3, result__estimate=estimate,
            )
        )
    )  # fmt: skip
    assert found["Data"][5:] == [("bands left out", "1"), ("divided by", scenes.wording.number(10000))]
    assert found["Result"][4:] == [
        ("pixels set aside (row, column)", "(1, 2), (3, 4), ..."),
        ("endmembers by HySime", "4"),
        ("virtual dimensionality (NWHFC)", "5"),
        ("eigenvalues above noise", "6"),
    ]
    all_named = scenes._facts(scene(data__isolated_pixels=[(1, 2)], data__n_isolated=1))
    assert ("pixels set aside (row, column)", "(1, 2)") in dict(all_named)["Result"]


def test_rows_and_labels_of_endmembers():
    entry = {
        "endmember": 2, "row": 4, "column": 5, "mean_abundance": 0.25, "name": "tree", "nearest": "oak",
        "angle": 1.239, "map_error": 0.01234,
    }  # fmt: skip
    assert scenes._row(entry, "#123456") == {
        "endmember": 2, "color": "#123456", "place": "row 4, column 5", "mean": scenes.wording.percent(0.25),
        "name": "tree", "nearest": "oak", "angle": "1.24°", "map_error": "0.0123",
    }  # fmt: skip
    unknown = scenes._row(entry | {"angle": None, "map_error": None}, "#123456")
    assert (unknown["angle"], unknown["map_error"]) == (None, None)
    assert scenes._labels(scene(), ["a", "b"]) == ["a", "b"]
    assert scenes._labels(scene(library=LIBRARY), ["a", "b"]) == ["0: a", "1: b"]


def test_the_page_of_a_scene_is_made_of_its_pictures(monkeypatch):
    monkeypatch.setattr(scenes, "render", lambda template, context: (template, context))
    monkeypatch.setattr(scenes, "drawing", lambda svg: svg)
    monkeypatch.setattr(scenes, "data_address", lambda png: png)
    monkeypatch.setattr(scenes, "picture_png", lambda *given: given)
    monkeypatch.setattr(scenes, "marked_scene", lambda *given: given)
    monkeypatch.setattr(scenes, "spectrum_lines", lambda *given: given)
    monkeypatch.setattr(scenes, "_LONGEST", 2)
    preview, maps = np.arange(36).reshape(4, 3, 3), np.arange(24.0).reshape(4, 3, 2)
    residuals, unexplained = np.arange(12.0).reshape(4, 3), np.zeros((4, 3), dtype=bool)
    residuals[1, 1], unexplained[2, 2] = np.nan, True
    record = scene(certificate=[], endmembers=[
        {"endmember": at, "mean_abundance": at / 4, "row": 0, "column": 0, "name": "", "nearest": "",
         "angle": None, "map_error": None} for at in (1, 0)
    ])  # fmt: skip
    pictures = scenes.ScenePictures(
        preview, maps, residuals, unexplained, np.ones((2, 5)), ["a", "b"], np.array([[0, 1], [2, 3]])
    )
    template, found = scenes.build_scene_page(record, pictures)
    assert template == "hyperspectral.html"
    (picture,), shape, pixels, colors = found["scene"]
    np.testing.assert_array_equal(picture, preview[::2, ::2])
    assert (shape, pixels, colors) == ((4, 3), [[0, 1], [2, 3]], list(scenes.PALETTE[:2]))
    shown = np.where(unexplained[:, :, None], np.nan, maps)
    for at, entry in enumerate(found["maps"]):
        entries, largest = entry.pop("source")
        np.testing.assert_array_equal(entries, shown[::2, ::2, at])
        assert largest == 1.0
        mean = scenes.wording.percent(record["endmembers"][at]["mean_abundance"])
        assert entry == {"name": "ab"[at], "label": "ab"[at], "color": scenes.PALETTE[at], "mean": mean}
    entries, worst = found["left"]["source"]
    np.testing.assert_array_equal(entries, residuals[::2, ::2])
    assert (worst, found["left"]["worst"]) == (11.0, scenes.wording.percent(11.0))
    assert [row["color"] for row in found["rows"]] == [scenes.PALETTE[1], scenes.PALETTE[0]]
    assert (found["holes"], found["unexplained"], found["with_known"]) == (False, False, False)
    record["data"] |= {"n_left_out": 1, "n_unexplained": 1}
    _, found = scenes.build_scene_page(record, pictures)
    assert (found["holes"], found["unexplained"]) == (True, True)


def test_colors_repeat_and_black_is_none_of_them():
    assert "#000000" not in scenes.PALETTE
    assert len(scenes.PALETTE) == 7


def fit(W, H, **options):
    record = options.pop("record", {})
    return fits.Fit(record, np.asarray(W, dtype=float), np.asarray(H, dtype=float), **options)


def test_examples_have_the_same_shades(monkeypatch):
    monkeypatch.setattr(fits, "data_address", lambda png: png)
    monkeypatch.setattr(fits, "picture_png", lambda *given: given)
    shown = fit(
        [[1, 0], [0, 2]], [[1, 2, 0, 4], [0, 3, 5, 0]], record={"image_shape": [2, 2], "examples": [1, 0]},
        examples=np.array([[1.0, np.nan, 2.0, 3.0], [9.0, 8.0, 7.0, 6.0]]),
    )  # fmt: skip
    first, second = fits._examples(shown)
    assert (first["name"], second["name"]) == ("1", "0")
    np.testing.assert_array_equal(first["data"][0], [[1, 0], [2, 3]])
    np.testing.assert_array_equal(first["model"][0], [[0, 6], [10, 0]])
    assert (first["data"][1], first["model"][1]) == (10.0, 10.0)
    assert (second["data"][1], second["model"][1]) == (9.0, 9.0)
    assert [each["name"] for each in fits._examples(fits.replace(shown, row_names=["x", "y"]))] == ["y", "x"]
    assert fits._examples(fits.replace(shown, examples=None)) == []
    assert fits._examples(fits.replace(shown, record={"examples": [1, 0]})) == []


def test_components_are_shown_as_images_in_their_order(monkeypatch):
    monkeypatch.setattr(fits, "data_address", lambda png: png)
    monkeypatch.setattr(fits, "picture_png", lambda *given: given)
    monkeypatch.setattr(fits, "N_PICTURES", 2)
    shown = fit(np.ones((1, 3)), np.arange(12.0).reshape(3, 4), record={"image_shape": [2, 2]})
    found = fits._pictures(shown, np.array([0.25, 0.15, 0.6]))
    assert [(each["label"], each["share"]) for each in found] == [
        ("0", fits.wording.percent(0.25)), ("2", fits.wording.percent(0.6)),
    ]  # fmt: skip
    np.testing.assert_array_equal(found[1]["source"][0], [[8, 9], [10, 11]])
    assert fits._pictures(fit(np.ones((1, 3)), np.ones((3, 4))), np.ones(3)) == []


def test_strongest_entries_are_named_in_percent_of_the_largest():
    names = list("abcdefghij")
    assert fits._strongest(np.array([1.0, 0.0, 4.0, 2.986]), names[:4]) == [("c", 100), ("d", 75), ("a", 25)]
    assert len(fits._strongest(np.ones(10), names)) == 8
    assert fits._strongest(np.zeros(3), names) == []
    assert fits._strongest(np.ones(3), None) == []


def test_lists_of_components_are_sorted_by_share(monkeypatch):
    monkeypatch.setattr(fits, "N_LISTED", 2)
    shown = fit([[1, 2, 0], [3, 0, 5]], [[1, 0], [0, 2], [3, 1]], column_names=["x", "y"])
    found = fits._top_lists(shown, np.array([0.2, 0.3, 0.5]))
    assert (found["with_features"], found["with_samples"]) == (True, False)
    assert [row["component"] for row in found["rows"]] == [2, 1]
    assert found["rows"][0] == {
        "component": 2, "share": fits.wording.percent(0.5), "features": [("x", 100), ("y", 33)],
        "samples": [],
    }  # fmt: skip
    named = fits._top_lists(
        fits.replace(shown, column_names=None, row_names=["p", "q"]), np.array([0.2, 0.3, 0.5])
    )
    assert (named["with_features"], named["with_samples"]) == (False, True)
    assert named["rows"][1]["samples"] == [("p", 100)]
    assert fits._top_lists(fits.replace(shown, column_names=None), np.ones(3)) is None


def test_samples_are_sorted_by_their_strongest_component():
    factor = np.zeros((2, 31))
    factor[0, :15], factor[1, 15:] = np.arange(1, 16), np.arange(1, 17)
    found, names, words = fits._sorted_by_component(factor, ["x"] * 31)
    order = [*range(14, -1, -1), *range(30, 14, -1)]
    np.testing.assert_array_equal(found, factor[:, order])
    assert (names, words) == (None, ", sorted by the strongest component")
    few, names, words = fits._sorted_by_component(factor[:, :30], ["x"] * 30)
    np.testing.assert_array_equal(few, factor[:, :30])
    assert (names, words) == (["x"] * 30, "")


def test_classes_beside_the_shares_of_components(monkeypatch):
    monkeypatch.setattr(fits.wording, "label_sentence", lambda record: "said")
    labels = {"name": "kind", "classes": ["a", "b"], "counts": [3, 4], "shares": [[0.255, 0.745], [1.0, 0.0]]}
    found = fits._labels({"result": {"labels": labels}})
    assert (found["name"], found["sentence"], list(found["components"])) == ("kind", "said", [0, 1])
    assert [(row["name"], row["count"]) for row in found["rows"]] == [("a", 3), ("b", 4)]
    assert [size for _, size in found["rows"][0]["shares"]] == [round(25.5), round(74.5)]
    assert fits._labels({"result": {}}) is None


def test_facts_of_a_fit_have_eight_digits(make_fit):
    record = dict(make_fit().record)
    record["result"] |= {
        "loss": 1.23456789012,
        "reconstruction_err": 2.34567812345,
        "relative_error": 0.0345678123,
    }
    facts = dict(dict(fits.wording.facts(record))["Result"])
    assert facts["final loss"] == "1.2345679"
    assert facts["reconstruction error"] == "2.3456781"
    assert facts["relative error"] == "0.034567812"
