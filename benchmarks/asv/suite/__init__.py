"""Benchmarks for asv, in the form of scikit-learn's own suite."""
