"""The methods that select anchors, by name, and what each accepts: errors, docs and tests read this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nonneg._registry import Entry, Registry
from nonneg.exceptions import InvalidParameterError, UnsupportedError

ALL_CONTAINERS = frozenset({"dense", "sparse", "array", "dask", "streamed"})


@dataclass(frozen=True, kw_only=True)
class Method(Entry):
    """A way to select anchors: ``run(data, n_components, **parameters)`` returns a `SelectionResult`."""

    # "greedy" (one pass over the data per anchor), "convex" (all anchors at once) or "choice" (between the
    # results of others).
    kind: str = "greedy"
    signed: bool = True  # whether the data may have negative entries (PCA-reduced samples, eigenvectors)
    # The containers it accepts. Without "sparse-array", sparse tensors and those of CuPy are moved to the
    # host.
    inputs: frozenset[str] = ALL_CONTAINERS
    simplex: bool = True  # whether it is made for samples whose weights sum to one; others look for a cone
    affine: bool = False  # whether its result does not depend on the origin: zeros are a vertex like others
    averages: bool = False  # whether its vertices are averages of samples (`SelectionResult.components`)
    # Whether the samples may be centered: a method that depends on the origin does not find the vertices of
    # centered samples.
    centered: bool = False
    seeded: bool = False  # whether it draws random numbers (`rng`)
    in_process: bool = False  # whether chunked data are reduced and gathered in this process first
    shared: frozenset[str] = frozenset()  # the parameters in `SHARED` that it accepts


CONVEX = frozenset({"init", "tol", "max_iter", "verbose", "callback"})
SHARED = CONVEX | {"checkpoint"}
"""Parameters of `select_anchors` itself, which several methods take; the others travel in `method_params`."""

METHODS: Registry[Method] = Registry(
    "method",
    {
        "auto": Method(
            "nonneg.separable.auto:auto",
            "SPA, SNPA, smoothed SPA and MERIT propose; the anchors that leave the smallest residual win",
            kind="choice",
            in_process=True,
            shared=SHARED - {"init"},
        ),
        "merit": Method(
            "nonneg.separable.merit:merit",
            "the self-dictionary problem with row sparsity, by Frank-Wolfe as published, in linear memory",
            kind="convex",
            centered=True,
            in_process=True,
            shared=SHARED,
            options=frozenset({"lam", "mu", "t_init", "recovery"}),
        ),
        "merit-exact": Method(
            "nonneg.separable.merit_exact:merit_exact",
            "the same problem without smoothing, solved to a duality gap over working sets",
            kind="convex",
            centered=True,
            in_process=True,
            shared=SHARED,
            options=frozenset({"lam", "n_explained"}),
        ),
        "fast-gradient": Method(
            "nonneg.separable.fast_gradient:fast_gradient",
            "accelerated gradient on the self-dictionary problem with a trace penalty, in quadratic memory",
            kind="convex",
            seeded=True,
            in_process=True,
            shared=CONVEX,
            options=frozenset({"lam", "memory_limit"}),
        ),
        "spa": Method(
            "nonneg.separable.spa:spa",
            "successive projections: the largest residual, whose direction is then projected out",
            inputs=ALL_CONTAINERS | {"sparse-array"},
            options=frozenset({"tie_tol"}),
        ),
        "snpa": Method(
            "nonneg.separable.snpa:snpa",
            "successive nonnegative projections: the largest residual outside the hull of anchors and origin",
            centered=True,
            options=frozenset({"tie_tol"}),
        ),
        "xray": Method(
            "nonneg.separable.xray:xray",
            "extreme rays of the cone, in the direction of the largest residual",
            signed=False,
            simplex=False,
            seeded=True,
            options=frozenset({"variant"}),
        ),
        "fast-anchor": Method(
            "nonneg.separable.fast_anchor:fast_anchor",
            "the sample farthest from the affine span of the anchors, then a clean-up pass",
            affine=True,
            centered=True,
            options=frozenset({"tie_tol", "clean_up"}),
        ),
        "smoothed-spa": Method(
            "nonneg.separable.smoothed:smoothed_spa",
            "successive projections onto averages of the samples that are extreme in the same direction",
            affine=True,
            averages=True,
            centered=True,
            options=frozenset({"n_members"}),
        ),
        "vca": Method(
            "nonneg.separable.vca:vca",
            "extreme samples along random directions orthogonal to the anchors",
            seeded=True,
            options=frozenset({"snr"}),
        ),
    },
)


def checked_params(name: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the parameters of a method, or refuse those that it does not accept."""
    for key in params or {}:
        if key in SHARED:
            raise InvalidParameterError(f"Pass {key} by its own name, not in method_params.")
    METHODS.check_options(name, params or {})
    return dict(params or {})


def split_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords of `select_anchors`: those that are not shared by methods go into `method_params`."""
    shared = {key: value for key, value in params.items() if key in SHARED}
    return shared | {"method_params": {key: value for key, value in params.items() if key not in SHARED}}


def not_accepted(name: str, what: str, able: Iterable[str]) -> UnsupportedError:
    """Return the error about a parameter that only other methods accept."""
    names = sorted(able)
    verb = "does" if len(names) == 1 else "do"
    return UnsupportedError(f"method={name!r} does not accept {what}; only {listed(names)} {verb}.")


def listed(names: Iterable[str]) -> str:
    """Return names as a list in a sentence."""
    *first, last = (repr(name) for name in sorted(names))
    return f"{', '.join(first)} and {last}" if first else last
