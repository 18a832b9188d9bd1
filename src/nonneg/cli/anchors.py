"""`nonneg anchors FILE`: find the samples of which all others are mixtures."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from nonneg.cli import arguments, terminal
from nonneg.cli.table_inputs import add_data_arguments, read_input, table_name

ANCHORS = "anchors.csv"
COLUMNS = ("component", "row", "name", "value", "margin", "mean_weight")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "file", type=Path, help=".npy .npz .csv .tsv (.gz) .mtx .mat .parquet .h5ad .h5, or a 10x folder"
    )
    parser.add_argument(
        "-k",
        "--anchors",
        type=arguments.components,
        default="auto",
        metavar="K",
        help="number of anchors, or 'auto' (default): merit takes those that stand out from the noise",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="output folder (default: name of FILE + -anchors)",
    )
    _add_search_arguments(parser.add_argument_group("search"))
    _add_step_arguments(parser.add_argument_group("preprocessing"))
    add_data_arguments(parser.add_argument_group("data"))
    parser.add_argument_group("output").add_argument(
        "-q", "--quiet", action="store_true", help="do not show progress"
    )


def _add_search_arguments(group: Any) -> None:
    group.add_argument(
        "--method",
        metavar="NAME",
        help="merit (default), fast-gradient, spa, snpa, xray, fast-anchor, preconditioned-spa, "
        "translated-spa, lifted-spa, smoothed-spa, smoothed-vca, pp-spa, vca or css-nmf",
    )
    group.add_argument("--lam", type=arguments.number_or_name, metavar="L", help="weight of the row sparsity")
    group.add_argument("--mu", type=float, metavar="M", help="smoothing of the row sparsity")
    group.add_argument("--max-iter", type=int, metavar="N", help="maximum number of iterations")
    group.add_argument(
        "--tol",
        type=float,
        metavar="TOL",
        help="stop at this duality gap (of merit: relative to the objective, unless --steps says otherwise)",
    )
    group.add_argument(
        "--steps",
        metavar="NAME",
        help="merit: fully-corrective (default), open-loop as published, line-search, away or pairwise",
    )
    group.add_argument("--init", metavar="NAME", help="method that finds the initial anchors, such as spa")
    group.add_argument(
        "--sum-to-one", action=argparse.BooleanOptionalAction, default=None,
        help="whether the weights of a sample sum to one (default: if its features do)",
    )  # fmt: skip
    group.add_argument("--seed", type=int, metavar="N", default=0, help="random seed (default: 0)")
    group.add_argument("--n-jobs", type=int, metavar="N", help="number of threads (default: all cores)")
    group.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="save progress there, and resume an interrupted run"
    )


def _add_step_arguments(group: Any) -> None:
    group.add_argument(
        "--energy",
        type=float,
        metavar="S",
        help="keep the samples with the largest norms that account for this fraction of the squared norm",
    )
    group.add_argument("--normalize", choices=["l1", "l2"], help="divide every sample by this norm first")
    group.add_argument(
        "--reduce", type=int, metavar="M", help="project onto this number of leading directions"
    )
    group.add_argument("--centered", action="store_true", help="subtract the mean before that")
    group.add_argument(
        "--merge",
        type=float,
        metavar="S",
        help="merge samples whose distance is below S times the largest norm",
    )


def run(options: argparse.Namespace) -> int:
    """Read, search, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    from nonneg import SeparableNMF
    from nonneg._arrays import write_npy
    from nonneg.cli.results import NAMES, say_results, write_csv, write_names, write_results
    from nonneg.report.anchor_page import anchor_sentence, build_anchor_page
    from nonneg.report.folder import check_output_folder

    folder = options.output or Path(f"{options.file.name.split('.')[0]}-anchors")
    check_output_folder(folder)
    table = read_input(options, signed=True)
    with terminal.warnings_as_notes():
        model = SeparableNMF(**_parameters(options))
        started = time.perf_counter()
        W = model.fit_transform(table.X)
        seconds = time.perf_counter() - started
    record = anchor_record(model, W, table, seconds)

    def write_files(fresh: Path) -> None:
        write_npy(fresh / "W.npy", W)
        write_npy(fresh / "H.npy", model.components_)
        columns = [name for name in COLUMNS if name != "name" or table.row_names is not None]
        rows = ([entry[name] for name in columns] for entry in record["anchors"])
        write_csv(fresh / ANCHORS, columns, rows)
        write_names(fresh, table.row_names, table.column_names)

    written = write_results(
        folder,
        record,
        write_files,
        lambda: build_anchor_page(record, W, table.row_names),
        known=(ANCHORS, "W.npy", "H.npy", NAMES),
        model=model,
    )
    say_results(anchor_sentence(record), _table(record), written)
    return 0


def _table(record: dict[str, Any]) -> str:
    from nonneg.report.tables import markdown_table

    headings = {"component": "component", "row": "row"}
    if any(entry["name"] is not None for entry in record["anchors"]):
        headings["name"] = "sample"
    headings |= {"value": record["result"]["measure"], "margin": "margin", "mean_weight": "mean weight"}
    return markdown_table(record["anchors"], headings).rstrip("\n")


def _ranked(model: Any) -> Any:
    """Return the measure of the anchors, then that of the best other samples."""
    import numpy as np

    result = model.result_
    if result.row_maxima is not None:
        maxima = np.asarray(result.row_maxima)
        others = np.sort(np.delete(maxima, result.anchors))[::-1]
        return np.concatenate([maxima[result.anchors], others])
    scores = np.asarray(result.scores)
    return scores if result.best_left is None else np.append(scores, result.best_left)


def anchor_record(model: Any, W: Any, table: Any, seconds: float) -> dict[str, Any]:
    """Describe a selection of anchors."""
    from nonneg.report.quality import observed_relative_error
    from nonneg.report.records import run_record, stop_facts, table_facts

    result, values, k, names = model.result_, _ranked(model), model.n_components_, table.row_names
    # No margin where a greedy method does not look at the samples that it left.
    best_other = float(values[k]) if len(values) > k else None
    error = observed_relative_error(table.X, W, model.components_)
    anchors = [
        {
            "component": at,
            "row": int(row),
            "name": None if names is None else names[row],
            "value": float(values[at]),
            "margin": None if best_other is None else float(values[at]) - best_other,
            "mean_weight": float(W[:, at].mean()),
        }
        for at, row in enumerate(model.anchor_indices_)
    ]
    margins = [entry["margin"] for entry in anchors if entry["margin"] is not None]
    # What the preparation did; lists of samples are left to the model.
    steps = {
        name: {key: value for key, value in result.facts[name].items() if key != "labels"}
        for name in ("energy", "normalize", "reduce", "merge")
        if name in result.facts
    }
    return run_record(
        "anchors",
        f"Anchors of {table_name(table)}",
        data=table_facts(table),
        estimator=model,
        result={
            "method": result.method,
            "n_anchors": k,
            "measure": "score" if result.row_maxima is None else "row maximum",
            "unknown_rank": model.n_components is None,
            "margin": min(margins, default=None),
            "lam": result.lam,
            "objective": result.objective,
            "duality_gap": model.duality_gap_,
            "sum_to_one": model.sum_to_one_,
            "reconstruction_err": model.reconstruction_err_,
            "relative_error": error,
            "explained": 1.0 - error**2,
            "n_iter": model.n_iter_,
            "stop_reason": stop_facts(result),
            "seconds": seconds,
            "steps": steps,
        },
        anchors=anchors,
        # As many as the page draws.
        values=values[: 2 * k + 10],
    )


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Collect what the user said; everything else is left to the defaults of `SeparableNMF`."""
    method = options.method or "merit"
    convex = method in ("merit", "fast-gradient", "css-nmf")
    params = {name: getattr(options, name) for name in ("lam", "mu", "steps")}
    params = {name: value for name, value in params.items() if value is not None}
    said = {
        "n_components": None if options.anchors == "auto" else options.anchors,
        "method": options.method,
        "method_params": params or None,
        "max_iter": options.max_iter,
        "tol": options.tol,
        "init": options.init,
        "sum_to_one": options.sum_to_one,
        "energy": options.energy,
        "normalize": options.normalize,
        "reduce": options.reduce,
        "centered": options.centered or None,
        "merge": options.merge,
        "random_state": options.seed,
        "n_jobs": options.n_jobs,
        "checkpoint": None if options.checkpoint is None else str(options.checkpoint),
        "verbose": 1 if convex and not options.quiet else None,
    }
    return {name: value for name, value in said.items() if value is not None}
