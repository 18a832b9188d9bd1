"""Readers of what users have on disk: one module per format, each returning a table."""

from nonneg.io.read import FORMATS, read_table
from nonneg.io.table import Table

__all__ = ["FORMATS", "Table", "read_table"]
