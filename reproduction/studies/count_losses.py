"""Overdispersed counts: are negative binomial and generalized Poisson losses better than Kullback-Leibler?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning

from nonneg import NMF
from nonneg._typing import FloatArray
from nonneg.metrics import match_components
from reproduction import data as datasets
from reproduction.artifacts import Artifact, Measured, Paragraph, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES

NAME = "studies/count-losses"
N_DRAWS, HELD_OUT, N_ITER = 3, 0.1, 300
DISPERSIONS = (0.0, 0.2, 1.0)
KL, NB, GP = "Kullback-Leibler (Poisson)", "negative binomial", "generalized Poisson"
# Grids on which the parameter of a distribution is fitted to the training entries.
PHI, LAM = np.logspace(-4, 1, 31), np.linspace(0.0, 0.9, 37)
# A mean of zero where a count is held out has likelihood zero: all means are at least this part of the mean
# count of the feature, the same for all losses.
FLOOR = 0.02


@dataclass(frozen=True)
class Counts:
    """Counts, the number of components, and the truth where it is planted."""

    X: FloatArray
    k: int
    H: FloatArray | None = None


def _planted(dispersion: float) -> Callable[[int, bool], Counts]:
    def draw(seed: int, quick: bool) -> Counts:
        n_cells, n_genes = (60, 30) if quick else (500, 150)
        cells = datasets.single_cells(
            n_cells, n_genes, 5, n_activities=1, library_size=600.0, dispersion=dispersion, rng=seed
        )
        return Counts(np.asarray(cells.X.toarray(), dtype=np.float64), 5, cells.H)

    return draw


def _cells(seed: int, quick: bool) -> Counts:
    X = _some_rows(datasets.load_pbmc3k().X, 500, seed)
    mean = X.mean(axis=0)
    variable = np.where(mean > 0.1, X.var(axis=0) / np.maximum(mean, 1e-12), 0.0)
    return Counts(X[:, np.argsort(-variable, kind="stable")[:250]], 8)


def _mutations(seed: int, quick: bool) -> Counts:
    return Counts(_some_rows(datasets.load_brca_sbs96().X, 400, seed), 6)


def _words(seed: int, quick: bool) -> Counts:
    X = _some_rows(datasets.load_cluto("tr11").X, 400, seed)
    return Counts(X[:, np.argsort(-(X > 0).sum(axis=0), kind="stable")[:250]], 9)


def _some_rows(X: Any, n_rows: int, seed: int) -> FloatArray:
    rows = np.random.default_rng(seed).permutation(X.shape[0])[:n_rows]
    X = X[np.sort(rows)]
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


REAL = {"cells (pbmc3k)": _cells, "mutations (BRCA, SBS96)": _mutations, "words (tr11)": _words}
PLANTED = {f"planted, dispersion {value:g}": _planted(value) for value in DISPERSIONS}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return the draws: of cells where they are planted, of rows and held-out entries elsewhere."""
    if quick:
        return [{"data": "planted, dispersion 1", "seed": 0, "quick": True}]
    return [{"data": data, "seed": seed} for data in (*PLANTED, *REAL) for seed in range(N_DRAWS)]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Fit all losses to the training entries of one draw."""
    quick = bool(setting.get("quick"))
    counts = (PLANTED | REAL)[setting["data"]](setting["seed"], quick)
    X = counts.X[counts.X.sum(axis=1) > 0]
    X = X[:, X.sum(axis=0) > 0]
    H_true = None if counts.H is None else counts.H[:, counts.X.sum(axis=0) > 0]
    seen = np.random.default_rng([1, setting["seed"]]).random(X.shape) >= HELD_OUT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = NMF(counts.k, beta_loss="kullback-leibler", max_iter=N_ITER)
        W = model.fit_transform(X, mask=seen)
    # The others begin where it ended, so that none of them has another start or fewer iterations.
    fits = {KL: (W, model.components_, 0.0)}
    n_iter = 20 if quick else N_ITER
    fits[NB] = _negative_binomial(X, seen, W, model.components_, n_iter)
    fits[GP] = _generalized_poisson(X, seen, W, model.components_, n_iter)
    records = []
    for name, (own_W, H, parameter) in fits.items():
        # A generalized Poisson variable with rate theta has the mean theta / (1 - lam).
        means = own_W @ H / (1.0 - parameter if name == GP else 1.0)
        means = np.maximum(means, FLOOR * X.mean(axis=0))
        phi = _fitted(PHI, partial(_nb_log_likelihood, X[seen], means[seen]))
        record = {
            "candidate": name,
            "log_likelihood": round(_nb_log_likelihood(X[~seen], means[~seen], phi), 5),
            "parameter": round(float(parameter), 4),
        }
        if H_true is not None:
            scaled = H / np.maximum(H.sum(axis=1, keepdims=True), 1e-300)
            record["cosine"] = round(float(match_components(H_true, scaled).cosines.mean()), 4)
        records.append(record)
    return records


def _fitted(grid: FloatArray, score: Callable[[float], float]) -> float:
    return float(grid[int(np.argmax([score(float(one)) for one in grid]))])


def _nb_log_likelihood(x: FloatArray, mean: FloatArray, phi: float) -> float:
    """Mean log-likelihood of counts with variance mean + phi mean^2."""
    r = 1.0 / phi
    terms = gammaln(x + r) - gammaln(r) - gammaln(x + 1.0) - r * np.log1p(mean / r)
    return float(np.mean(terms + x * (np.log(mean) - np.log(r + mean))))


def _gp_log_likelihood(x: FloatArray, mean: FloatArray, lam: float) -> float:
    """Mean log-likelihood of Consul's generalized Poisson counts, without the factorials."""
    theta = mean * (1.0 - lam)
    return float(np.mean(np.log(theta) + (x - 1.0) * np.log(theta + lam * x) - theta - lam * x))


def _updated(
    X: FloatArray, seen: FloatArray, W: FloatArray, H: FloatArray, terms: Callable[..., Any]
) -> tuple[FloatArray, FloatArray]:
    """Update both factors by majorization: `terms` are the parts of the derivative, negative and positive."""
    negative, positive = (part * seen for part in terms(X, np.maximum(W @ H, 1e-12)))
    W = W * (negative @ H.T) / np.maximum(positive @ H.T, 1e-300)
    negative, positive = (part * seen for part in terms(X, np.maximum(W @ H, 1e-12)))
    return W, H * (W.T @ negative) / np.maximum(W.T @ positive, 1e-300)


def _nb_terms(X: FloatArray, M: FloatArray, *, r: float) -> tuple[FloatArray, FloatArray]:
    return X / M, (X + r) / (M + r)


def _gp_terms(X: FloatArray, T: FloatArray, *, lam: float) -> tuple[FloatArray, FloatArray]:
    return (X > 0) / T + np.maximum(X - 1, 0) / (T + lam * X), np.ones_like(T)


def _negative_binomial(
    X: FloatArray, seen: FloatArray, W: FloatArray, H: FloatArray, n_iter: int
) -> tuple[FloatArray, FloatArray, float]:
    """Gouvert, Oberlin & Févotte (2018): multiplicative updates; the dispersion is fitted in between."""
    W, H, phi = np.maximum(W, 1e-8), np.maximum(H, 1e-8), 1.0
    for iteration in range(n_iter):
        if iteration % 30 == 0:
            means = np.maximum(W @ H, 1e-12)[seen]
            phi = _fitted(PHI, partial(_nb_log_likelihood, X[seen], means))
        W, H = _updated(X, seen, W, H, partial(_nb_terms, r=1.0 / phi))
    return W, H, phi


def _generalized_poisson(
    X: FloatArray, seen: FloatArray, W: FloatArray, H: FloatArray, n_iter: int
) -> tuple[FloatArray, FloatArray, float]:
    """The same with theta = W H: log(theta) and log(theta + lam x) are majorized by Jensen's inequality."""
    W, H, lam = np.maximum(W, 1e-8), np.maximum(H, 1e-8), 0.0
    for iteration in range(n_iter):
        if iteration % 30 == 0:
            means = np.maximum(W @ H, 1e-12)[seen] / (1.0 - lam)
            new = _fitted(LAM, partial(_gp_log_likelihood, X[seen], means))
            H, lam = H * (1.0 - new) / (1.0 - lam), new
        W, H = _updated(X, seen, W, H, partial(_gp_terms, lam=lam))
    return W, H, lam


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the comparison."""
    shown: list[Artifact] = [
        Paragraph(
            f"{HELD_OUT:.0%} of the entries are held out. The Kullback-Leibler fit is that of `NMF` by "
            f"default; the others continue from it by {N_ITER} majorization steps, with their dispersion "
            "fitted in between. A loss is compared by what its means are worth: the log-likelihood of the "
            "held-out counts under a negative binomial distribution whose dispersion is fitted to the "
            "training entries, the same for all. Nothing was chosen on these data."
        ),
        _table(records, "log_likelihood", "Mean log-likelihood of held-out counts (larger is better)"),
    ]
    planted = [record for record in records if "cosine" in record]
    if planted:
        shown.append(_table(planted, "cosine", "Mean cosine of matched programs with the planted ones"))
    return [*shown, *_verdicts(records)]


def _table(records: Sequence[Record], score: str, title: str) -> Table:
    groups = grouped(records, "data", "candidate")
    rows = []
    for data in dict.fromkeys(record["data"] for record in records):
        row: dict[str, Any] = {"data": data}
        for name in (KL, NB, GP):
            row[name] = Measured(*mean_and_spread([r[score] for r in groups.get((data, name), [])]))
        rows.append(row)
    return Table(f"{title}.", {"data": "data"} | {name: name for name in (KL, NB, GP)}, rows, 4)


def _verdicts(records: Sequence[Record]) -> list[Verdict]:
    verdicts = []
    for kind, data in (("real counts", REAL), ("planted overdispersed counts", list(PLANTED)[1:])):
        for name in (NB, GP):
            wins = {}
            for one in data:
                pairs = [
                    {r["candidate"]: r["log_likelihood"] for r in part}
                    for part in grouped([r for r in records if r["data"] == one], "seed").values()
                ]
                wins[one] = sum(pair[name] > pair[KL] for pair in pairs)
            whole = len({(r["data"], r["seed"]) for r in records}) == N_DRAWS * len(PLANTED | REAL)
            verdicts.append(
                Verdict(
                    f"On {kind}, the {name} loss predicts held-out counts better than Kullback-Leibler",
                    all(2 * count > N_DRAWS for count in wins.values()) if whole else None,
                    ", ".join(f"{one}: in {count} of {N_DRAWS} draws" for one, count in wins.items()),
                )
            )
    return verdicts


EXPERIMENT = Experiment(
    NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize,
    data_sets=("pbmc3k", "brca_sbs96_wgs", "cluto_tr11"), quick_data_sets=(),
)  # fmt: skip
