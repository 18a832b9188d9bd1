"""The checked cases, turned to one frame a row, and small data of the model."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np

DATA = Path(__file__).parent / "data"
CASES = ("S1", "S10")


def checked_case(name: str) -> SimpleNamespace:
    """Return one of the checked cases; matrices that need turning are turned."""
    with np.load(DATA / f"vec_gcm_{name}.npz") as file:
        stored = {key: file[key] for key in file.files}
    case = SimpleNamespace(stored=stored, Y=np.swapaxes(stored["Y"], 1, 2), eps0=float(stored["eps0"]))
    case.init = (stored["Phi0"], stored["W0"].T, stored["H0"].T)
    return case


def paper_objective(Y: np.ndarray, transform: np.ndarray, W: np.ndarray, H: np.ndarray, eps0: float) -> float:
    """C as printed (4), with loops over nothing but written from the equation: W (m, k), H (k, n)."""
    V = np.mean([(transform @ frames.T) ** 2 for frames in Y], axis=0)
    model = W @ H + eps0
    return float(np.sum((V + eps0) / model + np.log(model)))


def drawn_orthogonal(m: int, rng: np.random.Generator) -> np.ndarray:
    """Q of a normal matrix by Householder reflections, written out: LAPACK is free to flip its signs."""
    R, Q = rng.standard_normal((m, m)), np.eye(m)
    for j in range(m - 1):
        v = np.concatenate([np.zeros(j), R[j:, j]])
        v[j] += np.copysign(np.linalg.norm(v), v[j])
        v /= np.linalg.norm(v)
        R -= 2.0 * np.outer(v, v @ R)
        Q -= 2.0 * np.outer(Q @ v, v)
    return Q


def composite_frames(n_realizations: int, n: int, m: int, k: int, seed: int = 0) -> np.ndarray:
    """Frames of the Gaussian composite model with a random transform."""
    rng = np.random.default_rng(seed)
    transform = drawn_orthogonal(m, rng)
    power = rng.gamma(1.0, 2.0, (n, k)) @ rng.gamma(1.0, 2.0, (k, m))
    return (rng.standard_normal((n_realizations, n, m)) * np.sqrt(power)) @ transform
