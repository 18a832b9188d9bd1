"""Figure 6: basis images of faces from four initializations."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from reproduction.artifacts import Artifact, Pictures, Table, Verdict
from reproduction.cr1.algorithm_runs import Fit, run_from
from reproduction.cr1.init_times import loaded
from reproduction.cr1.initializations import INITS, make_init, seeded
from reproduction.cr1.real_sets import QUICK, RealSet
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.registry import TITLES

NAME = "cr1/figure-6"
SET = "olivetti_64x64"
N_ITER = 20
PEOPLE = (0, 1, 2)


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per initialization."""
    head = {"set": QUICK if quick else SET, "n_iter": N_ITER, "people": list(PEOPLE)}
    return [head | {"init": kind} for kind in INITS]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run multiplicative updates from an initialization."""
    real, samples = loaded(setting)
    init = make_init(setting["init"], samples, real.k, seeded(setting["init"], 0))
    fit = run_from("mult", samples, init, max_iter=setting["n_iter"])
    chosen, cosines = _of_people(real, fit)
    own = np.arange(len(chosen))
    assert real.grid is not None
    return [
        {
            "error": fit.errors[-1],
            "cosine": float(np.mean(cosines[own, own])),
            "n_components": len(set(chosen)),
            "n_people": len(chosen),
            "n_nearest": int(np.sum(np.argmax(cosines, axis=1) == own)),
            "grid": list(real.grid),
            "pictures": [packed(fit.Ht[:, chosen[person]]) for person in setting["people"]],
        }
    ]


def _of_people(real: RealSet, fit: Fit) -> tuple[list[int], FloatArray]:
    """Return the component of each person, and its cosines (rows) with the mean images of all."""
    assert real.y is not None
    lengths = np.linalg.norm(fit.Ht, axis=0)
    coefficients = fit.W * lengths
    basis = fit.Ht / np.where(lengths > 0, lengths, 1.0)
    people = [real.y == person for person in np.unique(real.y)]
    typical = coefficients.mean(axis=0)
    chosen = [int(np.argmax(coefficients[own].mean(axis=0) - typical)) for own in people]
    means = np.stack([np.asarray(real.X[own].mean(axis=0)).ravel() for own in people], axis=1)
    return chosen, basis[:, chosen].T @ (means / np.linalg.norm(means, axis=0))


def packed(picture: FloatArray) -> str:
    """Encode an image as text: 256 gray levels, the largest entry white."""
    largest = float(picture.max())
    gray = np.round(255 * picture / (largest if largest > 0 else 1.0)).astype(np.uint8)
    return base64.b64encode(gray.tobytes()).decode("ascii")


def unpacked(text: str, grid: Sequence[int]) -> FloatArray:
    """Read what `packed` wrote."""
    gray = np.frombuffer(base64.b64decode(text), dtype=np.uint8)
    return gray.reshape(tuple(grid)) / 255.0


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the pictures and the numbers."""
    groups = {kind: group[0] for (kind,), group in grouped(records, "init").items()}
    kinds = [kind for kind in INITS if kind in groups]
    rows = [
        {"init": kind} | {key: groups[kind][key] for key in ("error", "cosine", "n_components", "n_nearest")}
        for kind in kinds
    ]
    n_people = records[0]["n_people"]
    columns = {
        "init": "initialization",
        "error": "relative error",
        "cosine": "mean cosine with the person's mean",
        "n_components": f"components of {n_people} people",
        "n_nearest": "people nearest to their own component",
    }
    found = {kind: groups[kind]["n_nearest"] for kind in kinds}
    met = None
    if len(kinds) == len(INITS):
        met = found["cr1-nmf"] > max(found["rand"], found["nndsvd"])
    return [
        *_pictures([groups[kind] for kind in kinds], kinds),
        Table(f"All {n_people} people.", columns, rows),
        Verdict(
            "more basis images are nearest to their own person from cr1-nmf than from rand and from nndsvd",
            met,
            ", ".join(f"{kind} {count} of {n_people}" for kind, count in found.items()),
        ),
    ]


def _pictures(records: Sequence[Record], kinds: Sequence[str]) -> list[Pictures]:
    """Draw the basis images, where the records hold them: those in the repository do not."""
    if not all("pictures" in record for record in records):
        return []
    images = [[unpacked(text, record["grid"]) for text in record["pictures"]] for record in records]
    people = [f"person {person + 1}" for person in records[0]["people"]]
    caption = f"Basis images at iteration {records[0]['n_iter']} of mult."
    return [Pictures("basis", caption, images, kinds, people)]


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=(SET,),
    quick_data_sets=(),
)
