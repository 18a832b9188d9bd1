"""`nonneg report DIR`: write the report of an earlier fit again."""

from __future__ import annotations

import argparse
from pathlib import Path

from nonneg.cli import terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder that `nonneg fit -o DIR` wrote")


def run(options: argparse.Namespace) -> int:
    """Read the results and write report.html beside them."""
    from nonneg.cli.result_files import REPORT
    from nonneg.cli.results import read_results
    from nonneg.report.folder import replaced_folder
    from nonneg.report.page import build_page

    text = build_page(read_results(options.folder))
    with replaced_folder(options.folder) as fresh:
        (fresh / REPORT).write_text(text, encoding="utf-8")
    terminal.say(str(options.folder / REPORT))
    return 0
