"""
What a certificate says
=======================

A fit is stationary when its KKT residual is small: no small change of the factors lowers the loss. How much a
better factorization could gain is another question, which the Eckart-Young lower bound answers.
"""

from __future__ import annotations

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from nonneg import NMF

X = load_digits().data

# %%
# Stationarity
# ------------
# A run that is stopped early fails the check; the default runs until it passes.

limits = [2, 5, 10, 20, 40, 80, 160]
residuals = []
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # they say what the curve shows
    for limit in limits:
        short = NMF(n_components=16, max_iter=limit, tol=1e-12, random_state=0).fit(X)
        residuals.append(short.certificate_["stationarity"].number)
threshold = short.certificate_["stationarity"].threshold

# %%
# Distance from the lower bound
# -----------------------------
# No factorization of the same rank, nonnegative or not, has a smaller error than the bound.

ranks = [2, 4, 8, 16, 32]
errors, bounds = [], []
for rank in ranks:
    statement = NMF(n_components=rank, random_state=0).fit(X).certify(X)["eckart-young-bound"]
    errors.append(statement.quantities["relative_error"])
    bounds.append(statement.quantities["lower_bound"])
print(statement)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.loglog(limits, residuals, marker="o")
left.axhline(threshold, linestyle="--", color="gray")
left.annotate("holds below this line", (limits[0], threshold), textcoords="offset points", xytext=(0, -12))
left.set_xlabel("iterations")
left.set_ylabel("normalized KKT residual")
right.plot(ranks, errors, marker="o", label="NMF")
right.plot(ranks, bounds, marker="o", linestyle="--", color="gray", label="Eckart-Young lower bound")
right.set_xlabel("number of components")
right.set_ylabel("relative error")
right.legend()
plt.show()
