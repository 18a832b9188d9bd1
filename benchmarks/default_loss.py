"""Claim: default fits take at most 10% and 20 ms longer than scikit-learn's and end at most 0.1% higher."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import cases
from benchmarks.race import Settings
from benchmarks.records import latest
from benchmarks.score import score
from benchmarks.tables import markdown, number

NAME = "default_loss"
TITLE = "Loss and time of default fits and of scikit-learn's"
ABOVE = 1e-3
LONGER, SECONDS = 0.1, 0.02
# Fits that take less than this many seconds are repeated, in turns; the median counts.
SHORT, REPEATS = 3.0, 5

FROBENIUS = (
    cases.DIGITS, cases.MUTATIONS, cases.STORIES, cases.LOW_RANK, cases.OBJECTS, cases.CBCL, cases.FACES,
    cases.SCENE, cases.CELLS, cases.TEXT, cases.CONES,
)  # fmt: skip
COUNTS = (cases.DIGITS, cases.COUNTS, cases.TALL_COUNTS, cases.TEXT_COUNTS)
FITS = {f"frobenius {case.name}": ("frobenius", case) for case in FROBENIUS}
FITS |= {f"kullback-leibler {case.name}": ("kullback-leibler", case) for case in COUNTS}
FITS |= {f"itakura-saito {cases.POSITIVE.name}": ("itakura-saito", cases.POSITIVE)}


def run(settings: Settings) -> Iterator[dict[str, Any]]:
    """Fit with the defaults of both, `random_state=0`, and score both in float64."""
    import sklearn.decomposition

    from nonneg import NMF

    for name in settings.named(FITS):
        loss, case = FITS[name]
        if settings.quick and not case.quick:
            continue
        X, source = case.load(np.dtype("float64"))
        # Multiplicative updates are all that scikit-learn has for other losses than Frobenius.
        choice = {} if loss == "frobenius" else {"beta_loss": loss, "solver": "mu"}
        ours = {} if loss == "frobenius" else {"beta_loss": loss}
        models = (
            sklearn.decomposition.NMF(case.n_components, random_state=0, **choice),
            NMF(case.n_components, random_state=0, n_jobs=settings.threads, **ours),
        )
        NMF(case.n_components, max_iter=2, tol=0, n_jobs=settings.threads, **ours).fit(X)  # compiles
        repeated: list[list[float]] = [[], []]
        losses = [0.0, 0.0]
        while not repeated[0] or (len(repeated[0]) < REPEATS and sum(repeated[0]) < SHORT):
            for i, model in enumerate(models):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # neither warns in the table
                    started = time.perf_counter()
                    W = model.fit_transform(X)
                repeated[i].append(time.perf_counter() - started)
                losses[i] = score(X, W, model.components_, loss)
        taken = [float(np.median(each)) for each in repeated]
        above = losses[1] / losses[0] - 1
        yield {
            "claim": NAME, "case": name, "threads": settings.threads, "source": source, "losses": losses,
            "times": taken, "above": above, "certificate": models[1].certificate_["stationarity"].badge,
            "ratio": taken[1] / taken[0],
            "met": above <= ABOVE and taken[1] <= (1 + LONGER) * taken[0] + SECONDS,
        }  # fmt: skip


def table(records: list[dict[str, Any]]) -> str:
    """Return the table of the records."""
    head = ("fit", "scikit-learn's loss", "ours", "difference", "target", "certificate",
            "scikit-learn's s", "our s")  # fmt: skip
    rows = []
    for r in latest(records, "case", "threads"):
        losses, times = ([number(value, n) for value in r[key]] for key, n in (("losses", 7), ("times", 3)))
        verdict = "met" if r["met"] else "missed"
        rows.append([r["case"], *losses, f"{r['above']:+.3%}", verdict, str(r["certificate"]), *times])
    return (
        'Both with their defaults and `random_state=0`; `solver="mu"` for scikit-learn where the loss is not '
        f"Frobenius. Our loss may be {ABOVE:.1%} higher, our time {LONGER:.0%} and "
        f"{1000 * SECONDS:.0f} ms longer. The certificate is that of stationarity.\n\n" + markdown(head, rows)
    )
