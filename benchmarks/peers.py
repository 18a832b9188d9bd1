"""The peers behind one interface: same initialization, data and dtype; a given number of iterations.

Layout changes that a peer needs (Fortran order, CSC) are made before its clock starts.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks import update_rules
from benchmarks.contender import CannotRunError, Outcome, Peer, Task, quiet, stopwatch

VERSIONS = {"scikit-learn": None, "pyplanc": "0.0.2", "nmf-rs": "0.1.0"}
"""The peers and the version to which each is pinned; None: the one that the project is tested with."""


def _scikit_learn(solver: str) -> Peer:
    def run(task: Task, passes: int) -> Outcome:
        from sklearn.decomposition import NMF

        model = NMF(
            task.n_components, init="custom", solver=solver, beta_loss=task.loss, tol=0, max_iter=passes
        )
        if solver == "cd" and task.loss != "frobenius":
            raise CannotRunError(f"its solver 'cd' cannot minimize {task.loss}")
        W, H = task.W.copy(), task.H.copy()
        with quiet(), stopwatch() as seconds:
            W = model.fit_transform(task.X, W=W, H=H)
            taken = seconds()
        return Outcome(W, model.components_, taken, int(model.n_iter_))

    return run


def _pyplanc(algorithm: str) -> Peer:
    def run(task: Task, passes: int) -> Outcome:
        pyplanc = _imported("pyplanc")
        if task.loss != "frobenius":
            raise CannotRunError(f"it cannot minimize {task.loss}")
        if task.X.dtype != np.float64:
            raise CannotRunError("it computes in float64 only")
        if scipy.sparse.issparse(task.X):
            X = scipy.sparse.csc_matrix(task.X)
        else:
            X = np.asfortranarray(task.X)
        W, H = np.array(task.W, order="F"), np.array(task.H.T, order="F")
        with quiet(), stopwatch() as seconds:
            result = pyplanc.nmf(
                X, task.n_components, niter=passes, algo=algorithm, ncores=task.threads, Winit=W, Hinit=H
            )
            taken = seconds()
        return Outcome(np.asarray(result.W), np.asarray(result.H).T, taken, passes)

    return run


def _nmf_rs(method: str, loss: str) -> Peer:
    def run(task: Task, passes: int) -> Outcome:
        nmf_rs = _imported("nmf_rs")
        if task.loss != loss:
            raise CannotRunError(f"its method {method!r} cannot minimize {task.loss}")
        if scipy.sparse.issparse(task.X):
            raise CannotRunError("it takes dense data only")
        if task.X.dtype != np.float64:
            raise CannotRunError("it computes in float64 only")
        nmf_rs.set_num_threads(task.threads)
        W, H = task.W.copy(), task.H.copy()
        with quiet(), stopwatch() as seconds:
            result = nmf_rs.nmf(
                task.X,
                task.n_components,
                method=method,
                W0=W,
                H0=H,
                max_iter=passes,
                stop="max_iter",
                num_threads=task.threads,
            )
            taken = seconds()
        return Outcome(result.W, result.H, taken, int(result.n_iter))

    return run


def _imported(module: str) -> Any:
    try:
        return __import__(module)
    except ImportError as error:
        raise CannotRunError(f"not installed on this machine ({error})") from error


PEERS: dict[str, Peer] = {
    "scikit-learn cd": _scikit_learn("cd"),
    "scikit-learn mu": _scikit_learn("mu"),
    "pyplanc anlsbpp": _pyplanc("anlsbpp"),
    "pyplanc hals": _pyplanc("hals"),
    "nmf-rs hals": _nmf_rs("hals", "frobenius"),
    "nmf-rs ehals": _nmf_rs("ehals", "frobenius"),
    "nmf-rs lee": _nmf_rs("lee", "frobenius"),
    "nmf-rs brunet": _nmf_rs("brunet", "kullback-leibler"),
    **update_rules.RULES,
}


def versions() -> dict[str, str]:
    """Return the installed version of every peer."""
    found = {}
    for name, pinned in VERSIONS.items():
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
            continue
        found[name] = version if pinned in (None, version) else f"{version} (pinned: {pinned})"
    return found


def load_all() -> None:
    """Import every peer that is installed, so that the limits on threads reach them all."""
    import sklearn.decomposition  # noqa: F401 (loaded for its libraries)

    for module in ("pyplanc", "nmf_rs", "nonneg"):
        try:
            __import__(module)
        except ImportError:
            continue
