"""Mutational signatures of breast cancers, found by purification and by NMF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.datasets import load_brca_sbs96
from nonneg.solvers import factorize
from reproduction.artifacts import Artifact
from reproduction.experiment import Experiment, Record, Setting
from reproduction.purification.against_nmf import (
    comparison_table,
    found_parts,
    nearest_verdict,
    scores,
)
from reproduction.purification.planted_runs import short
from reproduction.registry import TITLES

NAME = "purification/signatures"
N_DRAWS = 3
N_SIGNATURES = 6
NUMBERS = (793, 4000)
EXPOSURES = ("as fitted", "independent")


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per question and draw."""
    cases: list[dict[str, Any]] = [
        {"question": "known signatures", "exposures": exposures, "number": number}
        for exposures in EXPOSURES
        for number in ((793,) if quick else NUMBERS)
    ]
    if not quick:
        cases.append({"question": "halves", "number": 793})
    common = {"threads": 1, "quick": quick}
    settings = [common | case | {"draw": draw} for draw in range(1 if quick else N_DRAWS) for case in cases]
    if not quick:
        settings.append(common | {"question": "processes", "number": 793, "draw": 0})
    return settings


def process_types(names: Sequence[str]) -> dict[str, FloatArray]:
    """Return which types of substitutions belong to known processes."""
    return {
        "deamination": np.array(["[C>T]" in name and name.endswith("G") for name in names]),
        "apobec_t": np.array([name.startswith("T[C>T]") for name in names]),
        "apobec_g": np.array([name.startswith("T[C>G]") for name in names]),
    }


def evened(counts: FloatArray) -> FloatArray:
    """Return counts in which no patient outweighs the others."""
    kept = counts[counts.sum(axis=1) > 0]
    return kept / np.sqrt(kept.sum(axis=1, keepdims=True))


def run(setting: Setting) -> list[dict[str, Any]]:
    """Answer one question with all methods."""
    rng = np.random.default_rng([96, setting["draw"]])
    dataset = load_brca_sbs96()
    counts = dataset.X
    options = {"seed": setting["draw"], "kl": not setting["quick"]}
    if setting["question"] == "halves":
        order = rng.permutation(len(counts))
        halves = [
            found_parts(evened(counts[part]), N_SIGNATURES, **options) for part in np.array_split(order, 2)
        ]
        return [
            {"method": name, **scores(np.maximum(halves[0][name][0], 0.0), halves[1][name][0])}
            for name in halves[0]
        ]
    if setting["question"] == "processes":
        found = found_parts(evened(counts), N_SIGNATURES, **options)
        records = []
        for name, (features, facts) in found.items():
            shares = np.maximum(features, 0.0)
            shares /= shares.sum(axis=1, keepdims=True)
            types = process_types(dataset.feature_names)
            purest = {process: short(float(shares[:, of].sum(axis=1).max())) for process, of in types.items()}
            records.append({"method": name, **purest, **facts})
        return records
    fitted = factorize(
        counts, N_SIGNATURES, init="nndsvda", beta_loss="kullback-leibler", max_iter=200, rng=0
    )
    W, true = np.asarray(fitted.W), np.asarray(fitted.H)
    rows = rng.integers(len(W), size=setting["number"])
    exposures = W[rows]
    if setting["exposures"] == "independent":
        exposures = np.column_stack([rng.permutation(column) for column in exposures.T])
    drawn = rng.poisson(exposures @ true).astype(np.float64)
    found = found_parts(evened(drawn), N_SIGNATURES, **options)
    return [{"method": name, **scores(true, features), **facts} for name, (features, facts) in found.items()]


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return tables and the claims."""
    measures = {"mean": "mean cosine", "smallest": "smallest cosine", "found": "fraction of at least 0.9"}
    timed = measures | {"n_iter": "iterations", "seconds": "seconds"}
    of = {
        question: [record for record in records if record["question"] == question]
        for question in ("known signatures", "halves", "processes")
    }
    artifacts: list[Artifact] = []
    if of["known signatures"]:
        artifacts.append(
            comparison_table(
                "Known signatures: cosines with the truth. Mean ± standard deviation over draws.",
                of["known signatures"],
                {"exposures": "exposures", "number": "patients"},
                timed,
            )
        )
    if of["halves"]:
        artifacts.append(
            comparison_table(
                "Halves of the patients: cosines between their signatures.",
                of["halves"],
                {"number": "patients"},
                measures,
            )
        )
    if of["processes"]:
        artifacts.append(
            comparison_table(
                "All patients: fraction of the purest signature in the types of a process.",
                of["processes"],
                {"number": "patients"},
                {"deamination": "C>T at CpG", "apobec_t": "C>T after T", "apobec_g": "C>G after T"},
            )
        )
    verdicts = [
        nearest_verdict(
            f"known signatures, exposures {exposures}",
            of["known signatures"],
            [{"exposures": exposures, "number": number} for number in NUMBERS],
            N_DRAWS,
        )
        for exposures in EXPOSURES
    ]
    verdicts.append(
        nearest_verdict("halves: signatures repeat better", of["halves"], [{"number": 793}], N_DRAWS)
    )
    return [*artifacts, *verdicts]


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=("brca_sbs96_wgs",),
    parallel=False,
)
