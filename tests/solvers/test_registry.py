"""Declarations, choices and refusals of the registry of solvers."""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace

import pytest

from nonneg.exceptions import InvalidParameterError, UnknownNameError, UnsupportedError, UnsupportedInputError
from nonneg.solvers.registry import COORDINATE_DESCENT, SOLVERS, beta_of, loss_name
from nonneg.solvers.registry import choose_solver as choose


def choose_solver(name, *, container, shape, k, beta, missing):
    """Choose for data of which only this is known."""
    data = SimpleNamespace(
        container=container, shape=shape, has_missing=missing, counted_rows=lambda: shape[0]
    )
    return choose(name, data, k, beta)


CALL = {"container": "dense", "shape": (100, 80), "k": 5, "beta": 2.0, "missing": False}


@pytest.mark.parametrize(
    ("loss", "beta"),
    [("frobenius", 2.0), ("kullback-leibler", 1.0), ("itakura-saito", 0.0), (2, 2.0), (0.5, 0.5), (-1, -1.0)],
)
def test_losses_have_names_and_numbers(loss, beta):
    assert beta_of(loss) == beta
    if isinstance(loss, str):
        assert loss_name(beta) == loss


def test_other_losses_are_named_by_their_number():
    assert loss_name(0.5) == "beta-divergence (beta=0.5)"


@pytest.mark.parametrize("loss", [None, [], float("nan"), float("inf"), object()])
def test_a_loss_that_is_no_number_is_refused(loss):
    with pytest.raises(InvalidParameterError, match="beta_loss must be a name or a number between"):
        beta_of(loss)


def test_an_unknown_loss_says_the_near_ones():
    with pytest.raises(UnknownNameError, match=r"beta_loss='frobenious' is not known.*mean 'frobenius'"):
        beta_of("frobenious")


def test_an_unknown_solver_says_the_near_ones():
    with pytest.raises(UnknownNameError, match=r"solver='halls' is not known.*Did you mean 'hals'"):
        choose_solver("halls", **CALL)


def test_a_name_may_be_a_member_of_an_enumeration():
    class Choice(str, Enum):  # noqa: UP042 (its text is not its value)
        solver = "mu"

    assert choose_solver(Choice.solver, **CALL) == "mu"


@pytest.mark.parametrize("name", SOLVERS)
def test_a_solver_refuses_losses_it_cannot_minimize_and_names_those_that_can(name):
    refused = [beta for beta in (2.0, 1.0, 0.0, 0.5, 3.0) if not SOLVERS[name].minimizes(beta)]
    for beta in refused:
        with pytest.raises(UnsupportedError, match=r"does not minimize beta_loss.*Solvers that do") as caught:
            choose_solver(name, **{**CALL, "beta": beta})
        assert "'mu'" in str(caught.value)
    assert refused or name in ("mu", "newton")


def test_sparse_data_are_refused_where_every_zero_would_count():
    with pytest.raises(UnsupportedInputError, match=r"every zero to be stored.*toarray"):
        choose_solver("mu", **{**CALL, "container": "sparse", "beta": 0.5})
    with pytest.raises(UnsupportedInputError, match=r"does not take dask data. Solvers that do"):
        choose_solver("kl-cd", **{**CALL, "container": "dask", "beta": 1.0})


@pytest.mark.parametrize("beta", [2.0, 1.0])
def test_coordinate_descent_is_that_of_the_loss(beta):
    assert choose_solver("cd", **{**CALL, "beta": beta}) == COORDINATE_DESCENT[beta]


def test_coordinate_descent_for_another_loss_is_refused():
    with pytest.raises(UnsupportedError, match=r"solver 'cd' does not handle.*itakura-saito.*'newton'"):
        choose_solver("cd", **{**CALL, "beta": 0.0})


@pytest.mark.parametrize("container", ["dense", "sparse", "array", "dask"])
@pytest.mark.parametrize("beta", [2.0, 1.0, 0.0, 1.5, 0.5])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("shape", [(100, 80), (21025, 200), (50, 40000), (3, 3)])
def test_the_automatic_choice_is_one_that_can(container, beta, missing, shape):
    if container == "sparse" and not 1 <= beta <= 2:
        return
    if missing and beta not in (1.0, 2.0):
        return
    name = choose_solver("auto", container=container, shape=shape, k=16, beta=beta, missing=missing)
    assert SOLVERS[name].minimizes(beta)
    assert SOLVERS[name].takes(container, beta)
    assert not missing or SOLVERS[name].takes_missing(beta)


def test_tall_narrow_data_are_left_to_block_pivoting_and_others_to_hals():
    assert choose_solver("auto", **{**CALL, "shape": (21025, 200), "k": 16}) == "anls"
    assert choose_solver("auto", **{**CALL, "shape": (400, 4096), "k": 40}) == "hals"
    assert choose_solver("auto", **{**CALL, "container": "sparse", "shape": (9394, 36771), "k": 30}) == "hals"


def test_every_solver_says_what_it_is_and_what_tol_means():
    for solver in SOLVERS.values():
        assert solver.summary
        assert solver.tol
        assert solver.inputs <= {"dense", "sparse", "array", "dask", "streamed"}


def test_missing_entries_are_refused_by_name():
    missing = {**CALL, "missing": True}
    with pytest.raises(
        UnsupportedError, match=r"'anls' .*'frobenius' .* missing entries.*\['hals', 'newton'\]"
    ):
        choose_solver("anls", **missing)
    with pytest.raises(UnsupportedError, match=r"'mu' .*Solvers that do for this loss: \['newton'\]"):
        choose_solver("mu", **{**missing, "beta": 1.5})
    assert choose_solver("mu", **{**missing, "beta": 1.0}) == "mu"
    assert choose_solver("newton", **{**missing, "beta": 0.0}) == "newton"


@pytest.mark.parametrize(("container", "way"), [("sparse", "toarray"), ("sparse-array", "to_dense")])
def test_zeros_of_sparse_data_are_stored_in_the_way_of_their_library(container, way):
    for beta in (0.99, 2.01):
        with pytest.raises(UnsupportedInputError, match=f"every zero to be stored.*{way}"):
            choose_solver("newton", **{**CALL, "container": container, "beta": beta})
    for beta in (1.0, 1.5, 2.0):
        assert choose_solver("newton", **{**CALL, "container": container, "beta": beta}) == "newton"
    with pytest.raises(UnsupportedInputError, match="solver='kl-cd' does not take sparse-array data"):
        choose_solver("kl-cd", **{**CALL, "container": "sparse-array", "beta": 1.0})
