"""`nonneg demo`: the default fit of handwritten digits."""

from __future__ import annotations

import argparse

from nonneg.cli import arguments, terminal

OPTIONS = ""


def run(options: argparse.Namespace) -> None:
    """Factorize the digits of scikit-learn and write a report."""
    from sklearn.datasets import load_digits

    from nonneg import NMF
    from nonneg.cli import files
    from nonneg.io import Table
    from nonneg.report.tables import describe_fit

    folder = arguments.output_folder(options, "nonneg", "demo")
    table = Table(load_digits().data, source="handwritten digits", kind="npy")
    terminal.progress(f"{len(table.X):,} images of 8 x 8 pixels, 16 components")
    model = NMF(16, random_state=0, verbose=int(not options.quiet))
    W, seconds = terminal.timed(model.fit_transform, table.X)
    record = describe_fit(model, table, seconds, W, image_shape=(8, 8))
    files.add_factors(record, table, W)
    terminal.finish(folder, record)
