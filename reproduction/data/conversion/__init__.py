"""Converters from the files of the sources to the stored arrays, one module per format."""
