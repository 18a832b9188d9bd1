"""One-line changes of source files."""

from __future__ import annotations

import ast
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

OPERATORS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
}
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
NAMES = {
    "min": "max",
    "max": "min",
    "argmin": "argmax",
    "argmax": "argmin",
    "round": "int",
    "abs": "float",
    "minimum": "maximum",
    "maximum": "minimum",
    "any": "all",
    "all": "any",
    "floor": "ceil",
    "ceil": "floor",
}

LIMITS = ("min", "max", "minimum", "maximum", "clip")
# One more copy, one more validation, one check less that nothing fails.
SAFE = (("copy", False), ("prefer_skip_nested_validation", True), ("strict", True))
# Arguments that say how much work there is, in which pieces threads take it, and how a drawing looks.
FORM = ("operations", "chunk_size", "figsize", "linewidth", "fontsize", "labelsize")


@dataclass(frozen=True)
class Mutant:
    """A place in a file, and what stands there instead."""

    path: str  # of the file, from the root
    line: int
    start: int  # characters of the file that are replaced
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before!r} -> {self.after!r}"

    @property
    def record(self) -> dict[str, Any]:
        """What tells the mutant from others, also when other lines of the file have changed."""
        text = (ROOT / self.path).read_text(encoding="utf-8")
        first, last = text.rfind("\n", 0, self.start) + 1, text.find("\n", self.end)
        changed = text[first : self.start] + self.after + text[self.end : last]
        place = {"path": self.path, "at": self.line}
        return place | {"line": text[first:last].strip(), "mutant": changed.strip()}


def mutants_of(path: Path) -> list[Mutant]:
    """Return all mutants of a file."""
    text = path.read_text(encoding="utf-8")
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = text.splitlines()

    def offset(line: int, column: int) -> int:  # columns of `ast` count bytes
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def found(line: int, start: int, before: str, after: str) -> Mutant:
        return Mutant(path.relative_to(ROOT).as_posix(), line, start, start + len(before), before, after)

    def operator(left: ast.expr, right: ast.expr, kind: type) -> Iterator[Mutant]:
        before, after = OPERATORS[kind]
        assert left.end_lineno is not None
        assert left.end_col_offset is not None
        start, end = offset(left.end_lineno, left.end_col_offset), offset(right.lineno, right.col_offset)
        pattern = r"\b" + before.replace(" ", r"\s+") + r"\b" if before[0].isalpha() else re.escape(before)
        if match := re.search(pattern, re.sub(r"#.*", lambda note: " " * len(note[0]), text[start:end])):
            yield found(left.end_lineno, start + match.start(), match[0], after)

    tree = ast.parse(text)
    spared = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign | ast.arg | ast.FunctionDef)
        for annotation in [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if annotation is not None
        for inner in ast.walk(annotation)
    }
    # Tables of settings at the top of a file, and what only type checkers see.
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) or (
            isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        ):
            spared |= {id(inner) for inner in ast.walk(node)}

    # Factors, summands and limits above 2 are tuning constants, which no fact fixes; so are sizes of blocks
    # (`1 << 20`), estimates of the work, which choose the number of threads, and the form of drawings.
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift) and _is_constant(node):
            spared |= {id(inner) for inner in ast.walk(node)}
        if isinstance(node, ast.keyword) and node.arg in FORM:
            spared |= {id(inner) for inner in ast.walk(node.value)}
        # Whether several threads share the work: both ways give the same numbers.
        if isinstance(node, ast.Compare) and any(_calls(side, "team_size") for side in ast.walk(node)):
            spared |= {id(inner) for inner in ast.walk(node)}
        if isinstance(node, ast.Call):
            spared |= {id(value) for value in _without_effect(node)}
        if isinstance(node, ast.BinOp):
            spared |= {id(side) for side in (node.left, node.right) if _is_large(side)}
        elif isinstance(node, ast.Compare) and any(isinstance(op, ORDERS) for op in node.ops):
            spared |= {id(side) for side in (node.left, *node.comparators) if _is_large(side)}

    all_found: list[Mutant] = []
    for node in ast.walk(tree):
        if id(node) in spared:
            continue
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, right, op in zip(sides, sides[1:], node.ops, strict=False):
                # A limit that was tuned is never met exactly.
                if not (isinstance(op, ORDERS) and (_is_tuned(left) or _is_tuned(right))):
                    all_found += operator(left, right, type(op))
        elif isinstance(node, ast.BoolOp):
            all_found += operator(node.values[0], node.values[1], type(node.op))
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            if not any(_is_text(side) or _is_named(side) for side in (node.left, node.right)):
                all_found += operator(node.left, node.right, type(node.op))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            all_found.append(
                found(node.lineno, offset(node.lineno, node.col_offset), str(node.value), str(not node.value))
            )
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            start = offset(node.lineno, node.col_offset)
            assert node.end_col_offset is not None
            before = text[start : offset(node.lineno, node.end_col_offset)]
            all_found.append(found(node.lineno, start, before, str(node.value + 1)))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            start = offset(node.lineno, node.col_offset)
            all_found.append(found(node.lineno, start, "not ", ""))
        elif isinstance(node, ast.If | ast.While | ast.IfExp):
            start = offset(node.test.lineno, node.test.col_offset)
            all_found.append(found(node.test.lineno, start, "", "not "))
        elif isinstance(node, ast.Break | ast.Continue):
            before, after = ("break", "continue") if isinstance(node, ast.Break) else ("continue", "break")
            all_found.append(found(node.lineno, offset(node.lineno, node.col_offset), before, after))
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in NAMES:
                assert node.func.end_lineno is not None
                assert node.func.end_col_offset is not None
                end = offset(node.func.end_lineno, node.func.end_col_offset)
                all_found.append(found(node.func.end_lineno, end - len(name), name, NAMES[name]))
    return all_found


def _without_effect(call: ast.Call) -> Iterator[ast.expr]:
    """Yield arguments that no result depends on, and limits above 2."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if name in LIMITS:
        yield from filter(_is_large, call.args)
    for keyword in call.keywords:
        if (keyword.arg, getattr(keyword.value, "value", None)) in SAFE:
            yield keyword.value


def _calls(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _is_constant(node: ast.BinOp) -> bool:
    return isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant)


def _is_large(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > 2


def _is_named(node: ast.expr) -> bool:
    """Tell whether it is a constant with a name of its own, such as LARGEST."""
    return isinstance(node, ast.Name) and node.id.isupper() and len(node.id) > 2


def _is_tuned(node: ast.expr) -> bool:
    return any(
        _is_named(inner)
        or (isinstance(inner, ast.Constant) and isinstance(inner.value, float) and inner.value)
        for inner in ast.walk(node)
        if isinstance(inner, ast.expr)
    )


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def mutated(text: str, mutant: Mutant) -> str:
    """Return the text of a file with the mutant in it."""
    assert text[mutant.start : mutant.end] == mutant.before
    return text[: mutant.start] + mutant.after + text[mutant.end :]


def recorded(records: list[dict[str, Any]]) -> list[Mutant]:
    """Return the mutants of earlier records that are still in the files; of equal lines, the nearest."""
    paths = sorted({ROOT / record["path"] for record in records})
    same: dict[tuple[str, ...], list[Mutant]] = defaultdict(list)
    for mutant in (mutant for path in paths if path.is_file() for mutant in mutants_of(path)):
        same[_words(mutant.record)].append(mutant)
    found = {}
    for record in records:
        if these := same.get(_words(record)):
            found[min(these, key=lambda mutant: abs(mutant.line - record.get("at", 0)))] = None
    return list(found)


def _words(record: dict[str, Any]) -> tuple[str, ...]:
    return tuple(record[key] for key in ("path", "line", "mutant"))


def sampled(paths: list[Path], size: int, seed: int) -> list[Mutant]:
    """Draw mutants that are Python, without replacement."""
    everything = [mutant for path in sorted(paths) for mutant in mutants_of(path)]
    random.Random(seed).shuffle(everything)
    chosen: list[Mutant] = []
    for mutant in everything:
        if len(chosen) == size:
            break
        try:
            ast.parse(mutated((ROOT / mutant.path).read_text(encoding="utf-8"), mutant))
        except SyntaxError:
            continue
        chosen.append(mutant)
    return chosen
