"""Scenes of the study of unmixing, and tools that users have otherwise."""

from __future__ import annotations

import random
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from nonneg import datasets
from nonneg._typing import FloatArray
from reproduction.studies.vertex_draws import Planted, mixed_covers, planted_scene

SIDE, N_BANDS = 40, 100
_LAKE: dict[str, Any] = {"spectra": "land-cover", "n_materials": 4, "snr": 30}
_RANDOM: dict[str, Any] = {"spectra": "random", "n_materials": 4, "snr": 30}
KINDS: dict[str, dict[str, Any]] = {
    "Jasper-Ridge-like, 20 dB": {**_LAKE, "snr": 20},
    "Jasper-Ridge-like, 30 dB": _LAKE,
    "Jasper-Ridge-like, 40 dB": {**_LAKE, "snr": 40},
    "Jasper-Ridge-like, 0.1% corrupt": {**_LAKE, "n_corrupt": 2},
    "Jasper-Ridge-like, purity 0.8": {**_LAKE, "purity": 0.8},
    "Jasper-Ridge-like, uneven noise": {**_LAKE, "uneven": 10.0},
    "SalinasA-like": {**_LAKE, "n_materials": 6, "snr": 35, "n_corrupt": 2},
    "Moffett-like": {"spectra": "land-cover", "n_materials": 3, "noise": 0.02},
    "random, 20 dB": {**_RANDOM, "snr": 20},
    "random, 25 dB, 5 materials": {**_RANDOM, "snr": 25, "n_materials": 5},
    "random, 30 dB": _RANDOM,
    "random, 40 dB": {**_RANDOM, "snr": 40},
    "random, purity 0.9": {**_RANDOM, "purity": 0.9},
    "random, purity 0.8": {**_RANDOM, "purity": 0.8},
    "random, purity 0.7, 20 dB": {**_RANDOM, "purity": 0.7, "snr": 20},
    "random, purity 0.7, 40 dB": {**_RANDOM, "purity": 0.7, "snr": 40},
    "random, purity 0.6": {**_RANDOM, "purity": 0.6},
    "random, purity 0.5, 6 materials": {**_RANDOM, "purity": 0.5, "n_materials": 6},
    "random, purity 0.8, 0.1% corrupt": {**_RANDOM, "purity": 0.8, "n_corrupt": 2},
    "random, noise shared by bands": {"spectra": "random", "n_materials": 4, "noise": 0.03},
    "Dirichlet, 30 dB": {"planted": {}},
    "Dirichlet, 40 dB": {"planted": {"snr": 40}},
    "Dirichlet, purity 0.7": {"planted": {"purity": 0.7}},
    "Dirichlet, dark material": {"planted": {"dark": 0.05}},
    "Dirichlet, 0.1% corrupt": {"planted": {"outliers": 0.001}},
    "Dirichlet, dark, corrupt, 25 dB": {"planted": {"dark": 0.05, "outliers": 0.001, "snr": 25}},
    "5 covers": {"covers": {"k": 5}},
    "5 covers, purity 0.8, corrupt": {"covers": {"k": 5, "purity": 0.8, "outliers": 0.001}},
}
"""Kinds of scenes: with materials in areas, with Dirichlet weights, and mixed from pixels of Indian Pines."""
N_CHOOSING = 1000
"""Draws from this number on chose the rules; those below report."""


def drawn_scene(kind: str, draw: int) -> Planted:
    """Return pixels, endmembers and abundances."""
    rng = np.random.default_rng([17, list(KINDS).index(kind), draw])
    options = dict(KINDS[kind])
    if "planted" in options:
        return planted_scene(options["planted"], rng)
    if "covers" in options:
        return mixed_covers(options["covers"], rng)
    uneven = options.pop("uneven", 1.0)
    made = datasets.scene_like(SIDE, SIDE, N_BANDS, brightness=0.2, rng=rng, **options)
    X, weights = np.asarray(made.X), np.asarray(made.W)
    if uneven > 1.0:
        # A fifth of the bands is much noisier than the others.
        noisy = rng.choice(N_BANDS, N_BANDS // 5, replace=False)
        sigma = np.sqrt(np.mean(X**2)) * 10 ** (-options["snr"] / 20)
        X[:, noisy] += uneven * sigma * rng.standard_normal((len(X), len(noisy)))
        X = np.maximum(X, 0.0)
    sums = weights.sum(axis=1, keepdims=True)
    return Planted(X, made.H, weights / np.where(sums > 0, sums, 1.0))


PEERS: Mapping[str, str] = {
    "N-FINDR": "numpy",
    "ATGP": "pysptools",
    "FIPPI": "pysptools",
    "PPI": "pysptools",
    "NMF (HyperSpy)": "hyperspy",
}
"""What users have otherwise, and the package that it needs; N-FINDR is written here as published."""


def peer_endmembers(name: str, cube: FloatArray, k: int, seed: int) -> FloatArray | None:
    """Return the endmembers of another tool; None if it is not installed."""
    if find_spec(PEERS[name]) is None:
        return None
    if name == "N-FINDR":
        return n_findr(cube.reshape(-1, cube.shape[2]), k)
    if name.startswith("NMF"):
        signal = import_module("hyperspy.api").signals.Signal1D(cube)
        signal.decomposition(
            algorithm="NMF", output_dimension=k, print_info=False, random_state=seed, max_iter=500
        )
        return np.asarray(signal.get_decomposition_factors().data)
    # pysptools 0.15 uses a name that NumPy has dropped, and the global random numbers.
    if not hasattr(np, "int"):
        setattr(np, "int", int)  # noqa: B010
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    found = getattr(import_module("pysptools.eea"), name)().extract(cube, k, normalize=False)
    return np.asarray(found, dtype=np.float64)


def n_findr(spectra: FloatArray, k: int, *, max_passes: int = 10) -> FloatArray:
    """Return the pixels that span the largest simplex (Winter 1999), from those of ATGP."""
    centered = spectra - spectra.mean(axis=0)
    directions = np.linalg.eigh(centered.T @ centered)[1][:, ::-1][:, : k - 1]
    lifted = np.column_stack([np.ones(len(spectra)), centered @ directions])
    chosen = [int(np.argmax(np.einsum("ij,ij->i", spectra, spectra)))]
    while len(chosen) < k:
        basis = np.linalg.qr(spectra[chosen].T)[0]
        left = spectra - (spectra @ basis) @ basis.T
        chosen.append(int(np.argmax(np.einsum("ij,ij->i", left, left))))
    largest = abs(np.linalg.det(lifted[chosen]))
    for _ in range(max_passes):
        before = largest
        for at in range(k):
            # The volume is linear in the pixel that is replaced: its cofactors.
            others = np.delete(lifted[chosen], at, axis=0)
            cofactors = np.array([(-1) ** j * np.linalg.det(np.delete(others, j, axis=1)) for j in range(k)])
            volumes = np.abs(lifted @ cofactors)
            best = int(np.argmax(volumes))
            if volumes[best] > largest * (1 + 1e-12):
                chosen[at], largest = best, float(volumes[best])
        if largest <= before * (1 + 1e-12):
            break
    return spectra[chosen]
