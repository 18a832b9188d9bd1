"""One-line mutants of the library, and the tests that catch them: `make mutants`.

First the suite runs once with coverage, which says for every line the tests that execute it (kept in
.mutants/ until a source file changes). Each sampled mutant then runs those tests in a copy of the tree, those
of its own module first, and if they pass the tests in the folder of its layer.
Tuning constants are spared, which no fact fixes: floats, integers above 2 that are added, multiplied or
compared by size, sizes of blocks (`1 << 20`), products with a constant that has a name, whether a limit like
that is met exactly, and what chooses the number of threads and the pieces that they take (`operations=`,
`chunk_size=`, comparisons with `team_size`). So are texts, Triton kernels, sizes of figures, lines and
letters, and arguments that only ask for a copy or a check.
A test kills a mutant only if it passes in the same copy of the tree without it.
"""

from __future__ import annotations

import argparse
import ast
import functools
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from tests.mutants.changes import ROOT, Mutant, mutated, recorded, sampled
from tests.mutants.watch import KEPT, SOURCE, chosen_tests, dotted, keep_tests, own_tests

from nonneg import _core

COPIED = ("src", "tests", "benchmarks", "reproduction", "docs", "examples", "pyproject.toml", "README.md")
DECLARATIONS = ("tests/contracts/test_documented_defaults.py", "tests/contracts/test_frozen_results.py")
TEST_SECONDS = 60.0  # that tests of a line take together, those of its module and the others
LAYER_SECONDS = 20.0  # that tests of its layer take together
SECONDS = 60.0  # more than its tests need, for a mutant: an endless loop was caught
TIME_LIMIT, CRASH = "the time limit", "a crash"
SERVERS: dict[Path, subprocess.Popen[str]] = {}
SOUND: dict[str, bool] = {}  # whether a test passes in an unchanged copy of the tree


def watch_suite(n_jobs: int, folder: str) -> None:
    """Run the suite once and keep the tests of every line in .mutants/tests.json."""
    shutil.rmtree(KEPT, ignore_errors=True)
    KEPT.mkdir()
    words = (
        f"-m pytest -q -p tests.mutants.watch -n {n_jobs} --dist worksteal --ignore=tests/repository {folder}"
    )
    subprocess.run([sys.executable, *words.split()], cwd=ROOT, check=False)
    keep_tests()


def copy_of_the_tree(slot: Path) -> None:
    """Copy the tree, with the compiled modules beside the sources that import them."""
    shutil.rmtree(slot, ignore_errors=True)
    slot.mkdir()
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, slot / name)
    for suffix in EXTENSION_SUFFIXES:
        for module in Path(_core.__file__).parent.glob(f"*{suffix}"):
            shutil.copy2(module, slot / "src" / "nonneg")


@functools.cache
def imported_by() -> dict[str, set[str]]:
    """Return for every source file those that import it by name, and itself."""
    found: dict[str, set[str]] = defaultdict(set)
    names = {dotted(path): path.relative_to(ROOT).as_posix() for path in SOURCE.rglob("*.py")}
    for name, path in names.items():
        found[path].add(path)
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                words = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                words = [alias.name for alias in node.names]
            else:
                continue
            for word in words:
                if word in names and word != name:
                    found[names[word]].add(path)
    return found


def tests_of(mutant: Mutant, kept: dict[str, Any]) -> list[int]:
    """Return the tests that execute the statement of a mutant, quickest first."""
    each = kept["lines"].get(mutant.path, {})
    return sorted({test for line in statement_lines(mutant) for test in each.get(str(line), [])})


def statement_lines(mutant: Mutant) -> Iterable[int]:
    """Return the lines of the statement of a mutant; of a signature, those of the function."""
    inner: ast.stmt | None = None
    for node in ast.walk(_tree(mutant.path)):  # from the outermost to the innermost
        if isinstance(node, ast.stmt) and node.lineno <= mutant.line <= (node.end_lineno or 0):
            inner = node
    if inner is None:  # a decorator
        return ()
    body = getattr(inner, "body", None)
    if body is None or isinstance(inner, ast.FunctionDef):
        return range(inner.lineno, (inner.end_lineno or 0) + 1)
    return range(inner.lineno, max(inner.lineno + 1, body[0].lineno))


@functools.cache
def _tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def tests_near(mutant: Mutant, kept: dict[str, Any]) -> list[int]:
    """Return tests of a line that no test was seen to execute: at import, or in another process."""
    each = kept["lines"].get(mutant.path, {})
    found = {test for tests in each.values() for test in tests}
    for path in () if each else imported_by()[mutant.path]:
        found |= {test for tests in kept["lines"].get(path, {}).values() for test in tests}
    own = own_tests(mutant.path)
    found |= {at for at, name in enumerate(kept["tests"]) if name.partition("::")[0] in own}
    names = {kept["tests"][at]: at for at in sorted(found)}
    near = [names[name] for name in chosen_tests(names, str(ROOT / mutant.path))]
    return near + [at for at, name in enumerate(kept["tests"]) if name.startswith(DECLARATIONS)]


def tests_of_layer(mutant: Mutant, kept: dict[str, Any]) -> list[int]:
    """Return the tests of the layer of a mutant."""
    _, _, layer, *inner = Path(mutant.path).with_suffix("").parts
    folder = f"tests/{layer}/" if inner else f"tests/test_{layer.strip('_')}.py"
    return [at for at, name in enumerate(kept["tests"]) if name.startswith(folder)]


def _quick(tests: Iterable[int], kept: dict[str, Any], left: float) -> Iterator[int]:
    """Yield the first of some tests, as many as there are seconds left for."""
    for test in tests:
        left -= kept["seconds"][test]
        if left > 0.0:
            yield test


def run_mutant(mutant: Mutant, slot: Path, kept: dict[str, Any]) -> dict[str, str]:
    """Return whether it was killed, survived or was not executed, and the test that killed it."""
    first = tests_of(mutant, kept)
    seen = bool(first) or not in_function(mutant)
    files, first = own_tests(mutant.path), first or tests_near(mutant, kept)
    own = [at for at in first if kept["tests"][at].partition("::")[0] in files]
    others = sorted(set(first) - set(own))
    layer = [at for at in tests_of_layer(mutant, kept) if at not in first]
    for chosen in (
        list(_quick(tests, kept, seconds))
        for tests, seconds in ((own, TEST_SECONDS), (others, TEST_SECONDS), (layer, LAYER_SECONDS))
    ):
        while chosen:
            with changed(mutant, slot) as environment:
                test = _failing(chosen, kept, slot, environment)
            if test is None:
                break
            if passes_unchanged(test, chosen, kept, slot):
                return {"outcome": "killed", "by": test}
            chosen = [at for at in chosen if test != CRASH and not kept["tests"][at].startswith(test)]
    return {"outcome": "survived" if seen else "not executed"}


def in_function(mutant: Mutant) -> bool:
    """Tell whether the line of a mutant is in the body of a function."""
    return any(
        isinstance(node, ast.FunctionDef) and node.body[0].lineno <= mutant.line <= (node.end_lineno or 0)
        for node in ast.walk(_tree(mutant.path))
    )


def passes_unchanged(test: str, chosen: list[int], kept: dict[str, Any], slot: Path) -> bool:
    """Tell whether what failed, a test or the import of a file of tests, passes without the mutant."""
    if test == TIME_LIMIT:
        return True
    plain = environment_of(slot)
    if test == CRASH:
        return _failing(chosen, kept, slot, plain) is None
    if test not in SOUND:
        these = [at for at in chosen if kept["tests"][at].startswith(test)]
        SOUND[test] = _failing(these[:1], kept, slot, plain) is None
    return SOUND[test]


def environment_of(slot: Path) -> dict[str, str]:
    """Return the environment of tests in a copy of the tree."""
    return {
        "PYTHONPATH": f"{slot / 'src'}{os.pathsep}{slot}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        "PYTHONDONTWRITEBYTECODE": "1",
        **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")},
    }


@contextmanager
def changed(mutant: Mutant, slot: Path) -> Iterator[dict[str, str]]:
    """Put a mutant into a copy of the tree for a while, and yield the environment of its tests."""
    target = slot / mutant.path
    text = target.read_text(encoding="utf-8")
    target.write_text(mutated(text, mutant), encoding="utf-8")
    try:
        yield environment_of(slot)
    finally:
        target.write_text(text, encoding="utf-8")


def _failing(chosen: list[int], kept: dict[str, Any], slot: Path, environment: dict[str, str]) -> str | None:
    """Run tests in a fork of the slot's server, which is started when it is needed and has imported much."""
    failed = slot / "failed.txt"
    failed.unlink(missing_ok=True)
    if slot not in SERVERS:
        SERVERS[slot] = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | environment,
        )
    server = SERVERS[slot]
    assert server.stdin is not None
    assert server.stdout is not None
    request = {
        "folder": str(slot),
        "environment": environment,
        "tests": [kept["tests"][at] for at in chosen],
        "seconds": SECONDS + 3.0 * sum(kept["seconds"][at] for at in chosen),
    }
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    exits, code = pytest.ExitCode, int(server.stdout.readline())
    if code in (exits.OK, exits.USAGE_ERROR, exits.NO_TESTS_COLLECTED):
        return None
    return failed.read_text() if failed.is_file() else TIME_LIMIT if code == -1 else CRASH


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


def by_layer(records: list[dict[str, Any]]) -> str:
    """Return a table of the outcomes in Markdown."""
    layers: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        for layer in (record["path"].split("/")[2], "all"):
            layers[layer][record["outcome"]] += 1
    lines = ["| layer | mutants | killed | survived | not executed |", "|---|--:|--:|--:|--:|"]
    for layer, counts in sorted(layers.items(), key=lambda entry: (entry[0] == "all", entry[0])):
        numbers = (counts.total(), counts["killed"], counts["survived"], counts["not executed"])
        lines.append(f"| {layer} | " + " | ".join(map(str, numbers)) + " |")
    return "\n".join(lines)


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
    parser.add_argument("--again", type=Path, metavar="FILE", help="only those not killed in earlier results")
    parser.add_argument("--out", type=Path, help="append the results as JSON lines")
    options = parser.parse_args(words)
    started = time.monotonic()
    sources = sorted(path for path in SOURCE.rglob("*.py") if "triton.jit" not in path.read_text())
    known = KEPT / "tests.json"
    if not known.is_file() or known.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        print("running the suite once, to see which tests execute which line", flush=True)
        watch_suite(options.jobs, options.tests)
    kept = json.loads(known.read_text())
    slots: SimpleQueue[Path] = SimpleQueue()
    for at in range(options.jobs):
        slot = KEPT / f"slot-{at}"
        copy_of_the_tree(slot)
        slots.put(slot)
    if options.again:
        earlier = [json.loads(line) for line in options.again.read_text().splitlines()]
        chosen = recorded([record for record in earlier if record["outcome"] != "killed"])
    else:
        files = changed_since(options.since) if options.since else sources
        chosen = sampled(files, options.sample, options.seed)
    results: list[dict[str, Any]] = []

    def judge(mutant: Mutant) -> None:
        if time.monotonic() - started > 60 * options.minutes:
            return
        slot = slots.get()
        try:
            result = mutant.record | run_mutant(mutant, slot, kept)
        finally:
            slots.put(slot)
        results.append(result)
        if result["outcome"] != "killed":
            print(f"{result['outcome']}: {mutant}", flush=True)
        if options.out:
            with options.out.open("a") as stream:
                stream.write(json.dumps(result) + "\n")

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(judge, chosen))
    for server in SERVERS.values():
        server.communicate()
    print(by_layer(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
