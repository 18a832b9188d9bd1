"""What a person reads after a run: records, tables, figures and one self-contained page."""
