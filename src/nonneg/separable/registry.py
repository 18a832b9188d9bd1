"""The methods that choose anchors, by name, and what each accepts: errors, docs and tests read this."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from nonneg.exceptions import InvalidParameterError, UnknownNameError, UnsupportedError

EVERYWHERE = frozenset({"dense", "sparse", "array", "dask"})


@dataclass(frozen=True)
class Method:
    """A way to choose anchors and the data it accepts.

    Attributes
    ----------
    run : callable
        ``run(data, n_components, **options)`` returns a `SelectionResult`; `data` is a checked `DataMatrix`.
    summary : str
        What it does, in a few words.
    kind : str
        "greedy" (one pass over the data an anchor) or "convex" (all anchors at once).
    signed : bool
        Whether the data may have negative entries (PCA-reduced points, eigenvectors).
    inputs : frozenset of str
        The containers it takes: "dense", "sparse", "array" (PyTorch, CuPy), "dask".
    needs_n_components : bool
        Whether the number of anchors must be given.
    simplex : bool
        Whether it is made for points whose weights sum to one; others look for a cone.
    centered : bool
        Whether the points may be shifted: a method that looks at them from the origin does not find the
        corners of centred points.
    seeded : bool
        Whether `rng` matters.
    in_process : bool
        Whether it needs the points in this process: chunked data are reduced and gathered first.
    options : frozenset of str
        The keywords it takes beside `rng`.
    aliases : tuple of str
        Other names.
    """

    run: Callable[..., Any]
    summary: str
    kind: str = "greedy"
    signed: bool = True
    inputs: frozenset[str] = EVERYWHERE
    needs_n_components: bool = True
    simplex: bool = True
    centered: bool = False
    seeded: bool = False
    in_process: bool = False
    options: frozenset[str] = frozenset()
    aliases: tuple[str, ...] = ()


def _later(module: str, function: str) -> Callable[..., Any]:
    # A method's module is loaded when it first runs.
    def run(*args: Any, **keywords: Any) -> Any:
        return getattr(import_module(f"nonneg.separable.{module}"), function)(*args, **keywords)

    return run


CONVEX = frozenset({"init", "tol", "max_iter", "verbose", "callback"})
SHARED = CONVEX | {"checkpoint"}
"""Parameters of `select_anchors` itself, which several methods take; the others travel in `method_params`."""

METHODS: dict[str, Method] = {
    "merit": Method(
        _later("merit.algorithm", "merit"),
        "Frank-Wolfe on the self-dictionary problem with smoothed row sparsity, memory linear in the points",
        kind="convex",
        needs_n_components=False,
        centered=True,
        in_process=True,
        options=SHARED
        | {"lam", "mu", "t_init", "steps", "corrective_steps", "skip_converged"}
        | {"residual_tol", "change_tol", "anchor_window", "ties", "recovery"},
    ),
    "fast-gradient": Method(
        _later("fast_gradient", "fast_gradient"),
        "accelerated gradient on the self-dictionary problem with the trace as the penalty, quadratic memory",
        kind="convex",
        needs_n_components=False,
        seeded=True,
        in_process=True,
        options=CONVEX | {"lam", "memory_limit"},
        aliases=("fastgradient", "fgnsr"),
    ),
    "spa": Method(
        _later("spa", "spa"),
        "successive projections: the longest residual, then its direction taken out",
        options=frozenset({"tie_tol"}),
        aliases=("successive-projection",),
    ),
    "snpa": Method(
        _later("snpa", "snpa"),
        "successive nonnegative projections: the longest residual outside the hull of picks and origin",
        centered=True,
        options=frozenset({"tie_tol"}),
    ),
    "xray": Method(
        _later("xray", "xray"),
        "extreme rays of the cone, in the direction of the worst residual",
        signed=False,
        simplex=False,
        seeded=True,
        options=frozenset({"variant"}),
    ),
    "fast-anchor": Method(
        _later("fast_anchor", "fast_anchor"),
        "the farthest point from the affine span of the picks, then a round that checks each pick",
        centered=True,
        options=frozenset({"tie_tol", "clean_up"}),
        aliases=("fastanchor", "fast-anchor-words"),
    ),
    "preconditioned-spa": Method(
        _later("preconditioning", "preconditioned_spa"),
        "successive projections after a map that makes the anchors all but orthogonal",
        options=frozenset({"preconditioner", "tie_tol"}),
        aliases=("precspa",),
    ),
    "vca": Method(
        _later("vca", "vca"),
        "extreme points along random directions orthogonal to the picks",
        seeded=True,
        options=frozenset({"snr"}),
    ),
}


def find_method(name: str) -> Method:
    """Return the method of a name or alias."""
    return METHODS[method_name(name)]


def method_name(name: str) -> str:
    """Return the registry's name of a method, given that or an alias."""
    if isinstance(name, str):
        if name in METHODS:
            return name
        for key, method in METHODS.items():
            if name in method.aliases:
                return key
    raise UnknownNameError.of("method", name, METHODS)


def checked_params(name: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the parameters of a method, or refuse those that it does not accept."""
    accepted = METHODS[name].options - SHARED
    for key in given or {}:
        if key in SHARED:
            raise InvalidParameterError(f"Pass {key} by its own name, not in method_params.")
        if key not in accepted:
            able = [other for other, method in METHODS.items() if key in method.options]
            if able:
                raise not_accepted(name, key, able)
            raise UnknownNameError.of("method_params key", key, accepted)
    return dict(given or {})


def split_params(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords of `select_anchors`: those that are not shared by methods go into `method_params`."""
    shared = {key: value for key, value in given.items() if key in SHARED}
    return shared | {"method_params": {key: value for key, value in given.items() if key not in SHARED}}


def not_accepted(name: str, what: str, able: Iterable[str]) -> UnsupportedError:
    """Return the error about a parameter that only other methods accept."""
    names = sorted(able)
    verb = "does" if len(names) == 1 else "do"
    return UnsupportedError(f"method={name!r} does not accept {what}; only {listed(names)} {verb}.")


def listed(names: Iterable[str]) -> str:
    """Return names as a list in a sentence."""
    *first, last = (repr(name) for name in sorted(names))
    return f"{', '.join(first)} and {last}" if first else last
