"""Tables of `benchmarks.cluster`, and the model of a thousand workers."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.records import latest
from benchmarks.tables import markdown, number

COLUMNS, COMPONENTS = 500, 20


def _by_title(records: list[dict[str, Any]], title: str) -> list[dict[str, Any]]:
    return [record for record in records if record["title"] == title]


def _ratio_row(records: list[dict[str, Any]], ending: str, bar: float) -> list[list[str]]:
    local, spread = (_by_title(records, name + ending) for name in ("in memory", "cluster"))
    if not local or not spread:
        return []
    one, other = local[-1], spread[-1]
    if "failure" in one or "failure" in other:
        return [[f"iteration{ending}", "-", "-", "-", "failed: " + (one | other)["failure"], "-"]]
    ratio, apart = other["seconds"] / one["seconds"], abs(other["loss"] - one["loss"]) / one["loss"]
    size = f"{one['words'][0]}x{COLUMNS}, k={COMPONENTS}, {one['words'][1]} chunks"
    seconds = f"{number(one['seconds'])} s, {number(other['seconds'])} s"
    return [[f"iteration{ending}: {size}", seconds, number(ratio), "2", number(apart, 2), f"{bar:g}"]]


def _scaling_rows(records: list[dict[str, Any]]) -> list[list[str]]:
    rows = []
    lone = [record for record in _by_title(records, "side by side") if "failure" not in record]
    for record in records:
        if record["part"] != "scaling" or "failure" in record:
            continue
        kind, n_rows, chunks, _ = record["words"]
        here = [one for one in lone if one["machine"]["processor"] == record["machine"]["processor"]]
        alone = {one["words"][1]: one["seconds"] for one in here if kind == "weak"}
        last = record["seconds"][-1]  # of one worker
        measured = zip(*(record[name] for name in ("workers", "seconds", "moved", "resident")), strict=True)
        for workers, seconds, moved, resident in reversed(list(measured)):
            efficiency = last / seconds / (1 if kind == "weak" else workers)
            size = n_rows * (workers if kind == "weak" else 1)
            n_chunks = chunks * (workers if kind == "weak" else 1)
            without = "-" if workers not in alone else number(alone[1] / alone[workers])
            cores = str(record["machine"]["cores"])
            rows.append(
                [f"{kind}: {size}x{COLUMNS}, {n_chunks} chunks", cores, str(workers), number(seconds),
                 number(efficiency), without, number(moved / 1e6), number(resident / 1e6)]
            )  # fmt: skip
    return rows


def table(records: list[dict[str, Any]]) -> str:
    """Return the tables of the records."""
    records = latest(records, "case")
    head = ("2 processes against 2 threads", "times", "ratio", "at most", "loss apart", "at most")
    rows = _ratio_row(records, "", 1e-6) + _ratio_row(records, ", KL", 1e-3)
    parts = [markdown(head, rows)] if rows else []
    rows = _scaling_rows(records)
    if rows:
        head = ("scaling", "cores", "workers", "s/iteration", "efficiency",
                "of as many lone processes", "MB moved/iteration", "MB of a worker")  # fmt: skip
        parts.append(markdown(head, rows))
    rows = []
    for record in records:
        if "failure" in record:
            rows.append([f"{record['title']} {record['words']}", "failed", record["failure"], "-"])
        elif record["part"] == "flat":
            late = record["words"][0]
            for name, unit in (("tasks", 1), ("memory", 1e6)):
                found = " / ".join(number(value / unit, 4) for value in reversed(record[name]))
                at = f"iterations {late - 10} / {late * 2 // 5} / 10"
                what = f"scheduler's {name}{' (MB)' if unit > 1 else ''}, {at}"
                rows.append([what, found, number(record[f"ratio_{name}"]), "1.1"])
        elif record["part"] == "recovery":
            same = "the same loss to the last digit" if record["same"] else "another loss"
            usual, back = record["usual"], record.get("back", 0.0)
            what = f"killed worker: iterations lost beyond Dask's restart of {number(back)} s ({same})"
            pause = f"{number(record['iteration_of_the_kill'])} s / {number(usual)} s"
            rows.append([what, pause, number(record["iterations_lost"] - back / usual), "3"])
    if rows:
        parts.append(markdown(("what", "found", "ratio", "at most"), rows))
    costs = [record for record in _by_title(records, "overhead") if "by_threads" in record]
    if costs:
        shown = [
            [str(record["words"][0])] + [number(record[name]) for name in ("by_threads", "by_chunks")]
            + [number(1e3 * record["per_task"])]
            for record in costs
        ]  # fmt: skip
        head = (
            "chunks without work, 2 workers",
            "s/pass",
            "s/pass with a task per chunk",
            "scheduler's ms/task",
        )
        parts.append(markdown(head, shown))
        parts.append(model(costs[-1]["per_task"]))
    return "\n\n".join(parts)


def model(per_task: float) -> str:
    """Return what the design would cost on 1,000 workers with 10 TB, from the measured cost of a task."""
    # Assumptions: a core takes 1 s for 1 GB at k = 20, a link moves 1 GB/s, and X has 5,000 float64 columns.
    rate, network, columns, k = 1e9, 1e9, 5000, 20
    rows = []
    for workers, terabytes in ((10, 0.1), (100, 1.0), (1000, 10.0), (10_000, 100.0)):
        # A pass, its small results and their sums; a quarter of the time two copies of rows.
        n_tasks = round(workers * (1 + 1 + 1 / 7 + 2 / 4))
        compute = terabytes * 1e12 / workers / rate
        schedule = per_task * n_tasks
        small = columns * k * 8
        broadcast = workers * small / network  # at worst, all ask the one worker that has H first
        tree = np.ceil(np.log(workers) / np.log(8)) * (8 * small / network)
        # W and its extrapolation, in every fourth pass; at worst nothing else happens meanwhile.
        copies = terabytes * 1e12 / columns * k / workers / network / 2
        total = compute + schedule + broadcast + tree + copies
        rows.append(
            [f"{workers} workers, {terabytes:g} TB", str(n_tasks)]
            + [number(value) for value in (compute, schedule, broadcast + tree, copies, compute / total)]
        )
    head = (
        "model", "tasks", "compute (s)", "scheduler (s)", "H and sums (s)", "copies of W (s)", "efficiency"
    )  # fmt: skip
    most = 10e9 / rate / (n_tasks / workers * per_task)
    return markdown(head, rows) + (
        "\n\nThe time that the scheduler takes for tasks limits the design. At 10 GB per worker it is as "
        f"long as the workers' own at about {round(most, -2):.0f} workers. Beyond that, more workers make "
        "nothing faster."
    )
