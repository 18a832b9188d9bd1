"""Report on a run: records, tables, figures and one self-contained page."""
