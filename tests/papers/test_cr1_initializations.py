"""Quick settings of Tables III to V and Figures 4 and 6 of Liu & Tan (2017)."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.artifacts import Figure, Pictures, Table
from reproduction.cr1.figure_6 import packed, unpacked
from reproduction.cr1.init_times import TIMED_INITS, shift
from reproduction.cr1.initializations import INITS
from reproduction.cr1.real_sets import ADDED, load_set, timed_sets
from reproduction.cr1.table_5 import first_time
from reproduction.registry import find_experiment
from tests.papers.quick_runs import artifacts, quick_records, verdicts


def test_every_start_is_timed_and_the_ratios_are_those_of_the_means():
    records = quick_records("cr1/table-3")
    assert [record["init"] for record in records] == list(TIMED_INITS)
    assert all(len(record["init seconds"]) == 2 for record in records)
    ours, theirs = artifacts("cr1/table-3", records, Table)
    row = ours.rows[0]
    assert row["spkm ratio"] == pytest.approx(row["spkm"].value / row["cr1-nmf"].value)
    assert [theirs.rows[0][init] for init in TIMED_INITS] == [3.30, 6.68, 9.45]
    assert theirs.rows[0]["spkm ratio"] == pytest.approx(6.68 / 3.30)


def timed(name, seconds):
    return [
        {"set": name, "init": init, "init seconds": [value], "n_features": 1, "n_samples": 1, "k": 1}
        for init, value in zip(TIMED_INITS, seconds, strict=True)
    ]


def test_the_fastest_start_is_told():
    (verdict,) = verdicts("cr1/table-3", timed("coil20", (1.0, 2.0, 3.0))).values()
    assert verdict.met
    (verdict,) = verdicts("cr1/table-3", timed("coil20", (1.0, 0.5, 3.0))).values()
    assert not verdict.met
    assert "COIL-20: spkm" in verdict.detail


def test_a_shift_is_the_whole_iterations_that_a_start_takes():
    assert shift(0.35, 0.1) == 3
    assert shift(0.05, 0.1) == 0
    records = [
        record | {"iteration seconds": {"mult": 0.1, "hals": 0.5}}
        for record in timed("coil20", (0.25, 0.65, 1.05))
    ]
    shifts, _, published = artifacts("cr1/table-4", records, Table)
    assert [row["coil20"] for row in shifts.rows] == [2, 6, 10, 0, 1, 2]
    assert [row["CK"] for row in published.rows] == [3, 6, 8, 2, 5, 7]


def test_shifts_of_the_quick_setting_follow_from_its_times():
    records = quick_records("cr1/table-4")
    shifts, times, _ = artifacts("cr1/table-4", records, Table)
    expected = [
        int(times.rows[0][init] / times.rows[0][algorithm])
        for algorithm in ("mult", "hals")
        for init in TIMED_INITS
    ]
    assert [row["quick"] for row in shifts.rows] == expected


def test_the_time_of_a_start_counts_until_an_error_is_reached():
    record = {"init seconds": 1.0, "errors": [0.5, 0.3, 0.2], "seconds": [0.1, 0.2, 0.3]}
    assert first_time(record, 0.3) == pytest.approx(1.2)
    assert first_time(record, 0.1) is None


def test_errors_to_reach_come_from_the_best_run():
    records = quick_records("cr1/table-5")
    best = min(error for record in records if record["init"] != "default" for error in record["errors"])
    ours, theirs, early = artifacts("cr1/table-5", records, Table)
    levels, *rows = ours.rows
    assert levels["0"] == pytest.approx(1.05 * best)
    assert levels["2"] == pytest.approx(1.01 * best)
    assert [row["init"] for row in rows] == [*INITS, "default"]
    for row, record in zip(rows, records, strict=True):
        assert row["0"].value == first_time(record, 1.05 * best)
        assert (row["0"].value is None) == (row["0"].remark != "")
    for row, record in zip(early.rows, records[: len(INITS)], strict=True):
        assert (row["init"], row["3"]) == (record["init"], record["errors"][2])
    assert theirs.rows[1]["2"] is None
    assert [theirs.rows[2][key] for key in ("0", "1", "2")] == [40.27, 71.77, 129.62]


def test_error_curves_fall_and_have_three_panels_a_set():
    records = quick_records("cr1/figure-4")
    assert records[-1]["init"] == "default"
    assert records[-1]["error"] <= 1.01 * min(record["errors"][-1] for record in records[:-1])
    for record in records[:-1]:
        assert len(record["errors"]) == 12
        assert np.all(np.diff(record["errors"]) <= 2e-6)
    (figure,) = artifacts("cr1/figure-4", records, Figure)
    assert [panel.title.split(": ")[1] for panel in figure.panels] == ["mult", "nnlsb", "hals"]
    nnlsb = figure.panels[1]
    assert all(series.x[0] == 1 for series in nnlsb.series)


def test_curves_are_shifted_by_their_start():
    records = [
        {
            "set": "coil20",
            "run": 0,
            "algorithm": "hals",
            "init": init,
            "init seconds": seconds,
            "seconds": 1.0,
            "errors": [0.5 - 0.01 * i for i in range(10)],
        }
        for init, seconds in zip(INITS, (0.0, 0.35, 0.1, 5.0), strict=True)
    ]
    (figure,) = artifacts("cr1/figure-4", records, Figure)
    assert [series.x[0] if series.x else None for series in figure.panels[0].series] == [1, 4, 2, None]
    early, late, _ = artifacts("cr1/figure-4", records, Table)
    assert (early.rows[0]["n_iter"], early.rows[0]["spkm"]) == (2, 0.5)
    assert early.rows[0]["cr1-nmf"] is None
    row = late.rows[0]
    assert row["rand"] == pytest.approx(0.41)
    assert row["cr1-nmf"] == pytest.approx(0.44)
    assert row["nndsvd"] is None
    assert row["best"] == "rand"


def test_basis_pictures_are_those_of_the_people():
    records = quick_records("cr1/figure-6")
    assert [record["init"] for record in records] == [*INITS, "default"]
    assert all(0 < record["cosine"] <= 1 for record in records)
    assert records[1]["n_nearest"] == 4
    images, pictures = artifacts("cr1/figure-6", records, Pictures)
    assert [len(row) for row in images.images] == [4, 4, 4]
    assert [len(row) for row in pictures.images] == [3, 3, 3, 3, 3]
    assert all(image.shape == (8, 8) and image.max() == 1.0 for row in pictures.images for image in row)


def test_pictures_survive_being_written_as_text():
    picture = np.random.default_rng(0).random(12)
    found = unpacked(packed(picture), (3, 4))
    np.testing.assert_allclose(found.ravel(), picture / picture.max(), atol=0.5 / 255)
    assert not unpacked(packed(np.zeros(4)), (2, 2)).any()


def test_sets_that_are_not_public_can_be_added(tmp_path, monkeypatch):
    monkeypatch.setenv("NONNEG_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    with pytest.raises(FileNotFoundError, match="faces94 is not public and not on this machine"):
        load_set("faces94")
    for name, shape in (("faces94", (6, 4, 5)), ("paviaU", (4, 5, 7))):
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / "data.npz", X=rng.random(shape), y=np.arange(shape[0]))
    faces, scene = load_set("faces94"), load_set("paviaU")
    assert (faces.X.shape, faces.k, faces.grid, list(faces.y)) == ((6, 20), 153, (4, 5), list(range(6)))
    assert (scene.X.shape, scene.y, scene.k) == ((7, 20), None, 9)
    assert set(timed_sets()) & set(ADDED) == {"faces94", "paviaU"}
    for table in ("cr1/table-3", "cr1/table-4", "cr1/table-5"):
        assert "faces94" in {setting["set"] for setting in find_experiment(table).trials(quick=False)}
    np.savez(tmp_path / "faces94" / "data.npz", X=-np.ones((2, 2)))
    with pytest.raises(ValueError, match="nonnegative numbers"):
        load_set("faces94")
