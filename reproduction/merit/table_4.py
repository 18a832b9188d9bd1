"""Table IV: rank correlation of estimated with known memberships on co-authorship networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.artifacts import Artifact, Measured, Paragraph, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.merit.coauthor_networks import (
    METHODS,
    NEEDED,
    NETWORKS,
    lacking_sentence,
    networks_at_hand,
    published_row,
    run_method,
)
from reproduction.registry import TITLES

NAME = "merit/table-4"
N_SEEDS, N_BLOCK = 20, 5
ALLOWED = 0.002
EXACT = ("merit", "merit-0", "spoc")
PLAIN = (*EXACT, "spa")
SHOWN = METHODS | {"default": "default"}
# FastGradient holds several matrices of nodes x nodes: fewer weights where an iteration takes a second.
FAST_GRADIENT_WEIGHTS: dict[str, tuple[float | None, ...]] = {
    "dblp4": (None, 0.01, 0.1, 1.0),
    "dblp2": (None, 0.01, 0.1, 1.0),
    "dblp1": (None, 0.1),
}
FAST_GRADIENT_ITERATIONS = 100


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per network, method and its options."""
    settings: list[dict[str, Any]] = []
    n_seeds = 2 if quick else N_SEEDS
    for network in networks_at_hand(quick):
        settings += [{"network": network, "method": method} for method in (*PLAIN, "default")]
        settings += [{"network": network, "method": "merit", "recovery": "simplex"}]
        settings += [{"network": network, "method": "spoc", "unreached": "mean"}]
        for rule in ("auto", "mean", "zero"):
            settings += [
                {
                    "network": network,
                    "method": "geonmf",
                    "n_init": 1,
                    "unreached": rule,
                    "seeds": list(range(first, min(first + N_BLOCK, n_seeds))),
                }
                for first in range(0, n_seeds, N_BLOCK)
            ]
    there = set(networks_at_hand(quick))
    # The small networks first.
    for network in (name for name in FAST_GRADIENT_WEIGHTS if name in there):
        for lam in FAST_GRADIENT_WEIGHTS[network]:
            chosen = {} if lam is None else {"lam": lam}
            settings.append(
                {"network": network, "method": "fast-gradient", "max_iter": FAST_GRADIENT_ITERATIONS} | chosen
            )
    return settings


def cost(setting: Setting) -> float:
    """Return the relative cost of a trial."""
    large = {"dblp1": 8.0, "mag2": 5.0}.get(setting["network"], 1.0)
    if setting["method"] == "fast-gradient":
        return {"dblp1": 100.0, "dblp2": 25.0}.get(setting["network"], 4.0)
    return large if setting["method"].startswith("merit") else 1.0


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the tables, and the claims."""
    groups = grouped(records, "network", "method", "unreached", "recovery")
    names = list(dict.fromkeys(record["network"] for record in records))
    artifacts: list[Artifact] = [
        _main_table(groups, names),
        _parts_table(groups, names),
        *_verdicts(groups),
    ]
    missing = lacking_sentence(names)
    return [*artifacts, Paragraph(missing)] if missing else artifacts


def _value(groups: dict[tuple[Any, ...], list[dict[str, Any]]], *key: Any) -> list[float]:
    return [record["src"] for record in groups.get(key, [])]


def _cell(
    groups: dict[tuple[Any, ...], list[dict[str, Any]]], network: str, method: str, rule: Any = None
) -> Measured:
    values = _value(groups, network, method, rule, None)
    theirs = published_row("table_4_src", network).get(SHOWN[method]) if rule in (None, "auto") else None
    if method == "fast-gradient" and values:
        return Measured(max(values), published=theirs, remark=f"best of {len(values)} weights")
    mean, spread = mean_and_spread(values)
    return Measured(mean, spread, published=theirs, n_draws=max(1, len(values)))


def _main_table(groups: dict[tuple[Any, ...], list[dict[str, Any]]], names: Sequence[str]) -> Table:
    columns = {"network": "network"} | SHOWN
    rows = []
    for network in names:
        row: dict[str, Any] = {"network": NETWORKS.get(network, network)}
        for method in SHOWN:
            row[method] = _cell(groups, network, method, "auto" if method == "geonmf" else None)
        rows.append(row)
    return Table("Averaged rank correlation.", columns, rows, 4)


def _parts_table(groups: dict[tuple[Any, ...], list[dict[str, Any]]], names: Sequence[str]) -> Table:
    columns = {
        "network": "network",
        "lost": "unreached nodes",
        "merit": "MERIT, linear system",
        "simplex": "MERIT, simplex-constrained least squares",
        "spoc": "SPOC, as published",
        "spoc mean": "SPOC, mean for unreached nodes",
        "geonmf": "GeoNMF, as published",
        "geonmf mean": "GeoNMF, mean for unreached nodes",
        "geonmf zero": "GeoNMF, zeros for unreached nodes",
        "n_iter": "MERIT's iterations",
        "s": "MERIT (s, eigenvectors included)",
    }
    rows = []
    for network in names:
        merit = groups.get((network, "merit", None, None), [{}])[0]
        simplex, _ = mean_and_spread(_value(groups, network, "merit", None, "simplex"))
        rows.append(
            {
                "network": NETWORKS.get(network, network),
                "lost": merit.get("n_unreached"),
                "merit": merit.get("src"),
                "simplex": simplex,
                "spoc": _cell(groups, network, "spoc").value,
                "spoc mean": _cell(groups, network, "spoc", "mean").value,
                "geonmf": _cell(groups, network, "geonmf", "auto").value,
                "geonmf mean": _cell(groups, network, "geonmf", "mean").value,
                "geonmf zero": _cell(groups, network, "geonmf", "zero").value,
                "n_iter": merit.get("n_iter"),
                "s": merit.get("s"),
            }
        )
    return Table("Effect of the recovery and of the unreached nodes.", columns, rows, 4)


def _verdicts(groups: dict[tuple[Any, ...], list[dict[str, Any]]]) -> list[Verdict]:
    verdicts = []
    for method in EXACT:
        apart, compared = [], 0
        for network in NEEDED:
            values = _value(groups, network, method, None, None)
            theirs = published_row("table_4_src", network)[METHODS[method]]
            if values:
                compared += 1
                if abs(values[0] - theirs) > ALLOWED:
                    apart.append(f"{NETWORKS[network]}: {values[0]:.4f} against {theirs:.4f}")
        verdicts.append(
            Verdict(
                f"{METHODS[method]} is within {ALLOWED} of the published values on DBLP1, DBLP2 and DBLP4",
                not apart if compared == len(NEEDED) else None,
                "; ".join(apart) or f"{compared} compared",
            )
        )
    return [*verdicts, _geonmf_verdict(groups), _default_verdict(groups)]


def _geonmf_verdict(groups: dict[tuple[Any, ...], list[dict[str, Any]]]) -> Verdict:
    outside, shown = [], []
    for network in NEEDED:
        values = _value(groups, network, "geonmf", "auto", None)
        theirs = published_row("table_4_src", network)["GeoNMF"]
        if len(values) < N_SEEDS:
            return Verdict(
                "GeoNMF's published values lie within the range of our draws", None, "too few draws"
            )
        shown.append(f"{NETWORKS[network]} {min(values):.4f} to {max(values):.4f} ({theirs:.4f})")
        if not min(values) - ALLOWED <= theirs <= max(values) + ALLOWED:
            outside.append(NETWORKS[network])
    claim = f"GeoNMF's published values lie within {ALLOWED} of the range of our draws"
    return Verdict(claim, not outside, "; ".join(shown))


def _default_verdict(groups: dict[tuple[Any, ...], list[dict[str, Any]]]) -> Verdict:
    pairs = {
        NETWORKS[network]: (default[0], merit[0])
        for network in NEEDED
        if (default := _value(groups, network, "default", None, None))
        and (merit := _value(groups, network, "merit", None, None))
    }
    return Verdict(
        "the default's correlation is at least MERIT's on DBLP1, DBLP2 and DBLP4",
        all(ours >= theirs for ours, theirs in pairs.values()) if len(pairs) == len(NEEDED) else None,
        "; ".join(f"{name} {ours:.4f} against {theirs:.4f}" for name, (ours, theirs) in pairs.items()),
    )


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run_method,
    summarize=summarize,
    data_sets=NEEDED,
    quick_data_sets=(),
    cost=cost,
)
