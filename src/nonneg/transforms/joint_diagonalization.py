"""joint_diagonalize: an orthogonal joint diagonalizer on its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nonneg._arguments import checked_count, checked_nonnegative, typed
from nonneg._random import Seed
from nonneg._threads import threads
from nonneg.exceptions import UnsupportedError
from nonneg.iteration import Progress
from nonneg.transforms.covariances import FrameCovariances, check_eps0, covariances_of
from nonneg.transforms.initialization import initial_state
from nonneg.transforms.loop import LoopOptions
from nonneg.transforms.options import METHODS, method_options
from nonneg.transforms.reduction import reduced_frames, reduced_state
from nonneg.transforms.restarts import best_jd
from nonneg.transforms.result import TransformResult


def joint_diagonalize(
    covariances: Any,
    *,
    eps0: float = 0.0,
    n_init: int = 1,
    init: Any = None,
    max_iter: int = 1000,
    tol: float = 1e-8,
    rng: Seed = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    callback: Callable[[Progress], bool | None] | None = None,
    checkpoint: str | Path | None = None,
    method_params: Mapping[str, Any] | None = None,
) -> TransformResult:
    """Find the orthogonal matrix that makes given covariance matrices as diagonal as possible.

    Parameters
    ----------
    covariances : array of shape (n_matrices, m, m)
        Symmetric and positive semidefinite; never changed. A `FrameCovariances` is accepted too.
    eps0 : float, default 0.0
        Added to their diagonals; must be positive where a matrix is singular.
    n_init : int, default 1
        The number of restarts; the best is kept.
    init : None, "random", "dct" or array of shape (m, m)
        The initialization: random, the DCT, or a given orthogonal matrix.
    max_iter : int, default 1000
        Maximum number of iterations.
    tol : float, default 1e-8
        Stop when the Frobenius norm of the skew gradient, over twice the number of matrices, is below it.
    rng : None, int, Generator, RandomState or SeedSequence
        The source of random initializations.
    n_jobs : int or None
        Number of threads; None uses all cores.
    verbose : int, default 0
        1 shows a progress line.
    callback : callable, optional
        Called with a `Progress` after each iteration; returns True to stop.
    checkpoint : str or path, optional
        A folder in which the run is saved, and from which it is resumed.
    method_params : dict, optional
        Parameters of the algorithm: ``n_rotation_updates`` (1), rotations per iteration; ``max_trials`` (30),
        the maximum number of steps of a line search.

    Returns
    -------
    TransformResult
        ``transform @ covariance @ transform.T`` is nearly diagonal; its diagonals are `variances`.

    Notes
    -----
    The objective is ``sum_n log det diag(Phi Sigma_n Phi')``, which for orthogonal matrices is Pham's
    criterion for the joint diagonalization of positive definite matrices up to a constant.

    References
    ----------
    .. [1] Zhang, Soubies & Fevotte, Leveraging Joint-Diagonalization in Transform-Learning NMF.
    .. [2] Pham (2001), Joint approximate diagonalization of positive definite Hermitian matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg import joint_diagonalize
    >>> rng = np.random.default_rng(0)
    >>> Q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    >>> stack = np.stack([Q @ np.diag(rng.random(4) + 0.1) @ Q.T for _ in range(20)])
    >>> result = joint_diagonalize(stack, rng=0)
    >>> bool(np.allclose(np.abs(result.transform @ Q).max(axis=1), 1.0))
    True
    """
    typed(joint_diagonalize, locals())
    data = covariances if isinstance(covariances, FrameCovariances) else covariances_of(covariances)
    METHODS.check_options("jd", params := dict(method_params or {}))
    if "n_nmf_updates" in params:
        raise UnsupportedError("joint_diagonalize has no factors: it does not accept n_nmf_updates.")
    options = method_options("jd", eps0=eps0, **params)
    check_eps0(data, options.eps0)
    loop = LoopOptions(
        max_iter=checked_count("max_iter", max_iter, 0),
        gradient_tol=checked_nonnegative("tol", tol),
        callback=callback,
        verbose=verbose,
        checkpoint=checkpoint,
    )
    n_init = checked_count("n_init", n_init, 1)
    with threads(n_jobs):
        work = reduced_frames(data)
        inits = reduced_state(initial_state(data, None, init=init, n_init=n_init, rng=rng), work)
        batch = loop.run("jd", inits, work, options)
        return best_jd([batch], None, work, options, loop)
