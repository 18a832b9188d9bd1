"""Figures 5 and 6: images of three people or digits, and their basis images."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nonneg import NMF
from nonneg._typing import FloatArray
from reproduction.artifacts import Artifact, Pictures, Table, Verdict
from reproduction.cr1.algorithm_runs import Fit, run_from
from reproduction.cr1.init_times import loaded
from reproduction.cr1.initializations import INITS, make_init, seeded
from reproduction.cr1.real_sets import DIGITS, QUICK, RealSet
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.registry import TITLES

NAME = "cr1/figure-6"
SET = "olivetti_64x64"
DEFAULT = "default"
N_ITER = 20
PEOPLE = (0, 1, 2)
N_SAMPLES = 4  # images of each in Figure 5
CALLED = {SET: "person", DIGITS: "digit", QUICK: "class"}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per set and initialization, and one for `NMF(k)`."""
    same = {"n_iter": N_ITER, "people": list(PEOPLE)}
    names = (QUICK,) if quick else (SET, DIGITS)
    return [{"set": name} | same | {"init": kind} for name in names for kind in (*INITS, DEFAULT)]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run multiplicative updates from an initialization, or what `NMF` does by default."""
    real, samples = loaded(setting)
    if setting["init"] == DEFAULT:
        model = NMF(real.k, random_state=0)
        W = model.fit_transform(samples.X)
        error = model.reconstruction_err_ / float(np.sqrt(samples.rows.squared_norm()))
        fit = Fit(W, model.components_.T, [error], [])
    else:
        init = make_init(setting["init"], samples, real.k, seeded(setting["init"], 0))
        fit = run_from("mult", samples, init, max_iter=setting["n_iter"])
    chosen, cosines = _of_people(real, fit)
    own = np.arange(len(chosen))
    assert real.grid is not None
    images = {person: real.X[real.y == person][:N_SAMPLES] for person in setting["people"]}
    return [
        {
            "error": fit.errors[-1],
            "cosine": float(np.mean(cosines[own, own])),
            "n_components": len(set(chosen)),
            "n_people": len(chosen),
            "n_nearest": int(np.sum(np.argmax(cosines, axis=1) == own)),
            "grid": list(real.grid),
            "pictures": [packed(fit.Ht[:, chosen[person]]) for person in setting["people"]],
            "samples": [[packed(image) for image in images[person]] for person in setting["people"]],
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
    """Return the pictures and the numbers of every set."""
    artifacts: list[Artifact] = []
    for (name,), of_set in grouped(records, "set").items():
        groups = {kind: group[0] for (kind,), group in grouped(of_set, "init").items()}
        artifacts += _of_set(
            CALLED[name], {kind: groups[kind] for kind in (*INITS, DEFAULT) if kind in groups}
        )
    return artifacts


def _of_set(called: str, groups: Mapping[str, Record]) -> list[Artifact]:
    several = {"person": "people", "class": "classes"}.get(called, f"{called}s")
    keys = ("error", "cosine", "n_components", "n_nearest")
    rows = [{"init": kind} | {key: record[key] for key in keys} for kind, record in groups.items()]
    n_people = next(iter(groups.values()))["n_people"]
    columns = {
        "init": "initialization",
        "error": "relative error",
        "cosine": f"mean cosine with the mean image of the {called}",
        "n_components": f"components of {n_people} {several}",
        "n_nearest": f"{several} nearest to their own component",
    }
    nearest = {kind: record["n_nearest"] for kind, record in groups.items()}
    met = None
    if set(INITS) <= set(groups):
        met = nearest["cr1-nmf"] > max(nearest["rand"], nearest["nndsvd"])
    return [
        *_pictures(called, groups),
        Table(f"All {n_people} {several}.", columns, rows),
        Verdict(
            f"more basis images are nearest to their own {called} from cr1-nmf than from rand and nndsvd",
            met,
            ", ".join(f"{kind} {count} of {n_people}" for kind, count in nearest.items()),
        ),
    ]


def _pictures(called: str, groups: Mapping[str, Record]) -> list[Pictures]:
    """Draw the images, where the records hold them: those of the faces in the repository do not."""
    if not all("pictures" in record for record in groups.values()):
        return []
    first = next(iter(groups.values()))
    names = [f"{called} {one if called == 'digit' else one + 1}" for one in first["people"]]
    samples = [[unpacked(text, first["grid"]) for text in row] for row in first["samples"]]
    basis = [[unpacked(text, one["grid"]) for text in one["pictures"]] for one in groups.values()]
    caption = f"Basis images at iteration {first['n_iter']} of mult, and of the default (Figure 6)."
    return [
        Pictures(f"{called}-images", f"Images of each {called} (Figure 5).", samples, names),
        Pictures(f"{called}-basis", caption, basis, list(groups), names),
    ]


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=(SET,),
    quick_data_sets=(),
)
