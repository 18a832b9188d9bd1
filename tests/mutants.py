"""One-line mutants of the library, and the tests that catch them: `make mutants`.

First the suite runs once with coverage, which says for every line the tests that execute it (kept in
.mutants/ until a source file changes). Each sampled mutant then runs those tests in a copy of the tree.
Floats are spared: they are tuning constants, which no fact fixes. So are texts, and Triton kernels.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "nonneg"
KEPT = ROOT / ".mutants"
COPIED = ("src", "tests", "benchmarks", "reproduction", "docs", "examples", "pyproject.toml", "README.md")
N_TESTS = 60  # of those that execute a line, the quickest
SECONDS = 180.0  # that the tests of one mutant may take: an endless loop is a mutant that was caught

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
WATCH = pytest.StashKey[Any]()
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

    all_found: list[Mutant] = []
    for node in ast.walk(tree):
        if id(node) in spared:
            continue
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, right, op in zip(sides, sides[1:], node.ops, strict=False):
                all_found += operator(left, right, type(op))
        elif isinstance(node, ast.BoolOp):
            all_found += operator(node.values[0], node.values[1], type(node.op))
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            if not any(
                isinstance(side, ast.Constant | ast.JoinedStr) and _is_text(side)
                for side in (node.left, node.right)
            ):
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


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)


def mutated(text: str, mutant: Mutant) -> str:
    """Return the text of a file with the mutant in it."""
    assert text[mutant.start : mutant.end] == mutant.before
    return text[: mutant.start] + mutant.after + text[mutant.end :]


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


# As a plugin of pytest (`-p tests.mutants`): which tests execute a line, and how long they take.


def pytest_configure(config: Any) -> None:
    """Start to watch, in the processes that run tests."""
    if not hasattr(config, "workerinput"):
        return
    import coverage

    watch = coverage.Coverage(
        data_file=str(KEPT / f"coverage.{os.getpid()}"), source=[str(SOURCE)], config_file=False
    )
    watch.start()
    config.stash[WATCH] = watch


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """Name the test that runs, and measure it."""
    watch = item.config.stash.get(WATCH, None)
    if watch is None:
        return (yield)
    watch.switch_context(item.nodeid)
    started = time.perf_counter()
    answer = yield
    seconds = time.perf_counter() - started
    watch.switch_context("")
    with (KEPT / f"seconds.{os.getpid()}.jsonl").open("a") as stream:
        stream.write(json.dumps([item.nodeid, seconds]) + "\n")
    return answer


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was seen."""
    if (watch := session.config.stash.get(WATCH, None)) is not None:
        watch.stop()
        watch.save()


def watch_suite(n_jobs: int, folder: str) -> None:
    """Run the suite once and keep the tests of every line in .mutants/tests.json."""
    import coverage

    shutil.rmtree(KEPT, ignore_errors=True)
    KEPT.mkdir()
    words = f"-m pytest -q -p tests.mutants -n {n_jobs} --ignore=tests/repository {folder}"
    subprocess.run([sys.executable, *words.split()], cwd=ROOT, check=False)
    seconds: dict[str, float] = {}
    for path in KEPT.glob("seconds.*.jsonl"):
        seconds.update(json.loads(line) for line in path.read_text().splitlines())
    lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in KEPT.glob("coverage.*"):
        data = coverage.CoverageData(str(path))
        data.read()
        for file in data.measured_files():
            name = Path(file).relative_to(ROOT).as_posix()
            for line, tests in data.contexts_by_lineno(file).items():
                lines[name][line] |= set(tests)
    tests = sorted(seconds, key=lambda name: seconds[name])
    number = {name: at for at, name in enumerate(tests)}  # quickest first
    kept = {
        name: {
            line: sorted(number[test] for test in found if test in number)[:N_TESTS]
            for line, found in each.items()
        }
        for name, each in lines.items()
    }
    (KEPT / "tests.json").write_text(json.dumps({"tests": tests, "lines": kept}))


def tests_of(mutant: Mutant, kept: dict[str, Any]) -> list[str]:
    """Return the quickest tests that execute the line of a mutant, or else its file."""
    each = kept["lines"].get(mutant.path, {})
    found = each.get(str(mutant.line), [])
    if not found:  # executed at import, or compiled, which coverage does not see
        found = sorted({test for tests in each.values() for test in tests})[:N_TESTS]
    if not found:  # kernels are called from the front of their package
        front = kept["lines"].get(str(Path(mutant.path).parent / "__init__.py"), {})
        found = sorted({test for tests in front.values() for test in tests})[:N_TESTS]
    return [kept["tests"][test] for test in found]


def run_mutant(mutant: Mutant, slot: Path, tests: list[str]) -> str:
    """Return "killed", "survived" or "not executed"."""
    if not tests:
        return "not executed"
    target = slot / mutant.path
    text, facts = target.read_text(encoding="utf-8"), target.stat()
    target.write_text(mutated(text, mutant), encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": f"{slot / 'src'}{os.pathsep}{slot}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        "NUMBA_CACHE_DIR": str(slot / "numba"),
        "PYTHONDONTWRITEBYTECODE": "1",
        **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")},
    }
    try:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests],
            cwd=slot,
            env=environment,
            timeout=SECONDS,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return "killed" if run.returncode else "survived"
    except subprocess.TimeoutExpired:
        return "killed"
    finally:
        target.write_text(text, encoding="utf-8")
        os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # compiled kernels stay valid


def changed_since(commit: str) -> list[Path]:
    """Return the source files that differ from a commit."""
    listed = subprocess.run(
        ["git", "diff", "--name-only", "--diff-filter=d", commit, "--", "src/nonneg"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.split() if name.endswith(".py")]


def main(words: list[str] | None = None) -> int:
    """Run a sample of mutants and print what became of them, by layer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sample", type=int, default=200, metavar="N", help="number of mutants (default 200)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", default="tests", metavar="FOLDER", help="tests to use (default: all)")
    parser.add_argument("--since", metavar="COMMIT", help="only files that changed since a commit")
    parser.add_argument("--minutes", type=float, default=60.0, help="start no mutant after that many minutes")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default 2)")
    parser.add_argument("--out", type=Path, help="write the results as JSON lines")
    options = parser.parse_args(words)
    started = time.monotonic()
    sources = sorted(path for path in SOURCE.rglob("*.py") if "triton" not in path.name)
    known = KEPT / "tests.json"
    if not known.is_file() or known.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        print("running the suite once, to see which tests execute which line", flush=True)
        watch_suite(options.jobs, options.tests)
    kept = json.loads(known.read_text())
    slots: SimpleQueue[Path] = SimpleQueue()
    for at in range(options.jobs):
        slot = KEPT / f"slot-{at}"
        shutil.rmtree(slot, ignore_errors=True)
        slot.mkdir()
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, slot / name)
        slots.put(slot)
    chosen = sampled(changed_since(options.since) if options.since else sources, options.sample, options.seed)
    outcomes: dict[Mutant, str] = {}

    def judge(mutant: Mutant) -> None:
        if time.monotonic() - started > 60 * options.minutes:
            return
        slot = slots.get()
        try:
            outcomes[mutant] = run_mutant(mutant, slot, tests_of(mutant, kept))
        finally:
            slots.put(slot)
        if outcomes[mutant] != "killed":
            print(f"{outcomes[mutant]}: {mutant}", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(judge, chosen))
    layers: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant, outcome in outcomes.items():
        layers[mutant.path.split("/")[2]][outcome] += 1
        layers["all"][outcome] += 1
    print("| layer | mutants | killed | survived | not executed |\n|---|--:|--:|--:|--:|")
    for layer, counts in sorted(layers.items(), key=lambda entry: (entry[0] == "all", entry[0])):
        numbers = (counts.total(), counts["killed"], counts["survived"], counts["not executed"])
        print(f"| {layer} | " + " | ".join(map(str, numbers)) + " |")
    if options.out:
        options.out.write_text(
            "".join(
                json.dumps({"mutant": str(mutant), "outcome": outcome}) + "\n"
                for mutant, outcome in outcomes.items()
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
