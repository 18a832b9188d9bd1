"""
In a scikit-learn pipeline
==========================

`NMF` as a step before a classifier, with the number of components chosen by cross-validation.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from nonneg import NMF

X, y = load_digits(return_X_y=True)
pipeline = make_pipeline(NMF(random_state=0, tol=1e-3), RidgeClassifier())
search = GridSearchCV(pipeline, {"nmf__n_components": [5, 10, 20, 30]}, cv=3).fit(X[:900], y[:900])
print(search.best_params_, f"accuracy on the other half: {search.score(X[900:], y[900:]):.3f}")

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
results = search.cv_results_
candidates, scores = results["param_nmf__n_components"], results["mean_test_score"]
axes.errorbar(candidates, scores, results["std_test_score"], marker="o", capsize=3)
axes.set_xlabel("components")
axes.set_ylabel("cross-validated accuracy")
plt.show()
