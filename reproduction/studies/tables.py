"""The default of `NMF` on ordinary tables and on other data, beside its peers, in three units of X."""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import scipy.signal
import scipy.sparse as sp
from sklearn import datasets as bundled
from sklearn import decomposition

from nonneg import NMF, datasets
from nonneg.report.tables import observed_relative_error
from reproduction.artifacts import Artifact, Paragraph, Table, Verdict
from reproduction.cr1.init_times import SET_NAMES
from reproduction.cr1.real_sets import RealSet, load_set
from reproduction.data import load_pbmc3k
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.registry import TITLES

NAME = "studies/tables"
UNITS = (1.0, 1e-4, 1e4)
"""Constants that X is multiplied by: the table as it is, in a large and in a small unit."""
N_DRAWS, TOGETHER, N_SEEDS = 50, 10, 3
MAX_ITER = 200  # scikit-learn's default, and ours; nimfa's is 30

OURS, THEIRS = "nonneg", "scikit-learn cd"
METHODS = {
    OURS: "`NMF(k)`",
    "nonneg, nndsvda": '`NMF(k, init="nndsvda")`, the default before',
    "nonneg, random": '`NMF(k, init="random")`',
    THEIRS: "`sklearn.decomposition.NMF(k)`",
    "scikit-learn mu": '`sklearn.decomposition.NMF(k, solver="mu")`',
    "nimfa": "`nimfa.Nmf`, multiplicative updates",
    "torchnmf": "`torchnmf.nmf.NMF`, multiplicative updates",
}
DRAWN = ("nonneg, random", "nimfa", "torchnmf")  # their initializations draw numbers
DENSE_ONLY = ("nimfa", "torchnmf")
PEERS = {"nimfa": "nimfa", "torchnmf": "torchnmf"}


TEXTS = ("tr11", "tr41", "re0", "fbis")


def _rows(loader: str, k: int) -> Callable[[], RealSet]:
    return lambda: RealSet(getattr(datasets, loader)().X, None, k)


def _digits() -> RealSet:
    return RealSet(bundled.load_digits().data, None, 16)


def _cells() -> RealSet:
    # The usual preparation: equal totals, then logarithms.
    counts = sp.csr_array(load_pbmc3k().X)
    totals = np.asarray(counts.sum(axis=1)).ravel()
    scaled = sp.csr_array(sp.diags_array(np.median(totals) / totals) @ counts)
    return RealSet(scaled.log1p(), None, 9)


def _spectrogram() -> RealSet:
    found = datasets.load_armstrong()
    sound = found.signals[0, : 30 * found.rate]
    _, _, bins = scipy.signal.stft(sound, nperseg=1024, noverlap=512)
    return RealSet(np.ascontiguousarray(np.abs(bins).T), None, 12)


OTHERS: dict[str, Callable[[], RealSet]] = {
    "digits": _digits,
    "CBCL faces": _rows("load_cbcl_faces", 49),
    "swimmer": _rows("load_swimmer", 17),
    "leukemia": _rows("load_leukemia", 5),
    "BRCA signatures": _rows("load_brca_sbs96", 8),
    "PBMC 3k": _cells,
    "Samson": _rows("load_samson", 3),
    "Moffett": _rows("load_moffett", 3),
    "spectrogram": _spectrogram,
    **{name: partial(load_set, name) for name in TEXTS},
}
"""Name -> loader. K: as many as classes, spectra or parts; 49 for CBCL, as in Lee & Seung (1999)."""


def _bundled(loader: str, k: int) -> Callable[[], tuple[Any, int]]:
    return lambda: (getattr(bundled, loader)().data, k)


def _exercise() -> tuple[Any, int]:
    found = bundled.load_linnerud()
    return np.hstack([found.data, found.target]), 2


def generated(kind: str, seed: int) -> tuple[Any, int]:
    """Draw a table of 300 x 30: mixtures with noise, in columns of unequal units, or counts."""
    rng = np.random.default_rng([20261116, seed])
    k = int(rng.integers(3, 9))
    X = rng.gamma(0.7, size=(300, k)) @ rng.gamma(0.5, size=(k, 30))
    if kind == "counts":
        return rng.poisson(5.0 * X / X.mean()).astype(float), k
    X = np.maximum(X + 0.1 * X.mean() * rng.standard_normal(X.shape), 0.0)
    return X * (10.0 ** rng.uniform(-2.0, 2.0, size=30) if kind == "units" else 1.0), k


CHOOSING: dict[str, Callable[[], tuple[Any, int]]] = {
    "wine": _bundled("load_wine", 3),
    "breast cancer": _bundled("load_breast_cancer", 5),
    "digits": _bundled("load_digits", 16),
    "iris": _bundled("load_iris", 3),
    "physical exercise": _exercise,
}
LOOKED_AT = (
    "Samson",
    "Moffett",
    "BRCA signatures",
    "leukemia",
    "swimmer",
    "spectrogram",
    "tr11",
    "paviaU_sub50",
)
"""Data sets on which the chosen default was tried before it was settled: not reported as new."""
PICTURES = ("olivetti_64x64", "yaleB_32x32", "coil20", "orl_films", "indian_pines")
NEW = (*PICTURES, "CBCL faces", "PBMC 3k", "tr41", "re0", "fbis", "tr12", "tr23")
DRAWS = {
    "generated, one unit": "plain",
    "generated, unequal units": "units",
    "generated counts": "counts",
}
FOLDERS = (
    "olivetti_64x64", "yaleB_32x32", "coil20", "orl_32x32", "indian_pines", "cbcl_faces", "pbmc3k", "samson",
    "moffett", "brca_sbs96_wgs", "leukemia_all_aml", "swimmer", "audio_armstrong", "paviaU_sub50",
    *(f"cluto_{name}" for name in ("tr11", "tr41", "re0", "fbis", "tr12", "tr23")),
)  # fmt: skip
SPARSE = ("PBMC 3k", "tr11", "tr41", "re0", "fbis", "tr12", "tr23")
SLOW = (
    "olivetti_64x64",
    "yaleB_32x32",
    "coil20",
    "orl_films",
    "indian_pines",
    "CBCL faces",
    "PBMC 3k",
    "fbis",
)
"""One unit less and one seed for the slow peers on large data."""


@lru_cache(maxsize=1)
def table(name: str) -> tuple[Any, int]:
    """Return a table and its number of components."""
    if name in CHOOSING:
        return CHOOSING[name]()
    found = OTHERS[name]() if name in OTHERS else load_set(name)
    X = found.X.astype(np.float64)
    return X, found.k


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return settings per table and method, what the study is about first."""
    settings = []
    names = ("wine",) if quick else (*CHOOSING, *LOOKED_AT, *NEW)
    for method in METHODS:
        for name in names:
            if name in SPARSE and method in DENSE_ONLY:
                continue
            seeds = [0] if quick or method not in DRAWN or name in SLOW else list(range(N_SEEDS))
            settings.append({"set": name, "method": method, "seeds": seeds, "threads": 1})
        for name in DRAWS:
            step = 2 if quick else TOGETHER
            for first in range(0, 2 if quick else N_DRAWS, step):
                draws = list(range(first, first + step))
                settings.append({"set": name, "method": method, "draws": draws, "seeds": [0], "threads": 1})
    order = list(METHODS)

    def place(one: Setting) -> tuple[bool, float]:
        # Long trials first, to fill all processes; of the peers, whose long ones may be left for another
        # run, short ones first.
        late = order.index(one["method"]) > order.index(THEIRS)
        return late, cost(one) if late else -cost(one)

    return sorted(settings, key=place)


def cost(setting: Setting) -> float:
    """Return the relative cost of a trial."""
    large = {"indian_pines": 60.0, "yaleB_32x32": 30.0, "olivetti_64x64": 20.0, "PBMC 3k": 30.0}
    slow = {"nimfa": 3.0, "scikit-learn mu": 1.5}.get(setting["method"], 1.0)
    return slow * large.get(setting["set"], 5.0 if setting["set"] in SLOW else 1.0)


def run(setting: Setting) -> list[dict[str, Any]]:
    """Fit a table by one method in every unit."""
    name, method = setting["set"], setting["method"]
    if name in DRAWS:
        tables = [(draw, *generated(DRAWS[name], draw)) for draw in setting["draws"]]
    else:
        tables = [(0, *table(name))]
    if method in PEERS and importlib.util.find_spec(PEERS[method]) is None:
        return [{"absent": True}]
    fitted(method, np.random.default_rng(0).random((12, 6)), 2, 0)  # loads the compiled code
    records = []
    for draw, X, k in tables:
        for seed in setting["seeds"]:
            for unit in UNITS[:2] if name in SLOW and method in DENSE_ONLY else UNITS:
                data = X * unit
                started = time.process_time()
                W, H, n_iter = fitted(method, data, k, seed)
                seconds = time.process_time() - started
                error = observed_relative_error(data, np.asarray(W, float), np.asarray(H, float))
                records.append(
                    {
                        "draw": draw, "seed": seed, "unit": unit, "k": k, "shape": list(X.shape),
                        "error": float(f"{error:.8g}"), "n_iter": int(n_iter), "seconds": round(seconds, 4),
                    }
                )  # fmt: skip
    return records


def fitted(method: str, X: Any, k: int, seed: int) -> tuple[Any, Any, int]:
    """Return W, H and the number of iterations of a library's own defaults."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == "nimfa":
            return _nimfa(X, k, seed)
        if method == "torchnmf":
            return _torchnmf(X, k, seed)
        options: dict[str, Any] = {"random_state": seed, "max_iter": MAX_ITER}
        if method.startswith("nonneg"):
            init = method.partition(", ")[2] or None
            model: Any = NMF(k, init=init, n_jobs=1, **options)
        else:
            model = decomposition.NMF(k, solver=method.split()[1], **options)
        W = model.fit_transform(X)
        return W, model.components_, model.n_iter_


def _nimfa(X: Any, k: int, seed: int) -> tuple[Any, Any, int]:
    import nimfa

    vars(np).setdefault("mat", np.asmatrix)  # nimfa 1.4 was written for NumPy 1
    np.random.seed(seed)  # noqa: NPY002 (what it draws from)
    found = nimfa.Nmf(X, rank=k, max_iter=MAX_ITER, update="euclidean", objective="fro", seed="random_vcol")()
    return np.asarray(found.basis()), np.asarray(found.coef()), int(found.n_iter)


def _torchnmf(X: Any, k: int, seed: int) -> tuple[Any, Any, int]:
    import torch
    from torchnmf import nmf

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model = nmf.NMF(X.shape, rank=k).double()
    n_iter = model.fit(torch.as_tensor(X), beta=2, max_iter=MAX_ITER)
    return model.H.detach().numpy(), model.W.detach().numpy().T, int(n_iter)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return a table per group of sets, and the claims."""
    whole = [record for record in records if "error" in record]
    absent = sorted({record["method"] for record in records if record.get("absent")})
    groups = {
        "Sets used to choose": list(CHOOSING),
        "Sets examined before": list(LOOKED_AT),
        "Test sets": [*NEW, *DRAWS],
    }
    shown: list[Artifact] = [
        Paragraph(f"Not installed where this was run: {', '.join(absent)}.") for _ in absent[:1]
    ]
    claims: list[Verdict] = []
    for title, names in groups.items():
        some = [record for record in whole if record["set"] in names]
        if not some:
            continue
        shown += [_errors(title, some), _costs(title, some)]
        claims += _claims(title, some, complete=set(names) <= {record["set"] for record in some})
    return [*shown, *claims]


def _by_set(records: Sequence[Record]) -> dict[str, dict[str, Sequence[Record]]]:
    return {
        name: {method: group for (method,), group in grouped(some, "method").items()}
        for (name,), some in grouped(records, "set").items()
    }


def _median(records: Sequence[Record], key: str, unit: float | None = 1.0) -> float:
    return float(np.median([record[key] for record in records if unit is None or record["unit"] == unit]))


def _spread(records: Sequence[Record]) -> float:
    """Return the largest error over the smallest among the units of one fit; the median over fits."""
    ratios = []
    for group in grouped(records, "draw", "seed").values():
        errors = [record["error"] for record in group]
        ratios.append(max(errors) / max(min(errors), 1e-300))
    return float(np.median(ratios))


def _errors(title: str, records: Sequence[Record]) -> Table:
    rows = []
    for name, methods in _by_set(records).items():
        first = next(iter(methods.values()))[0]
        row = {"set": SET_NAMES.get(name, name), "k": "3 to 8" if name in DRAWS else str(first["k"])}
        row["shape"] = " x ".join(map(str, first["shape"]))
        row |= {
            method: f"{_median(some, 'error'):.4g} ({_spread(some):.4g})" for method, some in methods.items()
        }
        rows.append(row)
    columns = {"set": "set", "shape": "shape", "k": "k"} | {method: method for method in METHODS}
    caption = (
        f"{title}: relative error of X as it is, and in parentheses the largest error over the smallest "
        "among the units of X (1 means that the unit does not matter)."
    )
    return Table(caption, columns, rows)


def _costs(title: str, records: Sequence[Record]) -> Table:
    rows = []
    for name, methods in _by_set(records).items():
        row = {"set": SET_NAMES.get(name, name)}
        for method, some in methods.items():
            counts = sorted({round(_median(some, "n_iter", unit)) for unit in {one["unit"] for one in some}})
            between = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
            row[method] = f"{between}; {_median(some, 'seconds'):.3g} s"
        rows.append(row)
    columns = {"set": "set"} | {method: method for method in METHODS}
    return Table(
        f"{title}: iterations, over the units of X, and processor time of X as it is, on one thread.",
        columns,
        rows,
    )


def _paired(ours: Sequence[Record], theirs: Sequence[Record]) -> float:
    """Return the error of one method over that of another on X as it is; the median over common draws."""
    errors = [
        {record["draw"]: record["error"] for record in some if record["unit"] == 1.0}
        for some in (ours, theirs)
    ]
    return float(np.median([errors[0][draw] / errors[1][draw] for draw in errors[0].keys() & errors[1]]))


def _claims(title: str, records: Sequence[Record], *, complete: bool) -> list[Verdict]:
    by_set = _by_set(records)
    decided = complete and all({OURS, THEIRS} <= set(methods) for methods in by_set.values())
    changed = {name: _spread(methods[OURS]) for name, methods in by_set.items() if OURS in methods}
    unequal = {name: spread for name, spread in changed.items() if spread > 1.001}
    worse = {}
    for name, methods in by_set.items():
        if {OURS, THEIRS} <= set(methods):
            ratio = _paired(methods[OURS], methods[THEIRS])
            if ratio > 1.001:
                worse[name] = ratio
    return [
        Verdict(
            f"{title}: the error of `nonneg` does not depend on the unit of X (to 0.1%)",
            not unequal if decided else None,
            _listed(unequal) or f"largest over smallest at most {max(changed.values(), default=1.0):.6g}",
        ),
        Verdict(
            f"{title}: the error of `nonneg` is at most that of scikit-learn's default (to 0.1%)",
            not worse if decided else None,
            _listed(worse) or f"{len(by_set)} sets",
        ),
    ]


def _listed(found: Mapping[str, float]) -> str:
    return ", ".join(f"{SET_NAMES.get(name, name)} {value:.4g}" for name, value in found.items())


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials,
    run,
    summarize,
    data_sets=FOLDERS,
    quick_data_sets=(),
    cost=cost,
)
