"""Limbs of swimmers in heavy noise, found by purification and by NMF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.metrics import match_components
from reproduction.artifacts import Artifact, Pictures, Verdict
from reproduction.data import load_swimmer
from reproduction.experiment import Experiment, Record, Setting
from reproduction.purification.against_nmf import (
    METHODS,
    comparison_table,
    found_parts,
    nearest_verdict,
    scores,
)
from reproduction.registry import TITLES

NAME = "purification/swimmer"
N_DRAWS = 2
KEPT = (1.0, 0.3)
BRIGHTNESSES = (10.0, 2.0, 1.0)
NUMBERS = (1000, 3000)
BACKGROUNDS = ("left in", "subtracted")
# Rows and columns that hold limbs.
BOX = (slice(5, 27), slice(9, 22))
SHOWN = 8


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per set of images and draw."""
    if quick:
        cases: list[dict[str, Any]] = [{"pictures": "stored", "kept": 1.0, "background": "left in"}]
        cases.append(
            {"pictures": "independent", "brightness": 4.0, "number": 500, "background": "subtracted"}
        )
    else:
        cases = [
            {"pictures": "stored", "kept": kept, "background": how} for kept in KEPT for how in BACKGROUNDS
        ]
        cases += [
            {"pictures": "independent", "brightness": brightness, "number": number, "background": how}
            for number in NUMBERS
            for brightness in BRIGHTNESSES
            for how in BACKGROUNDS
        ]
    common = {"threads": 1, "quick": quick}
    return [common | case | {"draw": draw} for draw in range(1 if quick else N_DRAWS) for case in cases]


def known_parts() -> FloatArray:
    """Return the 16 limbs and the torso of the stored swimmers."""
    X = load_swimmer().X
    order = np.arange(len(X))
    shown = np.array(
        [(order // 4**limb) % 4 == place for limb in range(4) for place in range(4)], dtype=np.float64
    )
    centered, pixels = shown - shown.mean(axis=1, keepdims=True), X - X.mean(axis=0)
    sizes = np.linalg.norm(pixels, axis=0)
    likeness = (
        centered @ pixels / (np.linalg.norm(centered, axis=1)[:, None] * np.where(sizes > 0, sizes, 1.0))
    )
    limbs = np.where(likeness.max(axis=0) > 0.6, likeness.argmax(axis=0), -1)
    torso = (X.mean(axis=0) > 6) & (limbs < 0)
    return np.array([*(limbs == limb for limb in range(16)), torso], dtype=np.float64)


def run(setting: Setting) -> list[dict[str, Any]]:
    """Find parts of one set of images by all methods."""
    rng = np.random.default_rng([4711, setting["draw"]])
    parts = known_parts()
    if setting["pictures"] == "stored":
        photons = load_swimmer().X.astype(np.int64)
        X = rng.binomial(photons, setting["kept"]).astype(np.float64)
    else:
        parts = np.ascontiguousarray(parts[:16].reshape(16, 32, 32)[(slice(None), *BOX)].reshape(16, -1))
        weights = rng.random((setting["number"], 16)) < 0.25
        X = rng.poisson(1.0 + setting["brightness"] * (weights @ parts)).astype(np.float64)
    if setting["background"] == "subtracted":
        X, parts = X - np.median(X, axis=0), parts[:16]
    found = found_parts(X, len(parts), seed=setting["draw"], kl=not setting["quick"])
    records = [
        {"method": name, **scores(parts, features), **facts} for name, (features, facts) in found.items()
    ]
    if (
        setting["pictures"] == "stored"
        and setting["kept"] == 1.0
        and len(parts) == 17
        and setting["draw"] == 0
    ):
        for record, (features, _) in zip(records, found.values(), strict=True):
            order = match_components(parts, np.maximum(features, 0.0)).permutation[:SHOWN]
            matched = np.maximum(features[order], 0.0)
            matched /= np.maximum(matched.max(axis=1, keepdims=True), 1e-300)
            boxes = matched.reshape(-1, 32, 32)[(slice(None), *BOX)]
            record["seen"] = np.round(99 * boxes).astype(int).tolist()
    return records


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return tables, images of parts, and the claims."""
    measures = {"mean": "mean cosine", "smallest": "smallest cosine", "found": "fraction of parts found"}
    measures |= {"n_iter": "iterations", "seconds": "seconds"}
    stored = [record for record in records if record["pictures"] == "stored"]
    independent = [record for record in records if record["pictures"] == "independent"]
    artifacts: list[Artifact] = []
    if stored:
        artifacts.append(
            comparison_table(
                "The stored swimmers, 17 parts (16 without the background); a part is found where its "
                "cosine is at least 0.9. Mean "
                "± standard "
                "deviation over draws.",
                stored,
                {"kept": "photons kept", "background": "background"},
                measures,
            )
        )
    if independent:
        artifacts.append(
            comparison_table(
                "Independent limbs, 16 parts.",
                independent,
                {"number": "pictures", "brightness": "photons on a limb", "background": "background"},
                measures,
            )
        )
    seen = {record["method"]: record["seen"] for record in stored if "seen" in record}
    if seen:
        artifacts.append(
            Pictures(
                "parts",
                f"The first {SHOWN} limbs of the stored swimmers as each method finds them (first draw).",
                [[np.asarray(image, dtype=np.float64) for image in images] for images in seen.values()],
                row_labels=[METHODS[name] for name in seen],
            )
        )
    return [*artifacts, *_verdicts(stored, independent)]


def _verdicts(stored: Sequence[Record], independent: Sequence[Record]) -> list[Verdict]:
    clear = [
        {"number": number, "brightness": brightness}
        for number in NUMBERS
        for brightness in BRIGHTNESSES
        if brightness > 1
    ]
    faint = [{"number": number, "brightness": 1.0} for number in NUMBERS]
    kept = [{"kept": share} for share in KEPT]
    left, away = ({"background": how} for how in BACKGROUNDS)
    questions: dict[str, tuple[Sequence[Record], Sequence[dict[str, Any]], dict[str, Any]]] = {
        "the stored swimmers as they are": (stored, kept, left),
        "the stored swimmers without background (positions exclude one another)": (stored, kept, away),
        "independent limbs without background, 2 photons or more on a limb": (independent, clear, away),
        "independent limbs without background, 1 photon on a limb": (independent, faint, away),
        "independent limbs, background left in": (independent, [*clear, *faint], left),
    }
    return [
        nearest_verdict(words, records, [case | how for case in cases], N_DRAWS)
        for words, (records, cases, how) in questions.items()
    ]


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=("swimmer",),
    parallel=False,
)
