"""Figure 3: the eight most significant atoms, the components and the activations of two music notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg import TransformNMF
from nonneg.datasets.music_notes import FREQUENCIES, SAMPLE_RATE
from nonneg.transforms import TransformResult
from reproduction.artifacts import Artifact, Curves, Figure, Series, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.registry import TITLES
from reproduction.scores import atoms_per_frequency
from reproduction.tlnmf.both_methods import cost, drawn_frames, parameters, solve_both
from reproduction.tlnmf.sinusoids import fit_sinusoids

NAME = "tlnmf/figure-3"
METHODS = {"tl": "TL-NMF", "jd": "JD+NMF", "default": "default, TransformNMF(2)"}
N_ATOMS = 8
TARGETS = sorted(harmonic * frequency for frequency in FREQUENCIES for harmonic in (1, 2))
# What separates sinusoids from mixtures of them, and how near a frequency is (Hz).
LARGEST_RESIDUAL, WITHIN = 0.06, 0.5
N_DRAWS = 3


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per number of realizations and draw."""
    if quick:
        return [{"kind": "music", "S": S, "draw": 0, "n_init": 1, "max_iter": 2} for S in (1, 100)]
    given = parameters("music")
    common = {"kind": "music", "n_init": given["P"], "max_iter": given["J"]}
    drawn = [{"S": S, "draw": draw} for draw in range(N_DRAWS) for S in (1, 100)]
    default = {"kind": "music", "default": True, "n_init": 1, "max_iter": 200}
    return [*(one | common for one in drawn), *(one | default for one in drawn)]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run both methods on one draw, or what `TransformNMF` does by default."""
    if setting.get("default"):
        Y = drawn_frames("music", setting["S"], setting["draw"])
        model = TransformNMF(2, max_iter=setting["max_iter"], random_state=setting["draw"]).fit(Y)
        assert model.result_ is not None
        return [{"method": "default", "choice": model.choice_.name} | described(model.result_)]
    both, _ = solve_both(setting)
    return [{"method": name} | described(result) for name, result in (("tl", both.tl), ("jd", both.jd))]


def described(result: TransformResult) -> dict[str, Any]:
    """Return the atoms with most power, the sinusoids nearest to them, and the factors, as plain values."""
    power = np.asarray(result.variances).sum(axis=0)
    chosen = np.argsort(power)[::-1][:N_ATOMS]
    atoms = np.asarray(result.transform)[chosen]
    fit = fit_sinusoids(atoms, sample_rate=SAMPLE_RATE)
    return {
        "I": result.divergence,
        "C": result.objective,
        "power share": float(power[chosen].sum() / power.sum()),
        "frequencies": fit.frequency.tolist(),
        "residuals": fit.residual_share.tolist(),
        "atoms": _rounded(atoms),
        "components": _rounded(np.asarray(result.H)[:, chosen]),
        "activations": _rounded(np.asarray(result.W).T),
    }


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the fits, the pictures of the first draw, and the claims."""
    order = list(METHODS)
    records = sorted(records, key=lambda one: (one["draw"], one["S"], order.index(one["method"])))
    artifacts: list[Artifact] = [_fits(records)]
    for record in records:
        if record["draw"] == 0 and record["method"] != "default":
            artifacts += _pictures(record)
    return [*artifacts, *_verdicts(records)]


def counts(record: Record) -> list[int]:
    """Count the atoms that stand at each of the notes' frequencies."""
    return atoms_per_frequency(record["frequencies"], TARGETS, within=WITHIN).tolist()


def captures(record: Record) -> bool:
    """Tell whether the eight atoms are sinusoids, two at each of the four frequencies."""
    return max(record["residuals"]) < LARGEST_RESIDUAL and counts(record) == [2] * len(TARGETS)


def _fits(records: Sequence[Record]) -> Table:
    rows = []
    for record in records:
        errors = [min(abs(found - target) for target in TARGETS) for found in record["frequencies"]]
        rows.append(
            {
                "draw": record["draw"],
                "S": record["S"],
                "method": METHODS[record["method"]],
                "I": record["I"],
                "error": f"{max(errors):.3f} / {np.mean(errors):.3f}",
                "residual": f"{min(record['residuals']):.3f} to {max(record['residuals']):.3f}",
                "counts": " / ".join(map(str, counts(record))),
                "power": record["power share"],
            }
        )
    columns = {
        "draw": "draw",
        "S": "S",
        "method": "method",
        "I": "I",
        "error": "max / mean distance from the nearest (Hz)",
        "residual": "relative residual",
        "counts": "atoms within 0.5 Hz of 440 / 466.16 / 880 / 932.32",
        "power": "fraction of the power in the eight atoms",
    }
    caption = (
        "Sinusoids fitted to the eight most significant atoms. The authors' code at S = 1: TL-NMF 0.265 / "
        "0.086 Hz, 0.032 to 0.042, 2 / 2 / 2 / 2; JD+NMF 0.210 / 0.113 Hz, 0.17 to 0.49, 1 / 1 / 3 / 3."
    )
    return Table(caption, columns, rows, 4)


def _pictures(record: Record) -> list[Artifact]:
    name = f"{record['method']}-s{record['S']}"
    title = f"{METHODS[record['method']]}, S = {record['S']}"
    time = np.arange(len(record["atoms"][0]))
    fit = fit_sinusoids(record["atoms"])
    angles = 2.0 * np.pi * fit.frequency[:, None] * time + fit.phase[:, None]
    sinusoids = fit.amplitude[:, None] * np.cos(angles)
    atoms = [
        Curves(
            f"{found:.2f} Hz, residual {left:.3f}",
            "sample",
            "",
            [
                Series("atom", time.tolist(), atom, style="line"),
                Series("sinusoid", time.tolist(), near.tolist(), style="dashed"),
            ],
        )
        for found, left, atom, near in zip(
            record["frequencies"], record["residuals"], record["atoms"], sinusoids, strict=True
        )
    ]
    places = [float(i) for i in range(1, N_ATOMS + 1)]
    frames = [float(i) for i in range(len(record["activations"][0]))]
    factors = [
        Curves(
            "components at the eight atoms",
            "atom, in the order of power",
            "",
            [Series(f"component {k + 1}", places, row) for k, row in enumerate(record["components"])],
        ),
        Curves(
            "activations",
            "frame",
            "",
            [
                Series(f"component {k + 1}", frames, row, style="line")
                for k, row in enumerate(record["activations"])
            ],
        ),
    ]
    return [
        Figure(f"atoms-{name}", f"{title}: the eight most significant atoms.", atoms, 4),
        Figure(f"factors-{name}", f"{title}: components at these atoms, and activations.", factors),
    ]


def _verdicts(records: Sequence[Record]) -> list[Artifact]:
    full = any(record["max_iter"] == parameters("music")["J"] for record in records)
    wanted = {
        ("tl", 1): (True, "TL-NMF, S = 1: eight sinusoids, two at each frequency within 0.5 Hz"),
        ("jd", 1): (False, "JD+NMF, S = 1: not so"),
        ("tl", 100): (True, "TL-NMF, S = 100: eight sinusoids, two at each frequency within 0.5 Hz"),
        ("jd", 100): (True, "JD+NMF, S = 100: the same"),
        ("default", 1): (True, "default, S = 1: as TL-NMF"),
        ("default", 100): (True, "default, S = 100: as TL-NMF"),
    }
    found: list[Artifact] = []
    for (method, S), (expected, claim) in wanted.items():
        of = [record for record in records if record["method"] == method and record["S"] == S]
        seen = [captures(record) for record in of]
        met = None if not full or not seen else all(answer is expected for answer in seen)
        largest = ", ".join(f"{max(record['residuals']):.3f}" for record in of)
        detail = f"{sum(seen)} of {len(seen)} draws; largest relative residuals {largest}"
        found.append(Verdict(f"{claim} (relative residual below {LARGEST_RESIDUAL})", met, detail))
    return found


def _rounded(array: Any) -> list[list[float]]:
    return [[float(f"{value:.6g}") for value in row] for row in array]


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost)
