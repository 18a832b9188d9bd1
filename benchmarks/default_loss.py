"""Claim: a default fit ends at most 0.1% above scikit-learn's default loss, and its certificate holds."""

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
TITLE = "Loss of default fits and of scikit-learn's"
ABOVE = 1e-3

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
        losses, taken = [], []
        for model in (
            sklearn.decomposition.NMF(case.n_components, random_state=0, **choice),
            NMF(case.n_components, random_state=0, n_jobs=settings.threads, **ours),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # neither warns in the table
                started = time.perf_counter()
                W = model.fit_transform(X)
            taken.append(time.perf_counter() - started)
            losses.append(score(X, W, model.components_, loss))
        above = losses[1] / losses[0] - 1
        yield {
            "claim": NAME, "case": name, "threads": settings.threads, "source": source, "losses": losses,
            "times": taken, "above": above, "certificate": model.certificate_["stationarity"].verdict,
            "ratio": above, "met": above <= ABOVE,
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
        f"Frobenius. Our loss may be {ABOVE:.1%} higher. The certificate is that of stationarity.\n\n"
        + markdown(head, rows)
    )
