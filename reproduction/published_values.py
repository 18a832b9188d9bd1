"""Published values of the papers, as data."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from nonneg.exceptions import UnknownNameError

PAPERS = ("cr1_nmf", "merit", "purification", "tlnmf")


@cache
def _text(paper: str) -> str:
    return resources.files("reproduction").joinpath("published", f"{paper}.json").read_text("utf-8")


def published_values(paper: str) -> dict[str, Any]:
    """Return the published values of a paper."""
    if paper not in PAPERS:
        raise UnknownNameError.of("paper", paper, PAPERS)
    return dict(json.loads(_text(paper)))
