"""Figure 5: effect of the weight and the smoothing of the row-sparsity penalty on the success rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.artifacts import Artifact, Figure, Table, Verdict
from reproduction.experiment import Experiment, Record
from reproduction.merit.anchor_trials import MERIT_ITERATIONS, MU, cost, run, settings_by_draws
from reproduction.merit.rates import Rate, rate_cell, rate_curves, success_rates
from reproduction.registry import TITLES

NAME = "merit/figure-5"
N_DRAWS = 30
SNRS = (5, 6, 7, 8, 9, 11, 13, 15)
FACTORS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
SMOOTHINGS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
ITERATIONS = (25, 50, 100)
LENGTH_SNR = 9


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per noise level, weight, smoothing, number of iterations and batch of draws."""
    common = {"data": "dirichlet", "n": 200, "n_features": 50, "n_anchors": 40, "method": "merit"}
    snrs, factors = ((9,), (0.0, 1.0, 3.0)) if quick else (SNRS, FACTORS)
    smoothings, lengths = ((1e-3,), (25,)) if quick else (SMOOTHINGS, ITERATIONS)
    usual = {"lam_factor": 1.0, "mu": MU, "max_iter": MERIT_ITERATIONS}
    cases = [usual | {"snr": snr, "lam_factor": factor} for snr in snrs for factor in factors]
    cases += [usual | {"snr": snr, "mu": mu} for snr in snrs for mu in smoothings if mu != MU]
    cases += [
        usual | {"snr": LENGTH_SNR, "lam_factor": factor, "max_iter": length}
        for factor in factors
        for length in lengths
        if length != MERIT_ITERATIONS
    ]
    # The default of the library has neither weight nor smoothing to choose.
    default = [{"snr": snr, "method": "default"} for snr in snrs]
    n_draws = 2 if quick else N_DRAWS
    return settings_by_draws(cases, n_draws, 10, common) + settings_by_draws(default, n_draws, 10, common)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the curves, tables, and the claims."""
    default = {
        snr: rate
        for (snr,), rate in success_rates(
            [record for record in records if record["method"] == "default"], "snr"
        ).items()
    }
    records = [record for record in records if record["method"] == "merit"]
    rates = success_rates(records, "snr", "lam_factor", "mu", "max_iter")
    weights = _curves(
        rates, lambda factor, mu, length: factor if (mu, length) == (MU, MERIT_ITERATIONS) else None
    )
    smooth = _curves(
        rates, lambda factor, mu, length: mu if (factor, length) == (1.0, MERIT_ITERATIONS) else None
    )
    lengths: dict[float, dict[float, Rate]] = {}
    for (snr, factor, mu, length), rate in rates.items():
        if snr == LENGTH_SNR and mu == MU:
            lengths.setdefault(factor, {})[length] = rate
    return [
        Figure(
            "weight-and-smoothing",
            "Success rate of MERIT against the signal-to-noise ratio, for multiples of the heuristic weight "
            "and for several smoothings. Bars: exact 95% intervals.",
            [
                rate_curves(
                    "weight",
                    "SNR (dB)",
                    {f"{at:g} x lambda": line for at, line in weights.items()}
                    | ({"default": default} if default else {}),
                ),
                rate_curves("smoothing", "SNR (dB)", {f"mu = {at:g}": line for at, line in smooth.items()}),
            ],
        ),
        _table(
            "Success rate by lambda, in multiples of the heuristic weight, and of the default, "
            "`select_anchors(X, 40)`.",
            "SNR (dB)",
            weights,
            "{:g} x",
            default,
        ),
        _table("Success rate by mu.", "SNR (dB)", smooth, "mu = {:g}"),
        _table(
            f"Success rate by the number of iterations, at {LENGTH_SNR} dB.", "iterations", lengths, "{:g} x"
        ),
        *_verdicts(weights, smooth),
        _beside_default(default, weights.get(1.0, {})),
    ]


def _curves(rates: dict[tuple[Any, ...], Rate], line_of: Any) -> dict[float, dict[float, Rate]]:
    lines: dict[float, dict[float, Rate]] = {}
    for (snr, factor, mu, length), rate in rates.items():
        at = line_of(factor, mu, length)
        if at is not None:
            lines.setdefault(at, {})[snr] = rate
    return dict(sorted(lines.items()))


def _table(
    caption: str,
    heading: str,
    lines: dict[float, dict[float, Rate]],
    words: str,
    default: dict[float, Rate] | None = None,
) -> Table:
    places = sorted({place for line in lines.values() for place in line})
    columns = {"at": heading} | {str(at): words.format(at) for at in sorted(lines)}
    columns |= {"default": "default"} if default else {}
    rows = [
        {"at": place}
        | {str(at): rate_cell(line.get(place)) for at, line in lines.items()}
        | ({"default": rate_cell(default.get(place))} if default else {})
        for place in places
    ]
    return Table(caption, columns, rows, 3)


def _verdicts(
    weights: dict[float, dict[float, Rate]], smooth: dict[float, dict[float, Rate]]
) -> list[Verdict]:
    heuristic, none = weights.get(1.0, {}), weights.get(0.0, {})
    low = [snr for snr in SNRS if snr <= 7]

    def total(line: dict[float, Rate]) -> Rate | None:
        parts = [line[snr] for snr in low if snr in line]
        if len(parts) < len(low) or any(rate.n < N_DRAWS for rate in parts):
            return None
        return Rate(sum(rate.successes for rate in parts), sum(rate.n for rate in parts))

    small, usual, large = (total(weights.get(factor, {})) for factor in (0.1, 1.0, 3.0))
    known = small is not None and usual is not None and large is not None
    grows = (
        max(usual.value, large.value) > small.value
        if small is not None and usual is not None and large is not None
        else None
    )
    at_nine = heuristic.get(9), none.get(9)
    gain = (
        at_nine[0].value >= 0.9 and at_nine[1].value <= 0.1
        if at_nine[0] is not None and at_nine[1] is not None and at_nine[0].n >= N_DRAWS
        else None
    )
    apart, compared = [], 0
    for snr in SNRS:
        reference = smooth.get(MU, {}).get(snr)
        for mu in SMOOTHINGS:
            rate = smooth.get(mu, {}).get(snr)
            if reference is None or rate is None or min(rate.n, reference.n) < N_DRAWS:
                continue
            compared += 1
            if not rate.agrees_with(reference):
                apart.append(f"mu = {mu:g} at {snr} dB: {rate} against {reference}")
    return [
        Verdict(
            "at low ratios (5 to 7 dB) a larger lambda works better: 1 or 3 times the heuristic weight beats "
            "a tenth of it",
            grows,
            f"{small}, {usual} and {large} for 0.1, 1 and 3 times" if known else "not enough trials",
        ),
        Verdict(
            "at 9 dB the row-sparsity penalty decides: at least 0.9 succeed with it, at most 0.1 without",
            gain,
            f"{at_nine[0]} and {at_nine[1]}",
        ),
        Verdict(
            f"mu matters little: the rates for mu = {SMOOTHINGS[0]:g} to {SMOOTHINGS[-1]:g} agree with those "
            f"for {MU:g}",
            not apart if compared == len(SNRS) * len(SMOOTHINGS) else None,
            "; ".join(apart) or f"{compared} compared",
        ),
    ]


def _beside_default(default: dict[float, Rate], published: dict[float, Rate]) -> Verdict:
    pairs = {snr: (default[snr], published[snr]) for snr in SNRS if snr in default and snr in published}
    whole = len(pairs) == len(SNRS) and all(rate.n >= N_DRAWS for rate, _ in pairs.values())
    worse = [
        f"{snr} dB: {ours} against {theirs}"
        for snr, (ours, theirs) in pairs.items()
        if ours.value < theirs.value and not ours.agrees_with(theirs)
    ]
    return Verdict(
        "the default is never below MERIT with the heuristic weight beyond sampling error",
        not worse if whole else None,
        "; ".join(worse) or f"{len(pairs)} ratios compared",
    )


EXPERIMENT = Experiment(
    NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost, supports_device=True
)
