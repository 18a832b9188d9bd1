"""Races of `nonneg` against its peers, one file a claim; ``python -m benchmarks --help`` says how."""
