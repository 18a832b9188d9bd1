"""Estimators with scikit-learn's interface, one per module."""
