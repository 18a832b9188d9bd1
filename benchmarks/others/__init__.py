"""Benchmarks that others designed: their data, protocol and scores."""
