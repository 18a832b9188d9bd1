"""joint_diagonalize: an orthogonal joint diagonalizer on its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from nonneg._arguments import checked_count, checked_nonnegative
from nonneg._random import Seed
from nonneg._threads import threads
from nonneg.iteration import Progress
from nonneg.transforms.answers import best_two_stage
from nonneg.transforms.batches import LoopOptions, ended
from nonneg.transforms.covariances import FrameCovariances, check_eps0, covariances_of
from nonneg.transforms.initialization import first_state
from nonneg.transforms.options import method_options
from nonneg.transforms.result import TransformResult
from nonneg.transforms.working import working_frames, working_state


def joint_diagonalize(
    covariances: Any,
    *,
    eps0: float = 0.0,
    init: Any = None,
    n_starts: int = 1,
    max_iter: int = 1000,
    tol: float = 1e-8,
    retraction: str | None = None,
    search: str | None = None,
    drop: int | None = None,
    random_state: Seed = None,
    n_jobs: int | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    verbose: int = 0,
    checkpoint: str | Path | None = None,
) -> TransformResult:
    """Find the orthogonal matrix that makes given covariance matrices as diagonal as it can.

    Parameters
    ----------
    covariances : array of shape (n_matrices, m, m)
        Symmetric and without negative eigenvalues; never changed. A `FrameCovariances` is taken too.
    eps0 : float
        Added to their diagonals; needed above 0 where a matrix is singular.
    init : None, "dct" or array of shape (m, m)
        The start: random, the DCT, or a given orthogonal matrix.
    n_starts : int
        Starts that advance together; the best is kept.
    max_iter : int
        At most so many steps.
    tol : float
        Stop when the Frobenius norm of the skew gradient, over twice the number of matrices, is below it.
    retraction : {"polar", "exponential"}, optional
        How a direction becomes a rotation; "polar" by default.
    search : {"halving", "wolfe"}, optional
        The line search; "halving" by default.
    drop : int, optional
        Every so many iterations starts that could not reach the best any more are given up.
    random_state : None, int, Generator, RandomState or SeedSequence
        The source of random starts.
    n_jobs : int or None
        Threads; None takes all cores.
    callback : callable, optional
        Called with a `Progress` after each iteration; True stops.
    verbose : int
        1 shows a line with rate and time left.
    checkpoint : str or path, optional
        A folder in which the run is saved, and from which it is taken up again.

    Returns
    -------
    TransformResult
        ``transform @ covariance @ transform.T`` is nearly diagonal; its diagonals are `variances`.

    Notes
    -----
    Minimised is ``sum_n log det diag(Phi Sigma_n Phi')``, which for orthogonal matrices is Pham's criterion
    for the joint diagonalization of positive definite matrices up to a constant.

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
    >>> result = joint_diagonalize(stack, random_state=0)
    >>> bool(np.allclose(np.abs(result.transform @ Q).max(axis=1), 1.0))
    True
    """
    data = covariances if isinstance(covariances, FrameCovariances) else covariances_of(covariances)
    options = method_options("jd", eps0=eps0, retraction=retraction, search=search)
    check_eps0(data, options.eps0)
    loop = LoopOptions(
        checked_count("max_iter", max_iter, 0),
        gradient_tol=checked_nonnegative("tol", tol),
        drop=None if drop is None else checked_count("drop", drop, 1),
        callback=callback,
        verbose=verbose,
        checkpoint=checkpoint,
    )
    n_starts = checked_count("n_starts", n_starts, 1)
    with threads(n_jobs):
        starts = first_state(data, None, init=init, n_starts=n_starts, random_state=random_state)
        work = working_frames(data)
        starts = working_state(starts, work)
        batch = ended(loop.run("jd", starts, work, options, "joint diagonalization"), starts.batch)
        return best_two_stage([batch], None, work, options, loop)
