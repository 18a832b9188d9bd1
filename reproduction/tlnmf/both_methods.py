"""Data of the paper's experiments, and both methods on them with the parameters of Table I."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg import TransformNMF
from nonneg._typing import FloatArray
from nonneg.datasets import music_notes
from nonneg.transforms import (
    CrossInitResult,
    FrameCovariances,
    LoopOptions,
    TransformOptions,
    cross_init,
    frame_covariances,
)
from nonneg.transforms.options import method_options
from reproduction.data import gaussian_composite_model
from reproduction.experiment import Setting
from reproduction.published_values import published_values

SEED = 20260
KINDS = {"gcm": "GCM", "music": "music notes"}
# Backtracking steps of the joint diagonalization, and the gradient norm at which it stops: the authors' code.
SEARCHES = {"gcm": (30, 1e-8), "music": (10, 1e-6)}


def parameters(kind: str) -> dict[str, Any]:
    """Return the parameters of Table I."""
    return published_values("tlnmf")["table_1_parameters"]["GCM" if kind == "gcm" else "music_notes"]


def drawn_frames(kind: str, n_realizations: int, draw: int) -> FloatArray:
    """Draw the frames of a trial."""
    rng = np.random.default_rng([SEED, draw, n_realizations])
    if kind == "music":
        return music_notes(n_realizations, rng=rng).Y
    return gcm_model(draw).draw(n_realizations, rng=rng).Y


def gcm_model(draw: int) -> Any:
    """Return the Gaussian composite model of a draw, the same for every S."""
    given = parameters("gcm")
    return gaussian_composite_model(
        given["N"], given["M"], given["K"], rng=np.random.default_rng([SEED, draw])
    )


def options_of(kind: str) -> tuple[TransformOptions, TransformOptions]:
    """Return how iterations of both methods are made."""
    given = parameters(kind)
    common = {
        "eps0": given["eps0"],
        "n_nmf_updates": given["J_NMF"],
        "n_rotation_updates": given["J_TL"],
    }
    return method_options("tl", **common), method_options("jd", max_trials=SEARCHES[kind][0], **common)


def solve_both(setting: Setting) -> tuple[CrossInitResult, FrameCovariances]:
    """Run both methods from random initializations and from each other's solutions (Appendix G)."""
    kind = setting["kind"]
    data = frame_covariances(drawn_frames(kind, setting["S"], setting["draw"]))
    tl_options, jd_options = options_of(kind)
    both = cross_init(
        data,
        parameters(kind)["K"],
        n_init=setting["n_init"],
        tl_options=tl_options,
        jd_options=jd_options,
        loop=LoopOptions(setting["max_iter"], gradient_tol=SEARCHES[kind][1]),
        rng=np.random.SeedSequence([SEED, setting["draw"], setting["S"], 1]),
    )
    return both, data


def default_run(kind: str, S: int, draw: int, *, seed: int = 0, max_iter: int = 200) -> TransformNMF:
    """Fit what `TransformNMF` does by default, with the offset of Table I so that objectives compare."""
    given = parameters(kind)
    model = TransformNMF(given["K"], eps0=given["eps0"], max_iter=max_iter, random_state=seed)
    return model.fit(drawn_frames(kind, S, draw))


def cost(setting: Setting) -> float:
    """Return the relative cost of a trial."""
    return setting["n_init"] * setting["max_iter"] * (1.0 if setting["kind"] == "gcm" else 60.0)
