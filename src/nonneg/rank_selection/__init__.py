"""Estimates of the rank, the number of components."""
