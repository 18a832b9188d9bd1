"""The tables of the benchmark on a GPU."""

from __future__ import annotations

from typing import Any

from benchmarks.records import latest
from benchmarks.tables import DASH, markdown, number


def _milliseconds(seconds: float | None) -> str:
    return DASH if seconds is None else number(1e3 * seconds)


def _met(value: float | None, land: float | None, goal: float | None, *, less: bool) -> str:
    if land is None or goal is None or value is None:
        return DASH
    if value <= goal if less else value >= goal:
        return "goal"
    return "met" if (value <= land if less else value >= land) else "missed"


def table(found: list[dict[str, Any]]) -> str:
    """Return the tables of the records."""
    newest = latest(found, "kind", "case", "dtype", "contender")
    of = {kind: [r for r in newest if r.get("kind") == kind] for kind in {r.get("kind") for r in newest}}
    parts = [_card(newest), _iteration_table(of.get("iteration", []))]
    rows = [
        [
            r["case"], r["dtype"], number(r["seconds"]),
            number(r.get("alone", r.get("steps"))), number(r["ratio"]),
            DASH if r.get("land") is None else f"{r['land']:g} / {r['goal']:g}",
            _met(r["ratio"], r.get("land"), r.get("goal"), less=r["kind"] == "whole"),
        ]
        for kind in ("whole", "restarts", "race", "fallback")
        for r in of.get(kind, [])
    ]  # fmt: skip
    parts.append(
        "Whole fits compared with their iterations alone, restarts in one batch with restarts one after "
        "another, a fit with scikit-learn's, and array operations with Triton's kernels, in seconds:\n\n"
        + markdown(("what", "type", "s", "compared with", "ratio", "minimum / goal", "target"), rows)
    )
    rows = [
        [
            r["case"], number(r["size"] / 1e9), number(r["free"] / 1e9), number(r["passes"]),
            number(r["seconds"]), number(r["size"] / r["seconds"] / 1e9), number(r["bandwidth"] / 1e9),
            f"{100 * r['ratio']:.0f}%", _met(r["ratio"], r["land"], r["goal"], less=False),
        ]
        for r in of.get("streamed", [])
    ]  # fmt: skip
    heading = (
        "X",
        "GB",
        "GB free",
        "reads per iteration",
        "s",
        "GB/s",
        "copy's GB/s",
        "fraction",
        "target (60%, goal 85%)",
    )
    if rows:
        parts.append("X larger than the memory of the card, HALS with k=40:\n\n" + markdown(heading, rows))
    rows = [
        [
            r["case"],
            number(r["operations"] / 1e9),
            number(r["alone"]),
            number(r["seconds"]),
            number(r["ratio"]),
            r["chosen"],
        ]
        for r in of.get("crossover", [])
    ]
    heading = (
        "fit of a NumPy array",
        "10^9 operations",
        "processor (s)",
        "GPU (s)",
        "ratio",
        'device="auto" takes',
    )
    if rows:
        cores = max(r.get("cores", 0) for r in of["crossover"])
        parts.append(
            f"Fits of NumPy arrays on {cores} cores and on the GPU, copies to it included. Only the first "
            "fit of a process includes the start of PyTorch and CUDA:\n\n" + markdown(heading, rows)
        )
    failed = [
        f"- {r['case']}, {r['dtype']}, {r['contender']}: {r['failure']}" for r in newest if r.get("failure")
    ]
    if failed:
        parts.append("Not measured:\n\n" + "\n".join(failed))
    return "\n\n".join(parts)


def _card(newest: list[dict[str, Any]]) -> str:
    dates = [r["machine"]["date"] for r in newest]
    most = max(dates, key=dates.count)
    about = next(r["gpu"] for r in newest if "gpu" in r and r["machine"]["date"] == most)
    peers = ", ".join(f"{name} {version or 'not installed'}" for name, version in about["peers"].items())
    rates = [
        f"{r['dtype']} products {number(r['rate'] / 1e12)} TFLOP/s, copies "
        f"{number(r['bandwidth'] / 1e12)} TB/s"
        for r in newest
        if r.get("kind") == "card"
    ]
    others = {date: {r["case"]: None for r in newest if r["machine"]["date"] == date} for date in dates}
    others.pop(most)
    when = f"Run of {most}" + ("; rows of other runs are listed after it" if others else "")
    listed = "".join(f"\n- {date}: {'; '.join(cases)}" for date, cases in sorted(others.items()))
    return (
        f"{when}. {about['card']}, driver {about['driver']}, CUDA {about['cuda']}, PyTorch "
        f"{about['torch']}, Triton {about['triton']}; {peers}. "
        f"Products and copies of the card: {'; '.join(rates)}." + ("\n" + listed if listed else "")
    )


def _iteration_table(found: list[dict[str, Any]]) -> str:
    rows = []
    for r in found:
        ours = r["contender"] == "nonneg"
        if r.get("failure"):
            continue
        rows.append(
            [
                r["case"] if ours else f"  {r['contender']}", r["dtype"], _milliseconds(r["seconds"]),
                _milliseconds(r.get("products")), _milliseconds(r.get("limit")),
                f"{100 * r['limit'] / r['seconds']:.0f}%" if ours else DASH,
                f"{r['land']:g} / {r['goal']:g}" if r.get("land") else DASH,
                _met(1e3 * r["seconds"], r.get("land"), r.get("goal"), less=True),
                f"{r['extra_bytes'] / 1e6:.0f} of {r['allowed_bytes'] / 1e6:.0f}" if ours else DASH,
            ]
        )  # fmt: skip
    heading = (
        "iteration", "type", "ms", "bare products", "limit", "limit / ms", "minimum / goal", "target",
        "MB beyond X",
    )  # fmt: skip
    return "Milliseconds per iteration:\n\n" + markdown(heading, rows)
