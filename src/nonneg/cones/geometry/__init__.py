"""Circular cones around clusters: smallest ones, separation, bounds and predictions."""
