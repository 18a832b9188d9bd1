"""The judge, tried on stand-ins for the contenders."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from benchmarks import memory, race, records, run, tables
from benchmarks.cases import COUNTS, LOW_RANK, POSITIVE, Case, random_init
from benchmarks.contender import CannotRunError, Outcome, Task
from benchmarks.peers import PEERS
from benchmarks.score import score
from benchmarks.update_rules import RULES
from reproduction.data import low_rank_plus_noise
from sklearn.decomposition import NMF
from sklearn.decomposition._nmf import _beta_divergence

LOSSES = ("frobenius", "kullback-leibler", "itakura-saito")


def small_dense(dtype):
    rng = np.random.default_rng(1)
    return (rng.random((60, 5)) @ rng.random((5, 40)) + 0.1 * rng.random((60, 40))).astype(dtype), "generated"


CASE = Case("small", "dense", 4, small_dense, quick=True)


def claim(**changed):
    given = {
        "name": "standin",
        "title": "A race of stand-ins",
        "loss": "frobenius",
        "cases": (CASE,),
        "reference": "scikit-learn cd",
        "passes": 20,
        "bars": (race.Bar("worst", "dense", 1e-9, 1e9),),
        "others": ("scikit-learn cd", "absent", "broken"),
    }
    return race.RaceClaim(**(given | changed))


def absent(task, passes):
    raise CannotRunError("not installed on this machine (No module named 'absent')")


def broken(task, passes):
    raise ZeroDivisionError("halfway")


STAND_INS = {**PEERS, "absent": absent, "broken": broken}


def doubling(task, target, max_seconds):
    """Reach the target with scikit-learn by doubling the passes."""
    passes, outcome = 8, None
    while outcome is None or score(task.X, outcome.W, outcome.H, task.loss) > target:
        outcome = PEERS["scikit-learn cd"](task, passes)
        passes *= 2
        if passes > 500:
            break
    return Outcome(outcome.W, outcome.H, outcome.seconds, outcome.n_iter, {"clock_seconds": outcome.seconds})


def idle(task, target, max_seconds):
    return Outcome(task.W, task.H, 1e-3, 0, {"clock_seconds": 1e-3})


@pytest.mark.parametrize("loss", LOSSES)
def test_the_judge_scores_as_scikit_learn_defines_the_losses(loss):
    X, _ = small_dense(np.float64)
    W, H = random_init(X, 4)
    assert score(X, W, H, loss) == pytest.approx(_beta_divergence(X, W, H, loss), rel=1e-10)


@pytest.mark.parametrize("loss", LOSSES[:2])
def test_sparse_data_are_scored_as_dense_ones(loss):
    X, _ = small_dense(np.float64)
    X -= np.minimum(X, np.median(X))
    W, H = random_init(X, 4)
    sparse = scipy.sparse.csr_array(X)
    assert score(sparse, W, H, loss) == pytest.approx(score(X, W, H, loss), rel=1e-10)


def test_factors_that_are_not_finite_have_no_score():
    X, _ = small_dense(np.float64)
    W, H = random_init(X, 4)
    W[3, 2] = np.nan
    assert np.isnan(score(X, W, H, "frobenius"))


def test_the_start_is_positive_and_the_same_for_every_type():
    X, _ = small_dense(np.float64)
    W, H = random_init(X, 4)
    single, _ = random_init(X.astype(np.float32), 4)
    assert min(W.min(), H.min()) > 0
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, W, rtol=1e-5)


@pytest.mark.parametrize("case", [LOW_RANK, COUNTS, POSITIVE], ids=lambda case: case.name)
def test_the_start_knows_nothing_of_the_planted_answer(case, monkeypatch):
    planted = []

    def remember(*sizes, **words):
        planted.append(low_rank_plus_noise(*sizes, **words))
        return planted[-1]

    monkeypatch.setattr("reproduction.data.low_rank_plus_noise", remember)
    X, _ = case.load(np.float64)
    W, H = random_init(X, case.n_components)
    for start, truth in ((W, planted[0].W), (H, planted[0].H)):
        assert abs(np.corrcoef(start.ravel(), truth.ravel())[0, 1]) < 0.05


def test_a_peer_that_ends_the_process_is_named(tmp_path, monkeypatch):
    def child(command, **words):
        records.mark("kl", {"claim": "kl", "case": "digits", "threads": 1, "contender": "broken"}, tmp_path)
        return subprocess.CompletedProcess(command, -6)

    monkeypatch.setattr(run.subprocess, "run", child)
    monkeypatch.setattr(run.machine, "describe", dict)
    assert run._in_a_process(["--child"], "kl", tmp_path)
    (lost,) = records.read("kl", tmp_path)
    assert lost["contender"] == "broken"
    assert "ended the process (code -6)" in lost["reason"]
    assert records.unmark("kl", tmp_path) is None


def test_scikit_learn_runs_all_its_passes_from_the_given_start():
    X, _ = small_dense(np.float64)
    W, H = random_init(X, 4)
    given = W.copy()
    outcome = PEERS["scikit-learn cd"](Task(X, W, H, "frobenius"), 7)
    np.testing.assert_array_equal(W, given)
    assert outcome.n_iter == 7
    expected = NMF(4, init="custom", tol=0, max_iter=7).fit_transform(X, W=W.copy(), H=H.copy())
    np.testing.assert_allclose(outcome.W, expected)


@pytest.mark.parametrize("name", RULES)
def test_published_update_rules_lower_the_loss_as_fast_as_multiplicative_updates(name):
    X, _ = small_dense(np.float64)
    W, H = random_init(X, 4)
    given = W.copy(), H.copy()
    task = Task(X, W, H, "kullback-leibler")
    found = [PEERS[name](task, passes) for passes in (0, 1, 2, 5, 60)]
    losses = [score(X, outcome.W, outcome.H, task.loss) for outcome in found]
    for factor, before in zip((W, H), given, strict=True):
        np.testing.assert_array_equal(factor, before)
    assert losses[0] == pytest.approx(score(X, W, H, task.loss))
    assert all(later < sooner for sooner, later in pairwise(losses))
    reference = PEERS["scikit-learn mu"](task, 60)
    assert losses[-1] < 1.02 * score(X, reference.W, reference.H, task.loss)
    with pytest.raises(CannotRunError, match="kullback-leibler"):
        PEERS[name](replace(task, loss="frobenius"), 1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_race_records_the_target_the_ratio_and_every_failure(dtype):
    settings = race.Settings(dtypes=(dtype,), repeats=2)
    found = list(race.run_claim(claim(), settings, ours=doubling, peers=STAND_INS))
    duel, others = found[0], {record["contender"]: record for record in found[1:]}
    assert duel["reached"]
    assert duel["final_loss"] <= duel["target"] * (1 + 1e-6)
    assert duel["ratio"] == pytest.approx(duel["reference_seconds"] / duel["seconds"])
    assert len(duel["all"]) == len(duel["reference_all"]) == 2
    assert others["absent"]["status"] == "cannot run"
    assert "not installed" in others["absent"]["reason"]
    assert others["broken"] == others["broken"] | {"status": "failed", "reason": "ZeroDivisionError: halfway"}
    assert others["scikit-learn cd"]["status"] == "reached"
    assert others["scikit-learn cd"]["passes"] <= 20


def test_a_missed_target_is_said_and_counts_as_nothing():
    settings = race.Settings(dtypes=("float64",), repeats=1, others=False)
    (duel,) = race.run_claim(claim(), settings, ours=idle, peers=STAND_INS)
    assert not duel["reached"]
    assert duel["excess"] > 0
    text = tables.race_table(claim(), [duel])
    assert "missed by" in text
    assert "1e-09 missed" in text


def test_a_failure_of_ours_is_recorded_with_the_reference():
    def failing(task, target, max_seconds):
        raise TypeError("no such argument")

    settings = race.Settings(dtypes=("float64",), repeats=1, others=False)
    (duel,) = race.run_claim(claim(), settings, ours=failing, peers=STAND_INS)
    assert duel["failure"] == "TypeError: no such argument"
    assert duel["reference_seconds"] > 0
    assert "TypeError: no such argument" in tables.race_table(claim(), [duel])


def test_the_fewest_passes_to_the_target_are_found():
    asked = []

    def peer(task, passes):
        asked.append(passes)
        return Outcome(np.full((2, 1), 100.0 - passes), np.ones((1, 2)), 1e-3 * passes, passes)

    task = Task(np.zeros((2, 2)), np.ones((2, 1)), np.ones((1, 2)), "frobenius")
    target = score(task.X, np.full((2, 1), 30.0), np.ones((1, 2)), "frobenius")
    found = race.to_target(peer, task, target, budget=1e9)
    assert found["status"] == "reached"
    assert 70 <= found["passes"] <= 70 * 1.05
    assert found["seconds"] == pytest.approx(1e-3 * found["passes"])


def test_a_peer_that_does_not_get_there_is_stopped_by_the_budget():
    def peer(task, passes):
        return Outcome(task.W, task.H, 1.0 * passes, passes)

    X, _ = small_dense(np.float64)
    W, H = random_init(X, 4)
    found = race.to_target(peer, Task(X, W, H, "frobenius"), 0.0, budget=100.0)
    assert found["status"] == "not reached"
    assert "passes" in found["reason"]


def test_records_keep_their_order_and_the_newest_counts(tmp_path):
    given = [{"case": "a", "v": 1.0}, {"case": "b", "v": np.float32(2)}, {"case": "a", "v": float("nan")}]
    records.append("claim", given, tmp_path)
    assert records.read("claim", tmp_path) == [
        {"case": "a", "v": 1.0},
        {"case": "b", "v": 2.0},
        {"case": "a", "v": None},
    ]
    assert records.latest(records.read("claim", tmp_path), "case") == [
        {"case": "a", "v": None},
        {"case": "b", "v": 2.0},
    ]
    assert records.read("nothing", tmp_path) == []


def test_the_bound_on_memory_is_that_of_the_claim():
    dense = np.zeros((100, 50), dtype=np.float32)
    assert memory.bound(dense, 4) == 6 * 4 * 4 * 150 + 64e6
    assert memory.bound(dense.astype(np.uint8), 4) == 6 * 8 * 4 * 150 + 64e6 + 8 * 5000
    sparse = scipy.sparse.eye_array(30, format="csr")
    assert memory.bound(sparse, 2) == 6 * 8 * 2 * 60 + 64e6 + 2 * 8 * 30


def test_peak_memory_is_seen_although_it_is_freed():
    def allocate():
        block = np.ones(40 * 2**20 // 8)
        del block

    peak, _ = memory.peak_beyond(allocate)
    assert 35 * 2**20 < peak < 60 * 2**20


def test_every_claim_has_a_page_before_there_are_records(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "DOCS", tmp_path)  # records that are committed belong to the page as well
    for name in run.NAMES:
        assert "No records yet" in run.page(name, tmp_path)


def test_a_page_is_not_replaced_by_an_empty_one(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "DOCS", tmp_path)
    (tmp_path / "memory.md").write_text("measured elsewhere")
    words = ["--only", "memory", "--tables", "--write-docs", "--results", str(tmp_path / "none")]
    assert run.main(words) == 0
    assert (tmp_path / "memory.md").read_text() == "measured elsewhere"


@pytest.mark.slow
def test_the_page_of_a_race_names_machine_command_and_data(tmp_path):
    settings = race.Settings(dtypes=("float64",), repeats=1, others=False, only_cases=("digits",))
    dense = run.RACES["frobenius_dense"]
    found = race.run_claim(dense, settings, ours=idle)
    given = run.parser().parse_args(["--threads", "1", "--cases", "digits,low rank", "--no-peers"])
    about = run.machine.describe() | {"command": run.command_of(dense.name, given)}
    records.append(dense.name, [record | {"machine": about} for record in found], tmp_path)
    text = run.page(dense.name, tmp_path)
    for expected in (
        "digits 1797x64",
        "`python -m benchmarks --only frobenius_dense --threads 1 --cases 'digits,low rank' --no-peers`",
        about["processor"],
        "scikit-learn",
        "minimum",
    ):
        assert expected in text
    json.dumps(about)


def test_unknown_claims_are_refused():
    with pytest.raises(SystemExit, match="expected some of frobenius_dense"):
        run.claims_from(run.parser().parse_args(["--only", "frobenius"]))


def test_ratios_have_a_column_per_number_of_threads():
    def duel(threads, ratio, reached=True):
        return {"case": "a", "dtype": "float64", "threads": threads, "ratio": ratio, "reached": reached}

    lines = tables._threads_table([duel(16, 3.0), duel(1, 5.0), duel(2, 4.0, reached=False)]).splitlines()
    assert [word.strip() for word in lines[0].split("|")[3:6]] == ["1 thread", "2 threads", "16 threads"]
    assert [word.strip() for word in lines[2].split("|")[3:6]] == ["5", "missed", "3"]


def test_as_many_threads_as_there_are_cores(monkeypatch):
    monkeypatch.setattr(run, "available_threads", lambda: 2)
    assert run.default_threads(quick=False) == [1, 2]
    monkeypatch.setattr(run, "available_threads", lambda: 64)
    assert run.default_threads(quick=False) == [1, 2, 16]
    assert run.default_threads(quick=True) == [1]


def test_the_newest_records_are_kept_beside_the_page(tmp_path):
    first = {"case": "a", "dtype": "float64", "threads": 1, "contender": "nonneg", "ratio": 1.0}
    records.append("c", [first, first | {"ratio": 2.0}, first | {"threads": 2}], tmp_path)
    records.keep_newest("c", tmp_path, tmp_path / "kept")
    assert [record["ratio"] for record in records.read("c", tmp_path / "kept")] == [2.0, 1.0]
