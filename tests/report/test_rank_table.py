"""The table of candidates: a column for each measure that some candidate has."""

from __future__ import annotations

from nonneg.cli.rank import _capital, _table
from nonneg.report.rank_page import rank_rows

RECORD = {
    "result": {
        "rank": 4,
        "estimates": {"singular-value-ratio": {"rank": 3}, "cross-validation": {"rank": 4}},
        "table": [
            {"k": 2, "ratio": 1.5, "held_out_error": 0.3, "held_out_error_spread": 0.01},
            {"k": 3, "ratio": 4.5},
            {"k": 4, "ratio": 1.1, "held_out_error": 0.2, "held_out_error_spread": 0.02},
        ],
    }
}


def test_a_measure_that_some_candidates_have_has_a_column():
    rows = rank_rows(RECORD)
    assert [row["k"] for row in rows] == [2, 3, 4]
    assert [row["chosen"] for row in rows] == ["", "singular-value ratio", "recommended, cross-validation"]
    assert "held_out_error" not in rows[1]
    heading, _, *lines = _table(RECORD).splitlines()
    assert [cell.strip() for cell in heading.strip("|").split("|")] == [
        "k",
        "ratio",
        "held-out error",
        "chosen by",
    ]
    assert "agreement" not in heading
    assert len(lines) == 3
    assert "0.3" in lines[0]
    assert _capital("all agree.") == "All agree."
    assert _capital("") == ""
