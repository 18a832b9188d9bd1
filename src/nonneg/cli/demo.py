"""`nonneg demo`: the default fit of handwritten digits, and a race with scikit-learn."""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

from nonneg.cli import arguments, terminal

FIT: dict[str, Any] = {"n_components": 16, "random_state": 0}
RACE: dict[str, Any] = {**FIT, "init": "nndsvda", "tol": 1e-4, "max_iter": 200}
"""What both libraries are given in the race."""
REPEATS = 3


OPTIONS = """
-o/--output DIR: output folder (default: ./nonneg-demo)
--quiet
"""
"""The options, as the help shows them."""


def run(options: argparse.Namespace) -> int:
    """Factorize the digits of scikit-learn and write a report."""
    from sklearn.datasets import load_digits

    from nonneg._optional import import_optional
    from nonneg.cli import files
    from nonneg.cli.fit import fit_model
    from nonneg.io import Table
    from nonneg.report import fits
    from nonneg.report.quality import observed_relative_error

    import_optional("matplotlib", extra="report", purpose="The demo's report")
    folder = arguments.output_folder(options, "nonneg", "demo")
    X = load_digits().data
    table = Table(X, None, None, "handwritten digits", "npy")
    if not options.quiet:
        terminal.note(f"{X.shape[0]} images of 8 x 8 pixels, {FIT['n_components']} components")
    with terminal.warnings_as_notes():
        # Compiled code is loaded, or compiled the first time; times are about the work itself.
        _, _, loading = fit_model(X, **{**RACE, "max_iter": 2, "tol": 0.0})
        model, W, seconds = fit_model(X, verbose=0 if options.quiet else 1, **FIT)
        runs = [fit_model(X, n_jobs=1, **RACE) for _ in range(REPEATS)]
    racer, weights, _ = runs[0]
    ours = {
        "name": "nonneg",
        "seconds": min(run[2] for run in runs),
        "relative_error": observed_relative_error(X, weights, racer.components_),
        "n_iter": racer.n_iter_,
    }
    comparison: dict[str, Any] = {
        "rows": [ours, _scikit_learn(X)],
        "note": (
            "Same data, initialization (nndsvda), tolerance and maximum number of iterations, each "
            "with its own stopping rule. Fit and encoding of all samples on one thread, best of "
            f"{REPEATS} runs. The fit above, in contrast, uses nonneg's defaults. nonneg's compiled code "
            f"was loaded beforehand, in {loading:.1f} s."
        ),
    }
    record = fits.describe(
        model,
        W,
        table,
        seconds,
        title="Parts of handwritten digits",
        image_shape=(8, 8),
        comparison=comparison,
    )
    files.add_factors(record, table, csv=False)
    race = "; ".join(
        f"{row['name']} {row['seconds']:.3f} s, relative error {row['relative_error']:.5f}"
        for row in comparison["rows"]
    )
    terminal.finish(folder, record, race, known=files.FACTORS)
    return 0


def _scikit_learn(X: Any) -> dict[str, Any]:
    import sklearn
    from sklearn.decomposition import NMF
    from threadpoolctl import threadpool_limits

    from nonneg.report.quality import observed_relative_error

    model = NMF(**RACE)
    seconds = []
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # that it stopped at the limit is seen in the table
        for _ in range(REPEATS):
            started = time.perf_counter()
            W = model.fit_transform(X)
            seconds.append(time.perf_counter() - started)
    return {
        "name": f"scikit-learn {sklearn.__version__}",
        "seconds": min(seconds),
        "relative_error": observed_relative_error(X, W, model.components_),
        "n_iter": model.n_iter_,
    }
