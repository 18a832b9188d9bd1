"""Readers of what users have on disk: one file a format, one table out of each."""

from nonneg.data.files.read import known_suffixes, read_table
from nonneg.data.files.table import Table

__all__ = ["Table", "known_suffixes", "read_table"]
