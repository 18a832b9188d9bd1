"""Figure 3: the number of cones estimated from the singular values of noisy data, against N."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nonneg import estimate_rank
from reproduction.artifacts import (
    Artifact,
    Curves,
    Figure,
    Measured,
    Series,
    Table,
    Verdict,
)
from reproduction.cr1.cone_draws import FULL, QUICK, draw_cones
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES

NAME = "cr1/figure-3"
NOISES = (0.1, 0.5)
SIZES = (100, 200, 500, 1000, 2000, 3000, 5000, 7000, 10_000)
N_DRAWS = 50
LARGER_SIZES, N_LARGER_DRAWS = (10_000, 14_000, 20_000), 20
"""Beyond the paper: where the larger noise level leads."""
K_MIN, K_MAX = 11, 64
TO_RECOVER = {0.1: 2000, 0.5: 5000}
"""From which N on the paper finds the number of cones at a noise level."""
SMALL = {"n_drawn": 960, "n_features": 300, "n_cones": 6, "k_min": 3, "k_max": 12}
SMALL_SIZES, N_SMALL_DRAWS, BATCH = (60, 120, 240, 480, 960), 1000, 50
"""As many draws as in the paper, of fewer and shorter points in fewer cones."""


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per draw and noise level."""
    size = QUICK | {"k_min": 3, "k_max": 12} if quick else FULL | {"k_min": K_MIN, "k_max": K_MAX}
    sizes = [60, 240, 960] if quick else list(SIZES)
    found = [
        {"draw": draw, "noise": noise, "alpha": 0.3, "sizes": sizes} | size
        for draw in range(3 if quick else N_DRAWS)
        for noise in NOISES
    ]
    if quick:
        return found
    larger = {"noise": max(NOISES), "alpha": 0.3, "sizes": list(LARGER_SIZES)} | size
    larger["n_drawn"] = max(LARGER_SIZES)
    found += [{"draw": draw} | larger for draw in range(N_LARGER_DRAWS)]
    small = {"alpha": 0.3, "sizes": list(SMALL_SIZES)} | SMALL
    return found + [
        {"first_draw": first, "n_draws": BATCH, "noise": noise} | small
        for first in range(0, N_SMALL_DRAWS, BATCH)
        for noise in NOISES
    ]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run one trial: a draw, or several small ones."""
    if "first_draw" not in setting:
        return _one_draw(setting)
    draws = range(setting["first_draw"], setting["first_draw"] + setting["n_draws"])
    return [{"draw": draw} | record for draw in draws for record in _one_draw({**setting, "draw": draw})]


def _one_draw(setting: Setting) -> list[dict[str, Any]]:
    X, _, _ = draw_cones(setting)
    # Each noise level has a stream of its own, whole thousandths being its seed.
    rng = np.random.default_rng([3, round(1000 * setting["noise"]), setting["draw"]])
    X += setting["noise"] * rng.standard_normal(X.shape)
    np.maximum(X, 0.0, out=X)
    records = []
    true = setting["n_cones"]
    for n in setting["sizes"]:
        estimate = estimate_rank(X[:n], k_min=setting["k_min"], k_max=setting["k_max"])
        scores = estimate.scores
        records.append(
            {
                "n": n,
                "rank": estimate.rank,  # equation (45)
                "ratio_before": scores.get(true - 1),
                "ratio": scores.get(true),
            }
        )
    return records


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the curves, tables, and the claims."""
    small = [record for record in records if "first_draw" in record]
    records = [record for record in records if "first_draw" not in record] or small
    true = records[0]["n_cones"]
    groups = dict(sorted(grouped(records, "noise", "n").items()))
    artifacts: list[Artifact] = [
        Figure(
            "estimated-rank",
            "The estimate against N; bars: one standard deviation.",
            [_panel(groups, true)],
        ),
        _table("Estimates and ratios of singular values, mean ± standard deviation over draws.", records),
    ]
    if small and small is not records:
        caption = (
            f"The same for {SMALL['n_cones']} cones in {SMALL['n_features']} dimensions, with as many draws "
            f"as in the paper; the search is from {SMALL['k_min']} to {SMALL['k_max']}."
        )
        artifacts += [_table(caption, small), _found_in_all(small)]
    artifacts += [_recovered(records, noise, n) for noise, n in TO_RECOVER.items()]
    return artifacts


def _table(caption: str, records: Sequence[Record]) -> Table:
    true = records[0]["n_cones"]
    groups = dict(sorted(grouped(records, "noise", "n").items()))
    columns = {
        "noise": "delta",
        "n": "N",
        "draws": "draws",
        "rank": "estimate (45)",
        "found": f"K = {true} found",
        "before": f"ratio at {true - 1}",
        "ratio": f"ratio at {true}",
    }
    rows = [_row(noise, n, members, true) for (noise, n), members in groups.items()]
    return Table(caption, columns, rows)


def _found_in_all(small: Sequence[Record]) -> Verdict:
    """Judge the small draws at their largest N and the smaller noise level."""
    noise, n = min(NOISES), max(SMALL_SIZES)
    ranks = [record["rank"] for record in small if (record["noise"], record["n"]) == (noise, n)]
    found = sum(rank == SMALL["n_cones"] for rank in ranks)
    claim = (
        f"K = {SMALL['n_cones']} is found in at least 95% of {N_SMALL_DRAWS} draws of "
        f"N = {n} points in {SMALL['n_features']} dimensions for delta = {noise:g}"
    )
    met = found >= 0.95 * len(ranks) if len(ranks) >= N_SMALL_DRAWS else None
    return Verdict(claim, met, f"{found} of {len(ranks)} draws")


def _panel(groups: Mapping[tuple[Any, ...], list[Any]], true: int) -> Curves:
    series = []
    for noise in sorted({noise for noise, _ in groups}):
        by_size = {n: members for (at, n), members in groups.items() if at == noise}
        pairs = [mean_and_spread([m["rank"] for m in members]) for members in by_size.values()]
        means, spreads = [mean for mean, _ in pairs], [spread or 0.0 for _, spread in pairs]
        series.append(Series(f"delta = {noise:g}", list(by_size), means, spreads))
    sizes = sorted({n for _, n in groups})
    series.append(Series("true", sizes, [float(true)] * len(sizes), style="dashed"))
    return Curves("largest ratio (45)", "N", "estimated number of cones", series, x_log=True)


def _row(noise: float, n: int, members: Sequence[Record], true: int) -> dict[str, Any]:
    return {
        "noise": noise,
        "n": n,
        "draws": len(members),
        "rank": Measured(*mean_and_spread([m["rank"] for m in members])),
        "found": f"{100 * sum(m['rank'] == true for m in members) / len(members):.0f}%",
        "before": Measured(*mean_and_spread([m["ratio_before"] for m in members])),
        "ratio": Measured(*mean_and_spread([m["ratio"] for m in members])),
    }


def _recovered(records: Sequence[Record], noise: float, least: int) -> Verdict:
    claim = f"K = 40 is found in at least 95% of draws for delta = {noise:g}, N " + f">= {least}"
    sizes = [n for n in SIZES if n >= least]
    full = [r for r in records if r["noise"] == noise and r["n"] in sizes and r["n_cones"] == 40]
    if not full:
        return Verdict(claim, None, "no draws of that size")
    shares = {
        n: sum(record["rank"] == 40 for record in group) / len(group)
        for (n,), group in sorted(grouped(full, "n").items())
    }
    detail = ", ".join(f"N = {n}: {100 * share:.0f}%" for n, share in shares.items())
    n_draws = len([record for record in full if record["n"] == max(sizes)])
    return Verdict(claim, min(shares.values()) >= 0.95, f"{detail}; {n_draws} draws")


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    cost=lambda setting: 1.0 if "first_draw" in setting else setting["n_drawn"] / 10_000,
)
