"""Matrix Market files: every kind of header, and numbers that are missing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from nonneg.exceptions import FileFormatError
from nonneg.io import read_table


def read(tmp_path, text):
    """Read a text as a file, and return a dense array."""
    path = tmp_path / "a.mtx"
    path.write_text(text)
    found = read_table(path).X
    return found.toarray() if sparse.issparse(found) else found


HEAD = "%%MatrixMarket matrix"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("array real general\n2 2\n1\n2\n3\n4\n", [[1, 3], [2, 4]]),
        ("array integer general\n1 3\n1\n2\n3", [[1, 2, 3]]),
        ("coordinate real general\n2 3 2\n1 1 5\n2 3 1e-1\n", [[5, 0, 0], [0, 0, 0.1]]),
        ("coordinate pattern general\n2 2 2\n1 2\n2 1\n", [[0, 1], [1, 0]]),
        ("coordinate integer symmetric\n2 2 2\n1 1 3\n2 1 4\n", [[3, 4], [4, 0]]),
        ("coordinate real general\n%note\n\n  \n2 1 1\n\n2 1 7\n\n", [[0], [7]]),
        ("coordinate real general\n2 1 1\n2 1 7  ", [[0], [7]]),
        ("coordinate real general\n1 1 0\n", [[0]]),
    ],
)
def test_every_kind_of_matrix_is_read(text, expected, tmp_path):
    np.testing.assert_array_equal(read(tmp_path, f"{HEAD} {text}"), expected)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("array real general\n2 2 4\n1\n", "expected rows and columns as whole numbers .* got b'2 2 4"),
        ("coordinate real general\n%note\n2 2\n", "expected rows, columns and entries"),
        ("array real general\n2 -2\n1\n", "expected rows and columns as whole numbers"),
        ("array real general\n1 2\n1 2\n", "1 columns but 2 were found"),
        ("coordinate real general\n1 2 2\n1 1 5\n1 2\n", "3 columns but 2"),
        ("coordinate pattern general\n1 1 1\n1 1 5\n", "2 columns but 3"),
        ("coordinate real general\n1 1 1\n1 1 5e", "'5e'"),
        ("coordinate real general\n1 1 1\n1.5 1 5", "'1.5'"),
        ("coordinate real general\n1 1 1\n", "declares 1 entries but has 0: it is truncated"),
        ("array real general\n1 2\n1\n", "declares 2 entries but has 1: it is truncated"),
        ("array real symmetric\n2 2\n1\n2\n4\n", "all of a dense matrix"),
    ],
)
def test_lines_that_are_no_entries_are_named(text, said, tmp_path):
    with pytest.raises(FileFormatError, match=said):
        read(tmp_path, f"{HEAD} {text}")


@pytest.mark.parametrize(
    "text",
    [
        "\n",
        f"{HEAD} array complex general\n1 1\n1 2\n",
        "%%MatrixMarket tensor array real general\n1 1\n1\n",
        "1 1\n",
    ],
)
def test_other_texts_are_no_matrix_market_files(text, tmp_path):
    with pytest.raises(FileFormatError, match=r"is not a Matrix Market file .*: its first line must read"):
        read(tmp_path, text)
