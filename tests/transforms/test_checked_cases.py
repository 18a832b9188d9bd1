"""Gradients, directions, one update of the factors and whole runs against the checked cases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.transforms.cases import CASES, checked_case, paper_objective

from nonneg import learn_transform
from nonneg.kernels.majorization_equalization import portable_update_factors as update_factors
from nonneg.transforms import frame_covariances
from nonneg.transforms.initialization import initial_state
from nonneg.transforms.loop import ARRAY_STEPS
from nonneg.transforms.objective import DiagonalityObjective, FitObjective
from nonneg.transforms.options import method_options
from nonneg.transforms.rotations.group import skew_part
from nonneg.transforms.steps import newton_direction


def first(case: Any) -> Any:
    data = frame_covariances(case.Y)
    return data, initial_state(data, 5, init=case.init, n_init=1, rng=None)


def off_diagonal(A: np.ndarray) -> np.ndarray:
    return A[~np.eye(len(A), dtype=bool)]


@pytest.mark.parametrize("name", CASES)
def test_gradients_curvatures_and_directions(name: str) -> None:
    case = checked_case(name)
    data, state = first(case)
    n = data.n_frames
    fit = FitObjective(data, case.eps0, 1.0 / (state.activations @ state.components + case.eps0))
    for objective, letters, scale in (
        (fit, "tl", 2.0),
        (DiagonalityObjective(data, case.eps0), "jd", 2.0 * n),
    ):
        point = objective.at(state.transform)
        gradient, curvature = objective.gradient(point), objective.curvature(point)
        # The common factor of the notes; the diagonal has no part in a rotation.
        expected = off_diagonal(case.stored[f"{letters}_G"])
        assert np.allclose(off_diagonal(gradient[0]) / scale, expected, rtol=1e-10, atol=1e-10)
        known = case.stored[f"{letters}_Gamma"]
        symmetric = 0.5 * (known + known.T) - (1.0 if letters == "jd" else 0.0)
        assert np.allclose(off_diagonal(curvature[0]) / scale, off_diagonal(symmetric), rtol=1e-10)
        direction = newton_direction(skew_part(gradient), curvature)[0]
        assert np.allclose(direction, case.stored[f"{letters}_E"], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_one_update_of_the_factors(name: str) -> None:
    case = checked_case(name)
    data, state = first(case)
    V = data.variances(state.transform[0])[None]
    activations, components, _ = update_factors(V, case.eps0, state.activations, state.components, 1)
    assert np.allclose(components[0].T, case.stored["W_me1"], rtol=1e-12, atol=0)
    assert np.allclose(activations[0].T, case.stored["H_me1"], rtol=1e-12, atol=0)


def portable_end(case: Any, method: str, n_iter: int, search: str) -> float:
    """C after some iterations of the array code, whatever compiled code there is."""
    data, state = first(case)
    options = method_options(method, eps0=case.eps0, line_search=search)
    for _ in range(n_iter):
        state, measures = ARRAY_STEPS[method](state, data, options)
    if method == "jd":
        V = data.variances(state.transform[0])[None]
        options = replace(options, n_nmf_updates=10 * n_iter)
        measures = ARRAY_STEPS["nmf"](_factors(state), V, options)[1]
    return float(measures["C"][0])


def _factors(state: Any) -> Any:
    from nonneg.transforms.state import FactorState

    return FactorState(state.activations, state.components)


@pytest.mark.covering(2)
@pytest.mark.parametrize(("n_iter", "accuracy"), [(1, 1e-9), (100, 1e-5)])
@pytest.mark.parametrize(
    ("label", "method", "search"),
    [("a1wolfe", "tl", "wolfe"), ("a1backtrack", "tl", "backtracking"), ("a2", "jd", "backtracking")],
)
@pytest.mark.parametrize("name", CASES)
def test_runs(name: str, label: str, method: str, search: str, n_iter: int, accuracy: float) -> None:
    case = checked_case(name)
    known = (case.stored[f"{label}_{letter}_J{n_iter}"] for letter in ("Phi", "W", "H"))
    expected = paper_objective(case.Y, *known, case.eps0)
    result = learn_transform(
        case.Y,
        5,
        method=method,
        eps0=case.eps0,
        init=case.init,
        max_iter=n_iter,
        tol=0,
        method_params={"line_search": search} if method == "tl" else None,
    )
    assert result.n_iter == n_iter
    assert result.objective == pytest.approx(expected, rel=accuracy)
    mine = paper_objective(case.Y, result.transform, result.H.T, result.W.T, case.eps0)
    assert result.objective == pytest.approx(mine, rel=1e-12)
    assert portable_end(case, method, n_iter, search) == pytest.approx(expected, rel=accuracy)
