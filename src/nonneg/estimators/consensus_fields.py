"""What a saved consensus holds of its ranks and restarts."""

from __future__ import annotations

from nonneg.estimators.stored_fields import Fields, StoredArray, Value

RANK_FIELDS: Fields = {
    "n_components": Value(int),
    "spectra": StoredArray("n_components", "n_features_in_", nonnegative=True),
    "stability": StoredArray("n_components"),
    "recurrence": StoredArray("n_components", nonnegative=True),
    "usage": StoredArray("n_components", nonnegative=True),
    "silhouette": Value(float),
    "error": Value(float),
    "cophenetic": Value(float),
    "labels": StoredArray("components of restarts", kind="i"),
    "density": StoredArray("components of restarts"),
    "distances": StoredArray("shown", "shown"),
    "distance_labels": StoredArray("shown", kind="i"),
    "n_restarts": Value(int),
    "n_outliers": Value(int),
    "best_loss": Value(float),
    "draws": StoredArray(
        "complete restarts", "n_components", "n_features_in_", nonnegative=True, optional=True
    ),
}
RESTART_FIELDS: Fields = {
    "n_components": StoredArray("restarts", kind="i"),
    "number": StoredArray("restarts", kind="i"),
    "seed": StoredArray("restarts", kind="u"),
    "loss": StoredArray("restarts"),
    "n_iter": StoredArray("restarts", kind="i"),
    "converged": StoredArray("restarts", kind="b"),
}
