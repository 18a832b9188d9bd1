"""Options of the command line that several commands share, and their values."""

from __future__ import annotations

import argparse
import math
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nonneg.exceptions import OutputError


def positive_number(text: str) -> float:
    """Read a number above zero."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return number


def count(text: str, least: int = 1) -> int:
    """Read an integer of at least 1."""
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"expected an integer of at least {least}, got {text!r}")
    return int(text)


def or_auto(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return what reads "auto", too."""
    return lambda text: text if text == "auto" else kind(text)


def seed(text: str) -> int:
    """Read what NumPy's generators take."""
    if not text.isdecimal() or int(text) >= 1 << 32:
        raise argparse.ArgumentTypeError(f"expected an integer from 0 to {(1 << 32) - 1}, got {text!r}")
    return int(text)


def numbers(text: str) -> int | list[int]:
    """Read a number, a range that includes its end or a list to choose from."""
    try:
        listed = [int(part) for part in re.split("[:,]", text)]
        if ":" in text:
            first, last, step = (*listed, 1)[:3]
            listed = list(range(first, last + 1, step))
    except ValueError:
        listed = []
    if not listed or min(listed) < 1:
        raise argparse.ArgumentTypeError(
            f"expected an integer of at least 1, a range such as 5:15 or a list such as 5,7,9, got {text!r}"
        )
    return listed[0] if len(listed) == 1 else listed


def named_counts(text: str) -> tuple[str, list[int]]:
    """Read a name and positive integers."""
    name, sign, listed = text.partition("=")
    if not sign or not name.strip():
        raise argparse.ArgumentTypeError(f"expected a name and numbers such as drums=1,3,5, got {text!r}")
    places = numbers(listed)
    return name.strip(), [places] if isinstance(places, int) else places


def image_shape(text: str) -> tuple[int, int]:
    """Read the shape of an image."""
    match = re.fullmatch(r"([1-9]\d*)[xX,]([1-9]\d*)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected rows and columns such as 8x8, got {text!r}")
    return int(match[1]), int(match[2])


_VALUES: dict[str, Any] = {
    "N": count,
    "I": int,
    "K": or_auto(count),
    "RANGE": numbers,
    "X": float,
    "P": positive_number,
    "SEED": seed,
    **dict.fromkeys(("DIR", "FILE", "FILES", "MODEL", "EDGES"), Path),
}
"""Kinds of values, by the word that stands for them in the help."""
_COMMON = {
    "--seed": "--seed SEED [0]: random seed (default: 0)",
    "--n-jobs": "--n-jobs I: number of threads (default: all cores)",
    "--max-iter": "--max-iter N: maximum number of iterations",
    "--tol": "--tol X: tolerance of the stopping rule",
    "--checkpoint": "--checkpoint DIR: save progress there, and resume an interrupted run",
    "--device": (
        "--device NAME: cuda (or cuda:1, ...): compute there; auto: use a GPU if it is faster "
        "(default: the CPU)"
    ),
    "--uncertainty": "--uncertainty FILE: standard deviation of every entry, a table like the first file",
    "--missing": "--missing error|mask: mask: ignore NaN and empty cells",
}
"""Options that mean the same in several commands, which name them only."""
_WORDS = re.compile(r"(?P<flags>\S+)(?: (?P<value>\S+?)(?P<several>[+*?]?))?(?: \[(?P<default>\S+)\])?")


def declare(parser: argparse.ArgumentParser, text: str, kinds: Mapping[str, Any]) -> None:
    """Declare options by the text that explains them: a line for each, and lines that begin with spaces.

    "[model]" begins a group. "-k/--components K [auto]: number ..." takes a value and has a default, "--kind
    a|b: ..." takes one of several, "--drop NAME+: ..." may be repeated, "--quiet: ..." takes none, and
    "--[no-]header: ..." is yes, no or None. `kinds` has the type of a value, or further words for argparse.
    """
    group: Any = parser
    for entry in re.split(r"\n+(?! )", text.strip()):
        if entry.startswith("["):
            title, _, about = entry.strip("[]").partition("; ")
            group = parser.add_argument_group(title, about or None)
            continue
        entry = _COMMON.get(entry, entry)
        words, _, explanation = " ".join(entry.split()).partition(": ")
        match = _WORDS.fullmatch(words)
        assert match is not None, words
        flags, value, several, default = match["flags"], match["value"], match["several"], match["default"]
        names = flags.replace("[no-]", "").split("/")
        more: dict[str, Any] = {}
        if value and "|" in value:
            more["choices"] = value.split("|")
        elif value:
            more |= {"metavar": value, "type": _VALUES.get(value, str)}
        elif "[no-]" in flags:
            more |= {"action": argparse.BooleanOptionalAction, "default": None}
        else:
            more["action"] = "store_true"
        if several and flags.startswith("-"):
            more["action"] = "append"
        elif several:
            more["nargs"] = several
        kind = kinds.get(names[-1].lstrip("-").replace("-", "_"), {})
        more |= kind if isinstance(kind, dict) else {"type": kind}
        if default is not None:
            more["default"] = more.get("type", str)(default)
        group.add_argument(*names, help=explanation.replace("%", "%%"), **more)


def chosen(options: argparse.Namespace, *names: str, **renamed: str) -> dict[str, Any]:
    """Collect what the user said, by the names of the estimator; its defaults stand for the rest."""
    both = dict(zip(names, names, strict=True)) | renamed
    values = {name: getattr(options, option) for name, option in both.items()}
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in values.items()
        if value is not None
    }


def parameters(options: argparse.Namespace, *names: str, **renamed: str) -> dict[str, Any]:
    """Collect what the user said, with the seed, the threads and the progress that all estimators know."""
    params = chosen(options, "n_jobs", *names, random_state="seed", **renamed)
    return params | {"verbose": int(not options.quiet)}


def output_folder(options: argparse.Namespace, source: str | Path, suffix: str) -> Path:
    """Return the folder of the results, after a check that they can be written there."""
    folder = options.output or Path(f"{Path(source).absolute().name.split('.')[0]}-{suffix}")
    check_output_folder(folder)
    return folder


def number_or_name(text: str) -> float | str:
    """Read a number, or a name."""
    try:
        return float(text)
    except ValueError:
        return text


def check_output_folder(folder: str | os.PathLike[str]) -> None:
    """Make sure before a long run that its results can be written."""
    place = Path(folder).absolute()
    existing = next(path for path in (place, *place.parents) if path.exists())
    if not existing.is_dir():
        raise OutputError(
            f"{existing} is a file; expected a folder for the results. Choose another one with -o."
        )
    for needed in {existing, place.parent if existing == place else existing}:
        try:
            # Rights alone do not tell: a file system may be mounted for reading, or make no folders.
            Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=needed)).rmdir()
        except OSError as error:
            raise OutputError(
                f"{needed} is not writable: {error.strerror}. Choose another folder with -o."
            ) from None
