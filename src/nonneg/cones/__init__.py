"""Cones (cr1-nmf): clustering by cones, an initialization for any NMF, error bounds, and their geometry."""
