"""Readers of what users have on disk: one module per format, each returning a table."""

from nonneg.io.read import known_suffixes, read_table
from nonneg.io.table import Table

__all__ = ["Table", "known_suffixes", "read_table"]
