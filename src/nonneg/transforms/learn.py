"""learn_transform: an orthogonal transform of frames, learned together with the NMF of its variances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._arguments import checked_count, checked_nonnegative, typed
from nonneg._arrays import to_numpy
from nonneg._random import Seed
from nonneg._threads import threads
from nonneg.iteration import Progress
from nonneg.solvers.factorize import checked_rank
from nonneg.transforms.covariances import FrameCovariances, check_eps0, frame_covariances
from nonneg.transforms.initialization import initial_state
from nonneg.transforms.joint_diagonalization import joint_diagonalize
from nonneg.transforms.loop import LoopOptions
from nonneg.transforms.options import METHODS, method_options
from nonneg.transforms.reduction import reduced_frames, reduced_state
from nonneg.transforms.restarts import best_jd, best_tl, cross_init
from nonneg.transforms.result import TransformResult

# Of the joint diagonalization for init="jd": enough for an initialization, which the iterations improve.
JD_ITERATIONS = 60


def learn_transform(
    Y: Any,
    n_components: int,
    *,
    method: str = "tl",
    eps0: float = 5e-7,
    n_init: int = 1,
    init: Any = None,
    cross_initialize: bool = False,
    max_iter: int = 200,
    tol: float = 1e-7,
    rng: Seed = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    callback: Callable[[Progress], bool | None] | None = None,
    checkpoint: str | Path | None = None,
    method_params: Mapping[str, Any] | None = None,
) -> TransformResult:
    """Learn an orthogonal transform of frames together with an NMF of the power it gives.

    Parameters
    ----------
    Y : array of shape (n_realizations, n_frames, frame_length) or (n_frames, frame_length)
        Real frames, of NumPy, PyTorch or another array library; never changed. A `FrameCovariances` is
        accepted too.
    n_components : int
        The number of components.
    method : {"tl", "jd", "dct"}, default "tl"
        "tl" learns transform and factors together (TL-NMF). "jd" first diagonalizes the covariances of the
        frames and then factors the variances (JD+NMF): as good when there are many realizations, not when
        there are few. "dct" keeps the discrete cosine transform, for comparison.
    eps0 : float, default 5e-7
        Added to variances and model, in units of power: part of the objective, above 0 unless every frame has
        at least as many realizations as samples. The paper has 5e-7 for its sounds, 1e-8 for its other data.
    n_init : int, default 1
        The number of restarts; the best is kept.
    init : None, {"random", "dct", "jd"}, array or tuple
        A random initialization; the DCT, or for "tl" a joint diagonalizer, with random
        factors; a transform; or ``(transform, components, activations)``; arrays may have a leading axis of
        restarts. Restarts that are not given are random.
    cross_initialize : bool, default False
        Whether both methods are run, each also from the solutions of the other (Appendix G).
    max_iter : int, default 200
        Maximum number of iterations; for "jd" of each stage.
    tol : float, default 1e-7
        Stop when the loss of no restart decreased by more than this per entry of the variances in ten
        iterations; the first stage of "jd" stops when the norm of its skew gradient, over twice the number of
        frames, is below it. 0 never stops.
    rng : None, int, Generator, RandomState or SeedSequence
        The source of random initializations; restart number i depends on it and on i alone.
    n_jobs : int or None
        Number of threads; None uses all cores.
    verbose : int, default 0
        1 shows a progress line.
    callback : callable, optional
        Called with a `Progress` after each iteration; returns True to stop.
    checkpoint : str or path, optional
        A folder in which the run is saved, and from which it is resumed.
    method_params : dict, optional
        Parameters of the method: ``n_nmf_updates`` (10) and ``n_rotation_updates`` (1), updates of the
        factors and of the transform per iteration; ``max_trials``, the maximum number of steps of a line
        search; for "tl" also ``line_search``, "wolfe" (strong Wolfe conditions, the default) or
        "backtracking", by which "jd" searches.

    Returns
    -------
    TransformResult
        Transform, factors, parts of the objective, history and certificate.

    Notes
    -----
    The objective is ``C = sum (V + eps0) / (W H + eps0) + log(W H + eps0)`` with V the mean squares of the
    transformed frames. An iteration costs the same for any number of realizations once their covariances are
    factored. There is no `sample_weight`: the objective counts every frame once.

    References
    ----------
    .. [1] Zhang, Soubies & Fevotte, Leveraging Joint-Diagonalization in Transform-Learning NMF.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg import learn_transform
    >>> frames = np.random.default_rng(0).standard_normal((30, 20, 6))
    >>> result = learn_transform(frames, 2, eps0=1e-8, max_iter=20, rng=0)
    >>> result.certificate["decomposition"].holds
    True
    """
    typed(learn_transform, locals())
    method = METHODS.name_of(method)
    data = Y if isinstance(Y, FrameCovariances) else frame_covariances(Y)
    n_components = checked_rank(n_components, (data.n_frames, data.frame_length), "learn_transform")
    n_init = checked_count("n_init", n_init, 1)
    METHODS.check_options(method, params := dict(method_params or {}))
    options = method_options(method, eps0=eps0, **params)
    check_eps0(data, options.eps0)
    tol = checked_nonnegative("tol", tol)
    loop = LoopOptions(
        max_iter=checked_count("max_iter", max_iter, 0),
        tol=tol,
        gradient_tol=tol,
        callback=callback,
        verbose=verbose,
        checkpoint=checkpoint,
    )
    with threads(n_jobs):
        if method == "dct" and not isinstance(init, tuple | list):
            init = "dct"
        elif isinstance(init, str) and init == "jd":
            init = None
            if method == "tl":  # a joint diagonalizer for every restart
                first = joint_diagonalize(data, eps0=options.eps0, max_iter=JD_ITERATIONS, rng=rng)
                init = np.repeat(to_numpy(first.transform)[None], n_init, axis=0)
        if cross_initialize and method != "dct":
            shared = ("n_nmf_updates", "n_rotation_updates")
            common = {name: params[name] for name in shared if name in params}
            other = method_options("jd" if method == "tl" else "tl", eps0=eps0, **common)
            both = cross_init(
                data,
                n_components,
                n_init=n_init,
                tl_options=options if method == "tl" else other,
                jd_options=options if method == "jd" else other,
                loop=loop,
                init=init,
                rng=rng,
            )
            return both.tl if method == "tl" else both.jd
        work = reduced_frames(data)
        inits = reduced_state(initial_state(data, n_components, init=init, n_init=n_init, rng=rng), work)
        if method == "jd":
            return best_jd([loop.run("jd", inits, work, options)], inits, work, options, loop)
        batch = loop.run("tl", inits, work, options, method)
        return replace(best_tl([batch], work, options), method=method)
