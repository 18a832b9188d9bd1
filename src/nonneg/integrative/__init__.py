"""Integrative NMF: several data sets with the same features, shared and data-set-specific components."""
