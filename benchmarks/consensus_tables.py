"""The page of `benchmarks.consensus`: prose and tables, every figure from a record."""

from __future__ import annotations

from typing import Any

from benchmarks.records import latest
from benchmarks.tables import markdown, number

HEAD = """# Consensus NMF and cNMF

Made by `python -m benchmarks.consensus WHAT --write` with `parity`, `seeds`, `speed`, `memory`,
`signatures` and `large`. Peers are cNMF 1.7.1 and scanpy 1.11.5 from PyPI; BLAS has one thread. The records
are in [`records/consensus.jsonl`](records/consensus.jsonl).
{where}"""

PARITY = """## The same programs

cNMF's own steps (prepare, factorize, combine, consensus with `density_threshold=0.5`) run unchanged,
then with `nonneg.non_negative_factorization` in place of scikit-learn's. `ConsensusNMF` then runs on the
same counts with seeds of its own. The table shows the lowest correlation of matched consensus spectra,
over all programs.

{table}"""

SEEDS = """## When programs differ

`seeds` compares each tool with itself under another seed, and both on the same restarts. Correlations of
matched programs, in ascending order:

{table}

From the same restarts both make the same programs: outlier removal, clusters and medians agree. Where a
tool does not find one of its own programs again with another seed, restarts end in several local minima,
and with few restarts chance decides which of them is in the consensus. The silhouette does not show
this, but the recurrence does: the rarest program is in {rarest} of the restarts of the two seeds of
`ConsensusNMF`. The certificate does not call such a program stable. More restarts help."""

SPEED = """## Time and memory

Counts of {cells} cells x {genes} genes, {nonzeros} nonzeros, ranks {ranks}. cNMF's `factorize` is timed
on a few restarts of every rank, and the time of all restarts is extrapolated from them.
`ConsensusNMF.fit` is timed as a whole (restarts, clusters, and refits of all ranks), and its restarts alone.

{table}

{verdict}"""

LARGE = """## Many cells

Generated counts, as many components as planted, two threads. The whole of `ConsensusNMF.fit` is timed; the
peak is that of the process, which also made the counts. The bound is 24 GB. Other work kept the machine busy:
the seconds of all cores together tell more than the wall time.

{table}"""

SIGNATURES = """## Mutational signatures

500 simulated tumors with six planted signatures, counts of 96 types, ranks 2 to 15, Poisson resampling,
two threads. The whole of `MutationalSignatures.fit` is timed. The goal is a minute.

{table}"""


def page(records: list[dict[str, Any]]) -> str:
    """Return the page of the newest records."""
    records = latest(records, "what", "data", "k", "restarts", "who", "device", "machine", "repeat")
    kinds = ("parity", "seeds", "speed", "memory", "large", "signatures")
    by_kind = {kind: [record for record in records if record["what"] == kind] for kind in kinds}
    parts = [HEAD.format(where=_where(records))]
    if by_kind["parity"]:
        parts.append(PARITY.format(table=_parity(by_kind["parity"])))
    if by_kind["seeds"]:
        parts.append(_seeds(by_kind["seeds"]))
    if by_kind["speed"]:
        parts.append(_speed(by_kind["speed"], by_kind["memory"]))
    if by_kind["large"]:
        parts.append(LARGE.format(table=_large(by_kind["large"])))
    if by_kind["signatures"]:
        head = ("machine", "restarts per rank", "s", "s of all cores together", "signatures found")
        rows = [
            [
                one["machine"],
                str(one["restarts"]),
                number(one["s"]),
                number(one["s of all cores together"]),
                str(one["recommended"]),
            ]
            for one in by_kind["signatures"]
        ]
        parts.append(SIGNATURES.format(table=markdown(head, rows)))
    return "\n\n".join(parts) + "\n"


def _large(records: list[dict[str, Any]]) -> str:
    head = ("cells x genes", "nonzeros", "machine", "components", "restarts", "s", "s of all cores together",
            "GB before the fit", "peak GB", "mean silhouette")  # fmt: skip
    rows = []
    for one in records:
        shape = f"{one['shape'][0]:,} x {one['shape'][1]:,}"
        numbers = [number(one[key], 4) for key in ("s", "s of all cores together", "GB before the fit", "GB")]
        rows.append([shape, f"{one['nonzeros']:.1%}", one["machine"], str(one["ranks"][0]),
                     str(one["restarts"]), *numbers, f"{one['stability']:.3f}"])  # fmt: skip
    return markdown(head, rows)


def _where(records: list[dict[str, Any]]) -> str:
    """Return a line for every machine with the dates of its records."""
    dates: dict[str, list[str]] = {}
    for record in records:
        dates.setdefault(record["machine"], []).append(record["date"])
    machines = (
        f"{machine} ({min(days)})" if min(days) == max(days) else f"{machine} ({min(days)} to {max(days)})"
        for machine, days in dates.items()
    )
    return "Machines: " + "; ".join(machines) + "."


def _parity(records: list[dict[str, Any]]) -> str:
    head = ("data", "programs", "restarts", "cNMF with ours inside", "`ConsensusNMF`", "gene scores")
    names = ("cnmf with ours", "ConsensusNMF", "gene scores")
    rows = []
    for one in records:
        lowest = [f"{min(one[f'{name}, correlations']):.3f}" for name in names]
        data = f"{one['data']}, {one['shape'][0]} x {one['genes']}"
        rows.append([data, str(one["k"]), str(one["restarts"]), *lowest])
    return markdown(head, rows)


def _seeds(records: list[dict[str, Any]]) -> str:
    compared = {
        "cnmf, two seeds": "cNMF with itself, two seeds",
        "ConsensusNMF, two seeds": "`ConsensusNMF` with itself, two seeds",
        "cnmf and ConsensusNMF": "cNMF and `ConsensusNMF`",
        "same restarts, clusters of cnmf and ours": "cNMF and `ConsensusNMF`, consensus of the same restarts",
    }
    head = ("comparison", "data", "programs", "restarts", "lowest", "second", "third")
    rows, rarest = [], []
    for one in records:
        for key, title in compared.items():
            low = [f"{value:.3f}" for value in sorted(one[key])[:3]]
            rows.append([title, one["data"], str(one["k"]), str(one["restarts"]), *low])
        rarest += [f"{min(found):.0%}" for found in one["recurrence"]]
    return SEEDS.format(table=markdown(head, rows), rarest=" and ".join(rarest[-2:]))


def _speed(records: list[dict[str, Any]], peaks: list[dict[str, Any]]) -> str:
    first = records[-1]
    rows = []
    for one in records:
        device = f", {one['card']}" if one.get("card") else ""
        device += ", again in the same process" if one.get("repeat") else ""
        device += ", earlier version" if one.get("earlier") else ""
        threads = "" if one["who"].startswith("cNMF") else f", {one['threads']} threads"
        all_restarts = one.get("s for all restarts (extrapolated)", one.get("s of restarts"))
        gigabytes = one.get("GB") if one["device"] is None else None
        rows.append(
            [
                f"{one['who'].replace('ConsensusNMF', '`ConsensusNMF`')}{threads}{device}",
                one["machine"],
                str(one["restarts"]),
                number(one["s"], 4),
                number(all_restarts, 4),
                number(gigabytes, 2),
            ]
        )
    rows += [
        [
            f"`ConsensusNMF`, {one['threads']} threads, 3 iterations per restart",
            one["machine"],
            str(one["restarts"]),
            "-",
            "-",
            number(one["GB"], 2),
        ]
        for one in peaks
    ]
    head = ("", "machine", "restarts per rank", "s", "s of all restarts", "peak GB")
    return SPEED.format(
        cells=f"{first['shape'][0]:,}",
        genes=first["shape"][1],
        nonzeros=f"{first['nonzeros']:.1%}",
        ranks=f"{first['ranks'][0]} to {first['ranks'][-1]}",
        table=markdown(head, rows),
        verdict=_verdict(records),
    )


def _verdict(records: list[dict[str, Any]]) -> str:
    """Return the ratios to cNMF on two cores, and how the losses compare."""
    theirs = [one for one in records if one["who"].startswith("cNMF")]
    ours = [one for one in records if one["who"] == "ConsensusNMF"]
    said = []
    for cnmf in theirs:
        same = [one for one in ours if one["machine"] == cnmf["machine"] and one["device"] is None]
        earlier = any(one.get("earlier") for one in same[-1:])
        name = "an earlier version of `ConsensusNMF`" if earlier else "`ConsensusNMF`"
        said.append(
            f"On {cnmf['machine']}, in the same run, the restarts of {name} are "
            f"{cnmf.get('times its restarts', cnmf['times ConsensusNMF']):g} times as fast as `factorize` "
            f"(the goal is 10), and the whole of its `fit` {cnmf['times ConsensusNMF']:g} times."
        )
        if "times its restarts, in CPU s" in cnmf:
            said.append(
                "In seconds of all cores together, which other work on the machine changes less, they "
                f"take {same[-1]['CPU s of restarts']:g} s and are {cnmf['times its restarts, in CPU s']:g} "
                "times as fast."
            )
        if same:
            low = [same[-1]["lowest loss"][k] <= 1.0001 * value for k, value in cnmf["lowest loss"].items()]
            said.append(
                "Its lowest loss is at most 0.01% above that of cNMF's restarts at "
                f"{sum(low)} of {len(low)} ranks."
            )
        said += [
            f"On the GPU, {one['restarts']} restarts of every rank take {one['s']:g} s; cNMF on two cores of "
            f"{cnmf['machine'].split(',')[0]} would need "
            f"{cnmf['s'] / cnmf['restarts'] * one['restarts'] / one['s']:.0f} times as long "
            "(the goal is 100). The machines differ."
            for one in ours
            if one["device"] and not one.get("repeat")
        ]
    return "\n".join(said)
