"""All that the command line writes: results on standard output, everything else on standard error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def say(text: str) -> None:
    """Write a line of the result."""
    try:
        sys.stdout.write(text + "\n")
    except UnicodeEncodeError:
        # A terminal or a pipe in an old encoding: what it cannot show must not cost the results.
        encoding = sys.stdout.encoding
        plain = text.replace("\N{NARROW NO-BREAK SPACE}", " ")
        sys.stdout.write(plain.encode(encoding, "replace").decode(encoding) + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """Write a line that is not part of the result: what happens, or what went wrong."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show warnings to users as one line each, without file names and source lines."""

    def show(message: Warning | str, category: type[Warning], *details: Any, **more: Any) -> None:
        note(f"note: {' '.join(str(message).split())}")

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield
