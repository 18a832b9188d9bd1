"""`nonneg report DIR`: write the report of an earlier run again."""

from __future__ import annotations

import argparse

from nonneg.cli import terminal
from nonneg.exceptions import FileFormatError

OPTIONS = """
folder DIR: the folder that a command wrote with -o DIR
"""


def run(options: argparse.Namespace) -> None:
    """Read the results and write report.html beside them."""
    from nonneg.report.page import build_page
    from nonneg.report.record import REPORT, RESULT, clean, read_record, replaced_folder

    folder = options.folder
    if not (folder / RESULT).is_file():
        raise FileFormatError(
            f"{folder} contains no {RESULT}. Give the folder that a command such as `nonneg fit -o` wrote."
        )
    record = read_record(folder / RESULT)
    if not record.sections:
        raise FileFormatError(f"There is no report of `nonneg {record.command}`.")
    try:
        page = build_page(record)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise FileFormatError(
            f"{folder / RESULT} is damaged ({error!r}). Run `nonneg {record.command}` again."
        ) from error
    with replaced_folder(folder) as fresh:
        (fresh / REPORT).write_text(clean(page), encoding="utf-8")
    terminal.outcome.files = [folder / REPORT]
    terminal.say(str(folder / REPORT))
