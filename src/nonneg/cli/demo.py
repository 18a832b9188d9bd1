"""`nonneg demo`: the default fit of handwritten digits, and a race with scikit-learn."""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

from nonneg.cli import terminal

FIT: dict[str, Any] = {"n_components": 16, "random_state": 0}
RACE: dict[str, Any] = {
    **FIT,
    "init": "nndsvda",
    "tol": 1e-4,
    "max_iter": 200,
}
"""What both libraries are given in the race."""
REPEATS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("nonneg-demo"),
        metavar="DIR",
        help="output folder (default: ./nonneg-demo)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="do not show progress")


def run(options: argparse.Namespace) -> int:
    """Factorize the digits of scikit-learn and write a report."""
    from sklearn.datasets import load_digits

    from nonneg._optional import import_optional
    from nonneg.cli.fit import add_floor, fit_model
    from nonneg.cli.fit_results import FittedModel, write_fit
    from nonneg.io import Table
    from nonneg.report import wording
    from nonneg.report.folder import check_output_folder
    from nonneg.report.quality import observed_relative_error

    for library in ("jinja2", "matplotlib"):
        import_optional(library, extra="report", purpose="The demo's report")
    check_output_folder(options.output)
    X = load_digits().data
    table = Table(X, None, None, "handwritten digits", "npy")
    terminal.say(f"{X.shape[0]} images of 8 x 8 pixels, {FIT['n_components']} components")
    with terminal.warnings_as_notes():
        # Compiled code is loaded, or compiled the first time; times are about the work itself.
        _, _, loading = fit_model(X, **{**RACE, "max_iter": 2, "tol": 0.0})
        model, W, seconds = fit_model(X, verbose=0 if options.quiet else 1, **FIT)
        add_floor(model, X)
        runs = [fit_model(X, n_jobs=1, **RACE) for _ in range(REPEATS)]
    racer, weights, _ = runs[0]
    ours = {
        "name": "nonneg",
        "seconds": min(run[2] for run in runs),
        "relative_error": observed_relative_error(X, weights, racer.components_),
        "n_iter": racer.n_iter_,
    }
    comparison = {
        "rows": [ours, _scikit_learn(X)],
        "note": (
            "Same data, initialization (nndsvda), tolerance and maximum number of iterations, each "
            "with its own stopping rule. Fit and encoding of all samples on one thread, best of "
            f"{REPEATS} runs. The fit above, in contrast, uses nonneg's defaults. nonneg's compiled code "
            f"was loaded beforehand, in {loading:.1f} s."
        ),
    }
    fitted = FittedModel(
        model, W, table, seconds, "Parts of handwritten digits", image_shape=(8, 8), comparison=comparison
    )
    record, _ = write_fit(options.output, fitted)
    terminal.say(wording.answer(record))
    for failure in wording.failures(record):
        terminal.say(failure)
    terminal.say(
        "; ".join(
            f"{row['name']} {row['seconds']:.3f} s, relative error {row['relative_error']:.5f}"
            for row in record["comparison"]["rows"]
        )
    )
    terminal.say(str((options.output / "report.html").resolve()))
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
