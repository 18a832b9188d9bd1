"""learn_transform: an orthogonal transform of frames, learnt with the factorization of its variances."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from nonneg._arguments import checked_count, checked_size
from nonneg._random import Seed
from nonneg._threads import threads
from nonneg.exceptions import UnknownNameError
from nonneg.iteration import Progress
from nonneg.transforms.answers import best_transform, best_two_stage
from nonneg.transforms.batches import LoopOptions, ended
from nonneg.transforms.covariances import FrameCovariances, check_eps0, frame_covariances
from nonneg.transforms.initialization import first_state
from nonneg.transforms.options import METHODS, method_options
from nonneg.transforms.restarts import multi_start
from nonneg.transforms.result import TransformResult
from nonneg.transforms.working import working_frames, working_state


def learn_transform(
    Y: Any,
    n_components: int,
    *,
    method: str = "tl",
    eps0: float = 5e-7,
    n_starts: int = 1,
    cross_starts: bool = False,
    init: Any = None,
    max_iter: int = 200,
    tol: float = 1e-7,
    n_nmf_updates: int = 10,
    n_rotation_updates: int = 1,
    objective: str = "C",
    l1: float = 0.0,
    search: str | None = None,
    retraction: str | None = None,
    max_trials: int | None = None,
    drop: int | None = None,
    random_state: Seed = None,
    n_jobs: int | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    verbose: int = 0,
    checkpoint: str | Path | None = None,
) -> TransformResult:
    """Learn an orthogonal transform of frames together with a factorization of the power it gives.

    Parameters
    ----------
    Y : array of shape (n_realizations, n_frames, frame_length) or (n_frames, frame_length)
        Real frames, of NumPy, PyTorch or another array library; never changed. A `FrameCovariances` is taken
        too.
    n_components : int
        Of the factorization.
    method : {"tl", "jd"}
        "tl" learns transform and factors together (TL-NMF). "jd" first diagonalizes the frames' covariances
        and then factors the variances (JD+NMF): as good when there are many realizations, not when there are
        few.
    eps0 : float
        Added to variances and model, in units of power: part of what is minimised, above 0 unless every frame
        has at least as many realizations as samples. The paper has 5e-7 for its sounds, 1e-8 for its other
        data.
    n_starts : int
        Starts that advance together; the best is kept.
    cross_starts : bool
        Whether both methods are run, each also from the solutions of the other (Appendix G).
    init : None, "dct", array or tuple
        A random start, the DCT with random factors, a transform, or ``(transform, components, activations)``;
        arrays may have a leading axis of starts. Starts that are not given are random.
    max_iter : int
        At most so many iterations; for "jd" of each stage.
    tol : float
        Stop when no start's loss decreased by more than this an entry of the variances in ten iterations; the
        first stage of "jd" stops when the norm of its skew gradient, over twice the number of frames, is
        below it. 0 never stops.
    n_nmf_updates, n_rotation_updates : int
        Updates of the factors and of the transform in an iteration.
    objective : {"C", "I"}
        What "tl" minimises: C = L + I, or I alone, as the original TL-NMF did, for comparison.
    l1 : float
        Weight of the sum of the activations, for objective "I".
    search : {"wolfe", "halving"}, optional
        The line search: strong Wolfe, which ends where only rounding is left to gain, for "tl" and halving
        for "jd" by default.
    retraction : {"exponential", "polar"}, optional
        How a direction becomes a rotation: exponential for "tl" and polar for "jd" by default.
    max_trials : int, optional
        Steps that a search may try.
    drop : int, optional
        Every so many iterations, starts are given up that would not reach the best one by `max_iter` even if
        they went on at the rate of these iterations.
    random_state : None, int, Generator, RandomState or SeedSequence
        The source of random starts; start number i depends on it and on i alone.
    n_jobs : int or None
        Threads over starts; None takes all cores.
    callback : callable, optional
        Called with a `Progress` after each iteration; True stops.
    verbose : int
        1 shows a line with rate and time left.
    checkpoint : str or path, optional
        A folder in which the run is saved, and from which it is taken up again.

    Returns
    -------
    TransformResult
        Transform, factors, parts of the objective, history and certificate.

    Notes
    -----
    Minimised is ``C = sum (V + eps0) / (W H + eps0) + log(W H + eps0)`` with V the mean squares of the
    transformed frames. An iteration costs the same for any number of realizations once their covariances are
    factored.

    References
    ----------
    .. [1] Zhang, Soubies & Fevotte, Leveraging Joint-Diagonalization in Transform-Learning NMF.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg import learn_transform
    >>> frames = np.random.default_rng(0).standard_normal((30, 20, 6))
    >>> result = learn_transform(frames, 2, eps0=1e-8, max_iter=20, random_state=0)
    >>> result.certificate["decomposition"].holds
    True
    """
    if method not in METHODS:
        raise UnknownNameError.of("method", method, METHODS)
    data = Y if isinstance(Y, FrameCovariances) else frame_covariances(Y)
    n_components = checked_count("n_components", n_components, 1)
    n_starts = checked_count("n_starts", n_starts, 1)
    given = {
        "eps0": eps0,
        "n_nmf_updates": n_nmf_updates,
        "n_rotation_updates": n_rotation_updates,
        "objective": objective,
        "l1": l1,
    }
    chosen = {"search": search, "retraction": retraction, "max_trials": max_trials}
    options = method_options(method, **given, **chosen)
    check_eps0(data, options.eps0)
    loop = LoopOptions(
        checked_count("max_iter", max_iter, 0),
        checked_size("tol", tol),
        float(tol),
        None if drop is None else checked_count("drop", drop, 1),
        callback,
        verbose,
        checkpoint,
    )
    with threads(n_jobs):
        if cross_starts:
            other = method_options("jd" if method == "tl" else "tl", **given)
            both = multi_start(
                data,
                n_components,
                n_starts=n_starts,
                tl_options=options if method == "tl" else other,
                jd_options=options if method == "jd" else other,
                loop=loop,
                init=init,
                random_state=random_state,
            )
            return both.tl if method == "tl" else both.jd
        starts = first_state(data, n_components, init=init, n_starts=n_starts, random_state=random_state)
        work = working_frames(data)
        starts = working_state(starts, work)
        batch = ended(loop.run(method, starts, work, options, method), starts.batch)
        if method == "tl":
            return best_transform([batch], work, options)
        return best_two_stage([batch], starts, work, options, loop)
