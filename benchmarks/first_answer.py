"""Claim: a new user has an answer within minutes: clone, virtual environment, installation, first result.

Packages are downloaded, or taken from pip's cache, so this runs only if it is named:
``python -m benchmarks --only first_answer --threads 1``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.race import Settings
from benchmarks.records import latest
from benchmarks.tables import markdown, number

NAME = "first_answer"
TITLE = "From a clone to the first answer, in seconds"
STEPS = ("clone", "environment", "installation", "answer")
ROOT = Path(__file__).resolve().parent.parent
BAR = 300.0  # five minutes, downloads included

DIGITS = """
from sklearn.datasets import load_digits
from nonneg import NMF
print(NMF(n_components=16, random_state=0).fit(load_digits().data).certificate_)
"""
WINE = """
from sklearn.datasets import load_wine
wine = load_wine()
lines = [",".join(["kind", *(name.replace(",", " ") for name in wine.feature_names)])]
lines += [",".join(map(str, [kind, *row])) for kind, row in zip(wine.target, wine.data.tolist())]
open("wine.csv", "w").write("\\n".join(lines))
"""
NOTES = """
from nonneg.datasets import load_standard_library
texts = load_standard_library(min_documents=40).extras["texts"]
open("notes.txt", "w", encoding="utf-8").write("\\n".join(" ".join(text.split()) for text in texts[:800]))
"""
CELLS = """
import anndata
from nonneg.datasets import single_cells
anndata.AnnData(single_cells(2000, 500, n_programs=8, rng=0).X).write_h5ad("cells.h5ad")
"""


@dataclass(frozen=True)
class Way:
    """Packages to install, code that writes the data (not timed), and the command that gives the answer."""

    extras: str
    data: str
    answer: tuple[str, ...]


WAYS = {
    "scikit-learn's digits, in Python": Way("", "", ("python", "-c", DIGITS)),
    "a table, on the command line": Way(
        "[report]", WINE, ("nonneg", "fit", "wine.csv", "--label-column", "kind", "--scale", "max", "-k", "3")
    ),
    "texts, on the command line": Way(
        "[report]", NOTES, ("nonneg", "topics", "notes.txt", "--lines", "-k", "8")
    ),
    "an .h5ad file, on the command line": Way(
        "[report,formats,singlecell]",
        CELLS,
        ("nonneg", "fit", "cells.h5ad", "-k", "8", "--loss", "kullback-leibler"),
    ),
}


def run(settings: Settings) -> Iterator[dict[str, Any]]:
    """Time each way in an empty folder, with an empty kernel cache."""
    for case in settings.named(WAYS):
        way = WAYS[case]
        head = {"claim": NAME, "case": case, "threads": settings.threads, "install": f".{way.extras}"}
        try:
            yield head | timed(way)
        except RuntimeError as error:
            yield head | {"failure": str(error)}


def timed(way: Way) -> dict[str, Any]:
    """Return the seconds of every step, and of all."""
    with tempfile.TemporaryDirectory() as folder:
        place, clone = Path(folder), Path(folder) / "clone"
        # What the environment of this process adds would be found before what is installed.
        left_out = ("PYTHONPATH", "NONNEG_DATA", "VIRTUAL_ENV")
        variables = {name: value for name, value in os.environ.items() if name not in left_out}
        variables["PATH"] = os.pathsep.join([str(place / "venv" / "bin"), variables.get("PATH", "")])
        pip = ["python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        commands = {
            "clone": (["git", "clone", "--quiet", f"file://{ROOT}", "clone"], place),
            "environment": ([sys.executable, "-m", "venv", "venv"], place),
            "installation": ([*pip, f".{way.extras}"], clone),
            "answer": (list(way.answer), place),
        }
        seconds = {}
        for step in STEPS:
            words, where = commands[step]
            if step == "answer" and way.data:
                _do(["python", "-c", way.data], place, variables)
            started = time.perf_counter()
            _do(words, where, variables)
            seconds[step] = time.perf_counter() - started
    total = sum(seconds.values())
    return seconds | {"seconds": total, "bar": BAR, "met": total <= BAR}


def _do(words: list[str], where: Path, variables: dict[str, str]) -> None:
    """Run a command; if it fails, its last line is the reason."""
    # `python` is that of the new environment, which the search path of this process does not have.
    found = Path(variables["PATH"].partition(os.pathsep)[0]) / words[0]
    words = [str(found) if found.exists() else words[0], *words[1:]]
    done = subprocess.run(words, cwd=where, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"{Path(words[0]).name}: {last}")


def table(records: list[dict[str, Any]]) -> str:
    """Return the table of the records."""
    rows = []
    for record in latest(records, "case"):
        if "failure" in record:
            cells = [f"failed: {record['failure']}", *["-"] * len(STEPS)]
        else:
            cells = [number(record[step]) for step in (*STEPS, "seconds")]
        rows.append([record["case"], f"pip install '{record['install']}'", *cells])
    return markdown(("who", "installed by", *STEPS, "together"), rows)
