"""The runner of mutants finds what it is meant to find."""

from __future__ import annotations

from tests.mutants import changes as mutants

SOURCE = '''"""Words."""

from __future__ import annotations

LIMIT = 3


def f(x: int | None, y: bool = True) -> int:
    """Words + words."""
    if x is None and not y:  # and so on
        return round(1.5)
    return (x
            + 2) if x < 0.1 * LIMIT and 3 * y > x else max(x[5], "a" + "b")


def g(x):
    pairs = zip(x.astype(int, copy=False), x.copy(copy=True), strict=True)
    return min(x, 40), pairs, h(1 << 20, 1 << x, operations=2 * x)
'''


def test_mutants_of_operators_numbers_and_names(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    path = tmp_path / "file.py"
    path.write_text(SOURCE)
    found = {(mutant.line, mutant.before, mutant.after): mutant for mutant in mutants.mutants_of(path)}
    assert set(found) == {
        (8, "True", "False"),
        (10, "is", "is not"),
        (10, "and", "or"),
        (10, "not ", ""),
        (10, "", "not "),
        (11, "round", "int"),
        (12, "+", "-"),
        (13, "2", "3"),
        (13, "and", "or"),
        (13, "*", "/"),
        (13, ">", ">="),
        (13, "5", "6"),
        (13, "", "not "),
        (13, "max", "min"),
        (17, "True", "False"),
        (18, "min", "max"),
        (18, "1", "2"),
    }
    assert "            - 2)" in mutants.mutated(SOURCE, found[12, "+", "-"])
    assert len(mutants.sampled([path], 100, 0)) == len(found)


def test_a_mutant_is_found_again_when_other_lines_have_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    path = tmp_path / "file.py"
    path.write_text(SOURCE)
    before = {(mutant.line, mutant.before): mutant for mutant in mutants.mutants_of(path)}
    record = before[13, "max"].record
    assert record["line"].endswith('max(x[5], "a" + "b")')
    assert record["mutant"].endswith('min(x[5], "a" + "b")')
    path.write_text(SOURCE.replace("LIMIT = 3", "LIMIT = 3\n# more"))
    (again,) = mutants.recorded([record])
    assert (again.line, again.before) == (14, "max")
