"""Can `PurificationNMF` tell from the data whether purification beats NMF? What does its default lose?"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.datasets import load_digits

from nonneg import NMF, PurificationNMF
from nonneg._typing import FloatArray
from nonneg.datasets import load_brca_sbs96
from nonneg.exceptions import NonnegWarning
from nonneg.metrics import match_components
from nonneg.solvers import factorize
from reproduction.artifacts import Artifact, Measured, Paragraph, Table, Verdict
from reproduction.data import load_swimmer
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.purification.digits import N_PARTS, overlaid_features
from reproduction.purification.planted_runs import short
from reproduction.purification.signatures import N_SIGNATURES, evened
from reproduction.purification.swimmer import BOX, known_parts
from reproduction.registry import TITLES

NAME = "studies/purification-plausibility"
CHOOSING, REPORTING, REAL = "choosing", "reporting", "real"
N_CHOOSING, N_DRAWS = 12, 50
# Smaller differences between mean cosines do not matter, and nothing need predict their sign.
MATTERS = 0.005
# What the default may lose to NMF: in the mean of a case, and in a single draw.
ALLOWED_MEAN, ALLOWED_DRAW = 0.005, 0.05

PLANTED = {
    "features": "sparse",
    "weights": "binary",
    "overlap": 0.1,
    "rho": 0.0,
    "active": 0.3,
    "samples": 1,
    "noise": 1.0,
}
"""What a planted case says unless it says something else; `samples` in units of those of the set."""
SIZES = {CHOOSING: (10, 60, 1000), REPORTING: (12, 80, 1500)}
"""Features, their length and samples."""


def _planted_cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = [
        {"weights": kind, "noise": noise} for kind in ("binary", "uniform") for noise in (0.2, 1.0, 2.0, 4.0)
    ]
    cases += [{"overlap": overlap, "noise": noise} for overlap in (0.3, 0.8) for noise in (0.2, 1.0, 2.0)]
    cases += [{"samples": part, "noise": noise} for part in (0.15, 3) for noise in (0.5, 2.0)]
    cases += [
        {"weights": "uniform", "rho": rho, "noise": noise}
        for rho in (0.2, 0.5, 0.8)
        for noise in (0.2, 1.0, 2.0)
    ]
    cases += [
        {"weights": "uniform", "active": active, "noise": noise}
        for active in (0.1, 0.5, 0.8)
        for noise in (0.2, 1.0)
    ]
    cases += [
        {"weights": kind, "noise": noise} for kind in ("never zero", "sum to one") for noise in (0.2, 1.0)
    ]
    smooth = {"features": "smooth", "weights": "uniform"}
    cases += [smooth | {"noise": noise, "rho": rho} for noise in (0.2, 0.5, 2.0) for rho in (0.0, 0.5)]
    return [PLANTED | case for case in cases]


REAL_CASES: list[dict[str, Any]] = [
    *({"data": "digits, overlaid", "noise": noise} for noise in (0.5, 2.0, 4.0)),
    *({"data": "digits", "noise": noise} for noise in (0.5, 2.0)),
    *({"data": "swimmers", "kept": 0.3, "background": how} for how in ("left in", "subtracted")),
    *(
        {"data": "swimmers, independent limbs", "brightness": b, "background": "subtracted"}
        for b in (10.0, 2.0, 1.0)
    ),
    *({"data": "signatures", "exposures": exposures} for exposures in ("as fitted", "independent")),
]


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per case and draw."""
    common = {"threads": 1, "quick": quick}
    if quick:
        some = [PLANTED | {"noise": 0.5}, PLANTED | {"weights": "sum to one", "noise": 0.2}]
        cases = [{"set": CHOOSING, "draw": 0} | case for case in some]
        return [common | case for case in [*cases, {"set": REAL, "draw": 0, **REAL_CASES[0]}]]
    cases = _planted_cases()
    listed = [{"set": REPORTING, **case, "draw": draw} for draw in range(N_DRAWS) for case in cases]
    listed += [{"set": REAL, **case, "draw": draw} for draw in range(N_DRAWS) for case in REAL_CASES]
    listed += [{"set": CHOOSING, **case, "draw": draw} for draw in range(N_CHOOSING) for case in cases]
    return [common | case for case in listed]


def planted(setting: Setting) -> tuple[FloatArray, FloatArray]:
    """Return samples and their features."""
    rng = np.random.default_rng([77, setting["draw"], *SIZES[setting["set"]]])
    n, m, n_samples = SIZES[setting["set"]]
    n_samples = round(n_samples * setting["samples"])
    if setting["features"] == "smooth":
        # Random fields, smoothed over a circle of m places, of which the largest half is kept.
        waves = np.abs(np.fft.fftfreq(m, 1.0 / m))
        H = np.fft.ifft(
            np.fft.fft(rng.normal(size=(n, m)), axis=1) * np.exp(-((waves / (m / 8)) ** 2)), axis=1
        ).real
        H = np.maximum(H - np.median(H, axis=1, keepdims=True), 0.0)
    else:
        H = rng.random((n, m)) * (rng.random((n, m)) < setting["overlap"])
        # One more entry is large, as in the paper's sparse features.
        H[np.arange(n), rng.permutation(m)[:n]] += 1.0
    H /= H.sum(axis=1, keepdims=True)
    # Dependence by a Gaussian copula with one common factor.
    common = np.sqrt(setting["rho"]) * rng.normal(size=(n_samples, 1))
    ranks = norm.cdf(common + np.sqrt(1.0 - setting["rho"]) * rng.normal(size=(n_samples, n)))
    if setting["weights"] in ("binary", "uniform"):
        W = (ranks > 1.0 - setting["active"]).astype(np.float64)
        if setting["weights"] == "uniform":
            W *= rng.random(W.shape)
    else:
        W = -np.log(1.0 - ranks + 1e-12)
        if setting["weights"] == "sum to one":
            W = W**2
            W /= W.sum(axis=1, keepdims=True)
    clean = W @ H
    size = 2.0 * setting["noise"] * float(clean.mean())
    return clean + rng.uniform(-size, size, clean.shape), H


def real(setting: Setting) -> tuple[FloatArray, FloatArray]:
    """Return real data and their features, as on the pages of each data set."""
    rng = np.random.default_rng([1977, setting["draw"]])
    if setting["data"].startswith("digits"):
        if setting["data"] == "digits":
            images = load_digits().data
            clean = images * (1.5 / images.sum(axis=1).mean())
            H = np.asarray(factorize(clean, N_PARTS, init="nndsvda", max_iter=500, tol=1e-6, rng=0).H)
        else:
            H = overlaid_features(rng)
            W = (rng.random((2000, len(H))) < 3 / len(H)) * rng.random((2000, len(H)))
            clean = W @ H
        return clean + rng.uniform(-1, 1, clean.shape) * (setting["noise"] / 64), H
    if setting["data"].startswith("swimmers"):
        H = known_parts().reshape(-1, 32, 32)[(slice(None), *BOX)].reshape(17, -1)
        if setting["data"] == "swimmers":
            photons = load_swimmer().X.reshape(-1, 32, 32)[(slice(None), *BOX)].reshape(256, -1)
            X = rng.binomial(photons.astype(np.int64), setting["kept"]).astype(np.float64)
        else:
            limbs = rng.random((1000, 16)) < 0.25
            X = rng.poisson(1.0 + setting["brightness"] * (limbs @ H[:16])).astype(np.float64)
        if setting["background"] == "subtracted":
            return X - np.median(X, axis=0), H[:16]
        return X, H
    fitted = factorize(
        load_brca_sbs96().X, N_SIGNATURES, init="nndsvda", beta_loss="kullback-leibler", max_iter=200, rng=0
    )
    exposures = np.asarray(fitted.W)[rng.integers(793, size=793)]
    if setting["exposures"] == "independent":
        exposures = np.column_stack([rng.permutation(column) for column in exposures.T])
    H = np.asarray(fitted.H)
    return evened(rng.poisson(exposures @ H).astype(np.float64)), H


def run(setting: Setting) -> list[dict[str, Any]]:
    """Fit purification, NMF, and the default that chooses."""
    X, H = real(setting) if setting["set"] == REAL else planted(setting)

    def cosine(features: Any) -> float:
        return float(match_components(H, np.maximum(features, 0.0)).cosines.mean())

    nmf = NMF(len(H), init="nndsvda", random_state=setting["draw"]).fit(np.maximum(X, 0.0))
    alone = PurificationNMF(len(H), fallback=None, random_state=setting["draw"]).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NonnegWarning)
        began = time.perf_counter()
        default = PurificationNMF(len(H), random_state=setting["draw"]).fit(X)
        seconds = time.perf_counter() - began
    certificate, assumed = default.certificate_, alone.certificate_
    numbers = {
        name.replace("-", "_"): None if assumed[name].number is None else short(assumed[name].number)
        for name in ("warm-start", "mixing-on-halves", "weight-correlation", "noise-level")
    }
    advantage = certificate["plausible-beside-nmf"].number
    record = {
        "purification": short(cosine(alone.components_)),
        "nmf": short(cosine(nmf.components_)),
        "default": short(cosine(default.components_)),
        "advantage": None if advantage is None else short(advantage),
        "fell_back": default.result_.fallback is not None,
        "seconds": short(seconds),
    }
    return [record | numbers]


def _description(record: Record) -> str:
    if record["set"] == REAL:
        facts = {"noise": "noise {:g}", "kept": "{:g} of the photons", "brightness": "{:g} photons on a limb"}
        told = [words.format(record[key]) for key, words in facts.items() if key in record]
        told += [f"background {record['background']}"] if "background" in record else []
        told += [f"exposures {record['exposures']}"] if "exposures" in record else []
        return ", ".join([record["data"], *told])
    samples = round(SIZES[record["set"]][2] * record["samples"])
    told = ["smooth features"] if record["features"] == "smooth" else []
    told += [f"{record['weights']} weights", f"noise {record['noise']:g}"]
    if record["overlap"] != PLANTED["overlap"]:
        told.append(f"overlap {record['overlap']:g}")
    if record["rho"]:
        told.append(f"dependence {record['rho']:g}")
    if record["active"] != PLANTED["active"] and record["weights"] in ("binary", "uniform"):
        told.append(f"{record['active']:.0%} active")
    if record["samples"] != 1:
        told.append(f"{samples} samples")
    return ", ".join(told)


def _decided(records: Sequence[Record]) -> list[Record]:
    return [r for r in records if abs(r["purification"] - r["nmf"]) >= MATTERS]


def _is_right(record: Record) -> bool:
    """Tell whether the better method was taken."""
    return bool((record["purification"] < record["nmf"]) == record["fell_back"])


def _table(caption: str, records: Sequence[Record]) -> Table:
    rows = []
    for description, group in grouped([{**r, "case": _description(r)} for r in records], "case").items():
        decided = _decided(group)
        row: dict[str, Any] = {"case": description[0]}
        for key in ("purification", "nmf", "default"):
            row[key] = Measured(*mean_and_spread([r[key] for r in group]))
        row["lost"] = max(r["nmf"] - r["default"] for r in group)
        row["kept"] = f"{sum(not r['fell_back'] for r in group)} of {len(group)}"
        row["right"] = f"{sum(map(_is_right, decided))} of {len(decided)}"
        rows.append(row)
    columns = {"case": "case", "purification": "purification", "nmf": "NMF", "default": "default"}
    columns |= {"lost": "largest loss of the default", "kept": "purification kept", "right": "right choices"}
    return Table(caption, columns, rows, 3)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return a table per set, and the claims."""
    of = {name: [r for r in records if r["set"] == name] for name in (REPORTING, REAL, CHOOSING)}
    captions = {
        REPORTING: "Planted data, reporting draws (12 features of length 80, 1500 samples): mean cosines "
        "± standard deviation over draws. A choice is right where the better method was taken; draws in "
        f"which both differ by less than {MATTERS} are not counted.",
        REAL: "Real data with known features. The first draw of the overlaid digits with noise 0.5 had a "
        "part in choosing; the others had none.",
        CHOOSING: "Planted data, choosing draws (10 features of length 60, 1000 samples).",
    }
    artifacts: list[Artifact] = [_table(captions[name], group) for name, group in of.items() if group]
    artifacts.append(Paragraph(_statements_text([*of[REPORTING], *of[REAL]])))
    return [*artifacts, *_verdicts(of[REPORTING], "planted data"), *_verdicts(of[REAL], "real data")]


def _statements_text(records: Sequence[Record]) -> str:
    """Say how often single assumptions predict what the bootstrap predicts."""
    decided = _decided(records)
    if not decided:
        return "No draw decides between the methods."
    told = []
    limits = {"warm_start": 0.1, "mixing_on_halves": 0.1, "weight_correlation": 0.1, "noise_level": 1.0}
    for key, limit in limits.items():
        right = [(r["purification"] > r["nmf"]) == (r[key] is not None and r[key] <= limit) for r in decided]
        told.append(f"`{key.replace('_', '-')}` {np.mean(right):.0%}")
    return (
        f"Of the {len(decided)} draws in which the choice matters, the statement `plausible-beside-nmf` "
        f"chose the better method in {np.mean([_is_right(r) for r in decided]):.0%}. Taken alone, the "
        f"verdicts of the statements on single assumptions would have chosen it in: {', '.join(told)}."
    )


def _verdicts(records: Sequence[Record], where: str) -> list[Verdict]:
    groups = grouped([{**r, "case": _description(r)} for r in records], "case")
    known = bool(groups) and min(len(group) for group in groups.values()) >= N_DRAWS
    decided = _decided(records)
    share = float(np.mean([_is_right(r) for r in decided])) if decided else float("nan")
    losses = {
        case[0]: float(np.mean([r["nmf"] - r["default"] for r in group])) for case, group in groups.items()
    }
    worst = max(losses, key=lambda case: losses[case], default="")
    largest = max((r["nmf"] - r["default"] for r in records), default=float("nan"))
    over = sum(r["nmf"] - r["default"] > ALLOWED_DRAW for r in records)
    gains = [r["default"] - r["nmf"] for r in records]
    return [
        Verdict(
            f"{where}: the better method is taken in at least 90% of the draws in which it matters",
            share >= 0.9 if known else None,
            f"{share:.1%} of {len(decided)}" if decided else "no such draws",
        ),
        Verdict(
            f"{where}: in no case does the default lose more than {ALLOWED_MEAN} to NMF in the mean",
            losses[worst] <= ALLOWED_MEAN if known else None,
            f"largest: {losses[worst]:.4f} ({worst})" if losses else "no trials",
        ),
        Verdict(
            f"{where}: the default loses more than {ALLOWED_DRAW} to NMF in at most 1% of the draws",
            over <= 0.01 * len(records) if known else None,
            f"{over} of {len(records)}, at most {largest:.3f}" if records else "no trials",
        ),
        Verdict(
            f"{where}: the default is better than NMF on average",
            float(np.mean(gains)) > 0 if known else None,
            f"{np.mean(gains):+.4f} in the mean cosine" if gains else "no trials",
        ),
    ]


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=("swimmer", "brca_sbs96_wgs"),
    quick_data_sets=(),
)
