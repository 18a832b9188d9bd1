"""Assignment in other contexts than single bases: planted catalogs from tables of COSMIC.

    python -m benchmarks.others.contexts FOLDER [--write]

FOLDER is `SigProfilerAssignment/data/Reference_Signatures` of an installed SigProfilerAssignment. Each of 25
tumors has up to four signatures of the table, with gamma exposures, and Poisson counts; all of the table is
the reference. The error is that of `benchmarks.others.sigfittest`, over the tumors together.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.others.records import merge
from benchmarks.tables import markdown
from nonneg.applications.signatures import assign_signatures

TABLES = {"DBS-78": "GRCh37/COSMIC_v3.4_DBS_GRCh37", "ID-83": "GRCh37/COSMIC_v3.4_ID_GRCh37",
          "CN-48": "GRCh37/COSMIC_v3.4_CN_GRCh37", "SV-32": "GRCh38/COSMIC_v3.4_SV_GRCh38"}  # fmt: skip
N_TUMORS, N_PLANTED, MEAN = 25, 4, 800.0


def assigned(context: str, path: Path) -> dict[str, Any]:
    """Plant signatures and assign them."""
    rng = np.random.default_rng(0)
    reference = pd.read_csv(path, sep="\t", index_col=0)
    planted = rng.choice(reference.columns, N_PLANTED, replace=False)
    present = rng.random((N_TUMORS, N_PLANTED)) < 0.6
    present[:, 0] = True
    truth = pd.DataFrame(present * rng.gamma(1.0, MEAN, present.shape), columns=planted)
    profiles = reference[planted] / reference[planted].sum()
    counts = pd.DataFrame(rng.poisson(truth.to_numpy() @ profiles.to_numpy().T), columns=reference.index)
    answer = assign_signatures(counts, reference, n_bootstrap=2, rng=0)
    exposures = pd.DataFrame(answer.exposures, columns=answer.names)
    wanted = truth.reindex(columns=answer.names, fill_value=0.0)
    error = float((exposures - wanted).abs().to_numpy().sum() / (2 * truth.to_numpy().sum()))
    return {"context": context, "table": path.stem, "channels": len(reference),
            "signatures": reference.shape[1], "total absolute error": round(error, 4)}  # fmt: skip


def tables(rows: list[dict[str, Any]]) -> str:
    """Return the errors."""
    head = ("context", "table", "channels", "signatures", "total absolute error")
    return markdown(head, [[str(row[name]) for name in head] for row in rows])


def main() -> None:
    """Run and print, or also write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="write the record under docs/")
    options = parser.parse_args()
    rows = [assigned(context, options.folder / f"{name}.txt") for context, name in TABLES.items()]
    if options.write:
        rows = merge("contexts", rows, ("context",))
    sys.stdout.write(tables(rows) + "\n")


if __name__ == "__main__":
    main()
