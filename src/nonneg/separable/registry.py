"""The methods that choose anchors, by name, and what each accepts: errors, docs and tests read this."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from nonneg.exceptions import UnknownNameError

EVERYWHERE = frozenset({"dense", "sparse", "array", "dask"})


@dataclass(frozen=True)
class Method:
    """A way to choose anchors and the data it accepts.

    Attributes
    ----------
    run : callable
        ``run(data, n_anchors, **options)`` returns a `SelectionResult`; `data` is a checked `DataMatrix`.
    summary : str
        What it does, in a few words.
    kind : str
        "greedy" (one pass over the data an anchor) or "convex" (all anchors at once).
    signed : bool
        Whether the data may have negative entries (PCA-reduced points, eigenvectors).
    inputs : frozenset of str
        The containers it takes: "dense", "sparse", "array" (PyTorch, CuPy), "dask".
    needs_n_anchors : bool
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
    needs_n_anchors: bool = True
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


CONVEX = frozenset({"max_iter", "tol", "callback", "verbose"})

METHODS: dict[str, Method] = {
    "merit": Method(
        _later("merit.algorithm", "merit"),
        "Frank-Wolfe on the self-dictionary problem with smoothed row sparsity, memory linear in the points",
        kind="convex",
        needs_n_anchors=False,
        centered=True,
        in_process=True,
        options=CONVEX
        | {"lam", "mu", "init", "checkpoint", "t_init", "steps", "corrections", "skip"}
        | {"residual_tol", "change_tol", "anchor_window", "ties", "recovery"},
    ),
    "fast-gradient": Method(
        _later("fast_gradient", "fast_gradient"),
        "accelerated gradient on the self-dictionary problem with the trace as the penalty, quadratic memory",
        kind="convex",
        needs_n_anchors=False,
        seeded=True,
        in_process=True,
        options=CONVEX | {"lam", "init", "memory_limit"},
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
