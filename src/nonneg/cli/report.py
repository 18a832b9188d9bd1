"""`nonneg report DIR`: write the report of an earlier run again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from nonneg.cli import terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "folder", type=Path, metavar="DIR", help="the folder that a command wrote with -o DIR"
    )


def run(options: argparse.Namespace) -> int:
    """Read the results and write report.html beside them."""
    from nonneg.cli.results import REPORT, RESULT, write_report
    from nonneg.exceptions import FileFormatError
    from nonneg.report.records import read_run

    folder = options.folder
    hint = "Give the folder that a command such as `nonneg fit -o` wrote."
    if not folder.is_dir():
        raise FileFormatError(f"{folder} is not a folder. {hint}")
    if not (folder / RESULT).is_file():
        raise FileFormatError(f"{folder} contains no {RESULT}. {hint}")
    record = read_run(folder / RESULT)
    pages = {
        "fit": _fit, "rank": _rank, "anchors": _anchors, "topics": _topics, "communities": _communities,
        "consensus": _consensus, "signatures": _consensus,
    }  # fmt: skip
    command = record["command"]
    if command not in pages:
        raise FileFormatError(
            f"{folder} contains results of `nonneg {command}`, whose report cannot be made from them alone. "
            "Run it again with its data."
        )
    write_report(folder, pages[command](folder, record))
    terminal.outcome.files = [folder / REPORT]
    terminal.say(str(folder / REPORT))
    return 0


def _fit(folder: Path, record: dict[str, Any]) -> str:
    from nonneg.cli.fit_results import read_fit
    from nonneg.report.page import build_page

    return build_page(read_fit(folder, record))


def _rank(folder: Path, record: dict[str, Any]) -> str:
    from nonneg.report.rank_page import build_rank_page

    return build_rank_page(record)


def _anchors(folder: Path, record: dict[str, Any]) -> str:
    from nonneg.cli.fit_results import read_fit
    from nonneg.report.anchor_page import build_anchor_page

    found = read_fit(folder, record | {"examples": None})
    return build_anchor_page(record, found.W, found.row_names)


def _topics(folder: Path, record: dict[str, Any]) -> str:
    from nonneg.report.topic_page import build_topic_page

    return build_topic_page(record)


def _communities(folder: Path, record: dict[str, Any]) -> str:
    import nonneg
    from nonneg.cli.results import MODEL
    from nonneg.report.community_page import build_community_page

    return build_community_page(record, nonneg.load(folder / MODEL))


def _consensus(folder: Path, record: dict[str, Any]) -> str:
    from nonneg.applications.signatures import CHANNELS
    from nonneg.report.consensus_page import build_consensus_page

    return build_consensus_page(record, CHANNELS)
