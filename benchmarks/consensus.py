"""Claim: the programs of cNMF, at least ten times faster on two cores; signatures in under a minute.

    python -m benchmarks.consensus parity [--data planted|pbmc3k]
    python -m benchmarks.consensus seeds [--data planted|pbmc3k]
    python -m benchmarks.consensus speed [--restarts N] [--cnmf-restarts N] [--ranks 5:12] [--device cuda]
    python -m benchmarks.consensus memory [--restarts N] [--ranks 5:12]
    python -m benchmarks.consensus signatures [--restarts N]
    python -m benchmarks.consensus large [--restarts N] [--cells N]

cNMF (PyPI `cnmf`, with scanpy) has to be importable; without it, parity and speed fail with an ImportError.
`parity` runs cNMF's own steps (prepare, factorize, combine, consensus) unchanged, then again with
`nonneg.non_negative_factorization` in place of scikit-learn's, then `ConsensusNMF` on the same counts, and
compares matched programs. `seeds` asks where a difference comes from: it compares cNMF with itself and
`ConsensusNMF` with itself under other seeds, and the consensus of both from the same restarts. `speed` times
cNMF's `factorize_multi_process` with two workers on a few restarts per rank, from which the time of all
follows, and the whole of `ConsensusNMF.fit` (restarts, clusters, refits of all ranks) with two threads.
`memory` measures the peak of all restarts, each of which ends after a few iterations: what is kept does not
depend on how many there are. `large` times one rank on 100,000 cells and measures its peak. BLAS has one
thread. Each line of output is a record; --write adds it to
docs/benchmarks/records/consensus.jsonl and remakes docs/benchmarks/consensus.md from all records there.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from reproduction.machine import machine_facts

from benchmarks.consensus_tables import page
from benchmarks.records import append, read

SEED = 20261116
N_JOBS = 2
DOCS = Path(__file__).parents[1] / "docs" / "benchmarks"


def planted_counts(n: int, m: int, k: int, density: float, seed: int) -> Any:
    """Draw counts of planted programs with a share `density` of nonzeros."""
    rng = np.random.default_rng(seed)
    H = rng.gamma(0.2, size=(k, m)) * rng.gamma(0.6, size=(1, m))
    H /= H.sum(axis=1, keepdims=True)
    rates = rng.dirichlet(np.full(k, 0.2), size=n) * rng.lognormal(0.0, 0.4, size=(n, 1)) @ H
    low, high = 1.0, 1e7
    for _ in range(60):
        depth = np.sqrt(low * high)
        found = float(np.mean(-np.expm1(-depth * rates)))
        low, high = (depth, high) if found < density else (low, depth)
    counts = sp.csr_matrix(rng.poisson(depth * rates).astype(np.float64))
    return counts[:, np.asarray((counts > 0).sum(axis=0)).ravel() >= 3]


def many_counts(n: int, m: int, k: int, density: float, seed: int) -> Any:
    """Draw as `planted_counts` does, in blocks of cells; the first m genes seen in three cells."""
    rng = np.random.default_rng(seed)
    H = rng.gamma(0.2, size=(k, 2 * m)) * rng.gamma(0.6, size=(1, 2 * m))
    H /= H.sum(axis=1, keepdims=True)
    W = rng.dirichlet(np.full(k, 0.2), size=n) * rng.lognormal(0.0, 0.4, size=(n, 1))
    few = W[:2000] @ H
    low, high = 1.0, 1e7
    for _ in range(40):
        depth = np.sqrt(low * high)
        low, high = (depth, high) if np.mean(-np.expm1(-depth * few)) < density else (low, depth)
    blocks = (rng.poisson(depth * W[at : at + 2000] @ H).astype(np.float64) for at in range(0, n, 2000))
    counts = sp.vstack([sp.csr_matrix(block) for block in blocks], format="csr")
    return counts[:, np.flatnonzero(counts.getnnz(axis=0) >= 3)[:m]]


def pbmc3k() -> Any:
    """Return the counts of 2,700 cells of 10x Genomics, genes seen in three cells or more."""
    from reproduction.data import load_pbmc3k

    counts = sp.csr_matrix(load_pbmc3k().X)
    return counts[:, np.asarray((counts > 0).sum(axis=0)).ravel() >= 3]


def run_cnmf(
    counts: Any,
    folder: Path,
    name: str,
    ranks: list[int],
    n_iter: int,
    n_genes: int,
    *,
    ours: bool,
    workers: int,
    seed: int = SEED,
) -> tuple[Any, float]:
    """Run cNMF up to `factorize`; return it and the seconds of `factorize`."""
    import anndata
    import cnmf.cnmf as package
    import pandas as pd
    import sklearn.decomposition

    import nonneg

    package.non_negative_factorization = (
        nonneg.non_negative_factorization if ours else sklearn.decomposition.non_negative_factorization
    )
    path = folder / "counts.h5ad"
    if not path.exists():
        n, m = counts.shape
        anndata.AnnData(
            counts,
            obs=pd.DataFrame(index=[f"cell{i}" for i in range(n)]),
            var=pd.DataFrame(index=[f"gene{j}" for j in range(m)]),
        ).write_h5ad(path)
    model = package.cNMF(output_dir=str(folder), name=name)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.prepare(
            counts_fn=str(path), components=ranks, n_iter=n_iter, seed=seed, num_highvar_genes=n_genes
        )
        started = time.perf_counter()
        if workers > 1:
            model.factorize_multi_process(total_workers=workers)
        else:
            model.factorize()
        seconds = time.perf_counter() - started
    return model, seconds


def cnmf_programs(model: Any, k: int) -> tuple[Any, list[str]]:
    """Return the consensus spectra of cNMF and the genes they are about."""
    import cnmf

    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.combine(components=[k])
        model.consensus(k, density_threshold=0.5, show_clustering=False, build_ref=False)
    spectra = cnmf.load_df_from_npz(model.paths["consensus_spectra"] % (k, "0_5"))
    scores = cnmf.load_df_from_npz(model.paths["gene_spectra_score"] % (k, "0_5"))
    return spectra, scores


def matched(first: Any, second: Any) -> list[float]:
    """Return Pearson correlations of matched rows."""
    from scipy.optimize import linear_sum_assignment

    k = len(first)
    table = np.corrcoef(np.asarray(first), np.asarray(second))[:k, k:]
    rows, columns = linear_sum_assignment(-table)
    return [round(float(value), 5) for value in table[rows, columns]]


def parity(data: str, k: int, n_iter: int) -> dict[str, Any]:
    """Compare the programs of cNMF, of cNMF with ours inside, and of ConsensusNMF."""
    from nonneg import ConsensusNMF

    counts = pbmc3k() if data == "pbmc3k" else planted_counts(1000, 1000, k, 0.1, SEED)
    n_genes = min(2000, counts.shape[1])
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        theirs, seconds = run_cnmf(counts, folder, "theirs", [k], n_iter, n_genes, ours=False, workers=1)
        spectra, scores = cnmf_programs(theirs, k)
        swapped, seconds_swapped = run_cnmf(
            counts, folder, "ours", [k], n_iter, n_genes, ours=True, workers=1
        )
        spectra_swapped, _ = cnmf_programs(swapped, k)
    genes = [int(name.removeprefix("gene")) for name in spectra.columns]
    started = time.perf_counter()
    model = ConsensusNMF(k, n_init=n_iter, random_state=SEED, n_jobs=1)
    W = model.fit_transform(counts[:, genes])
    seconds_ours = time.perf_counter() - started
    ours = model.components_ / model.column_scale_
    return {
        "what": "parity",
        "data": data,
        "shape": list(counts.shape),
        "genes": len(genes),
        "k": k,
        "restarts": n_iter,
        "cnmf with ours, correlations": matched(spectra, spectra_swapped),
        "ConsensusNMF, correlations": matched(spectra, ours),
        "gene scores, correlations": matched(scores, model.gene_spectra(counts, W)),
        "s of cnmf's factorize": round(seconds, 2),
        "s with ours inside": round(seconds_swapped, 2),
        "s of ConsensusNMF": round(seconds_ours, 2),
        "threads": 1,
    }


def seeds(data: str, k: int, n_iter: int) -> dict[str, Any]:
    """Compare cNMF and ConsensusNMF each with itself under another seed, and on the same restarts."""
    import cnmf

    from nonneg import ConsensusNMF
    from nonneg.consensus.clustering import cluster, distances_of, local_density, unit_spectra

    counts = pbmc3k() if data == "pbmc3k" else planted_counts(1000, 1000, k, 0.1, SEED)
    n_genes = min(2000, counts.shape[1])
    theirs, seconds = [], 0.0
    with tempfile.TemporaryDirectory() as place:
        for at in range(2):
            model, taken = run_cnmf(
                counts, Path(place), f"seed{at}", [k], n_iter, n_genes, ours=False, workers=N_JOBS,
                seed=SEED + at,
            )  # fmt: skip
            theirs.append(cnmf_programs(model, k)[0])
            seconds += taken
        merged = cnmf.load_df_from_npz(model.paths["merged_spectra"] % k).to_numpy()
    unit = unit_spectra(merged)
    distances = distances_of(unit)
    kept = np.flatnonzero(local_density(distances, k, 0.3) < 0.5)
    same = cluster(unit, distances, k, kept, "kmeans")
    genes = [int(name.removeprefix("gene")) for name in theirs[0].columns]
    X = counts[:, genes]
    ours = [ConsensusNMF(k, n_init=n_iter, random_state=SEED + at, n_jobs=N_JOBS).fit(X) for at in range(2)]
    spectra = [model.components_ / model.column_scale_ for model in ours]
    return {
        "what": "seeds",
        "data": data,
        "shape": list(counts.shape),
        "genes": len(genes),
        "k": k,
        "restarts": n_iter,
        "cnmf, two seeds": matched(*theirs),
        "ConsensusNMF, two seeds": matched(*spectra),
        "cnmf and ConsensusNMF": matched(theirs[0], spectra[0]),
        "same restarts, clusters of cnmf and ours": matched(theirs[1], same.spectra),
        "stability": [[round(float(value), 3) for value in model.stability_] for model in ours],
        "recurrence": [[round(float(value), 3) for value in model.ranks_[0].recurrence] for model in ours],
        "s of cnmf's factorize, both": round(seconds, 1),
        "threads": N_JOBS,
    }


def speed(
    ranks: list[int], restarts: int, cnmf_restarts: int, device: str | None = None
) -> list[dict[str, Any]]:
    """Time cNMF's factorize on some restarts of every rank, and all of ConsensusNMF."""
    from nonneg import ConsensusNMF

    counts = planted_counts(10_000, 2000, 8, 0.05, SEED)
    about = {
        "what": "speed",
        "shape": list(counts.shape),
        "nonzeros": round(counts.nnz / np.prod(counts.shape), 4),
        "ranks": ranks,
        "threads": N_JOBS,
        "device": device,
        "card": _card() if device else None,
    }
    # Compiled code is loaded; kernels of a GPU depend on the rank.
    first = ConsensusNMF(ranks if device else 2, n_init=2, max_iter=2, tol=0, n_jobs=N_JOBS, device=device)
    first.fit(counts)
    started, used, ends = time.perf_counter(), time.process_time(), [(0.0, 0.0)]
    model = ConsensusNMF(
        ranks, n_init=restarts, random_state=SEED, n_jobs=N_JOBS, verbose=1, device=device,
        callback=lambda _: ends.append((time.perf_counter() - started, time.process_time() - used)),
    ).fit(counts)  # fmt: skip
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    table = model.restarts_
    best = {k: float(table.loss[table.of(k)].min()) for k in ranks}
    medians = {k: float(np.median(table.loss[table.of(k)])) for k in ranks}
    records = [
        {
            **about,
            "who": "ConsensusNMF",
            "restarts": restarts,
            "s": round(seconds, 1),
            "s of restarts": round(ends[-1][0], 1),
            "CPU s of restarts": round(ends[-1][1], 1),
            "s per restart": round(seconds / (restarts * len(ranks)), 4),
            "GB": round(peak / 1e9, 3),
            "recommended": model.n_components_,
            "lowest loss": best,
            "median loss": medians,
        }
    ]
    if cnmf_restarts:
        with tempfile.TemporaryDirectory() as place:
            before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
            theirs, taken = run_cnmf(
                counts, Path(place), "t", ranks, cnmf_restarts, counts.shape[1], ours=False, workers=N_JOBS
            )
            cpu = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before  # of its workers
            losses = {k: _cnmf_losses(theirs, k, cnmf_restarts) for k in ranks}
        whole, whole_cpu = (seconds / cnmf_restarts * restarts for seconds in (taken, cpu))
        records.append(
            {
                **about,
                "who": "cNMF factorize, 2 workers",
                "restarts": cnmf_restarts,
                "s": round(taken, 1),
                "s for all restarts (extrapolated)": round(whole, 1),
                "times ConsensusNMF": round(whole / seconds, 1),
                "times its restarts": round(whole / ends[-1][0], 1),
                "CPU s": round(cpu, 1),
                "times its restarts, in CPU s": round(whole_cpu / ends[-1][1], 1),
                "median loss": {k: float(np.median(values)) for k, values in losses.items()},
                "lowest loss": {k: float(min(values)) for k, values in losses.items()},
            }
        )
    return records


def _card() -> str:
    """Return the name of the GPU."""
    import torch

    return str(torch.cuda.get_device_name())


def memory(ranks: list[int], restarts: int) -> dict[str, Any]:
    """Measure the peak memory of all restarts, with few iterations each."""
    from nonneg import ConsensusNMF

    counts = planted_counts(10_000, 2000, 8, 0.05, SEED)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ConsensusNMF(ranks, n_init=restarts, max_iter=3, tol=0, random_state=SEED, n_jobs=N_JOBS).fit(counts)
    return {
        "what": "memory",
        "shape": list(counts.shape),
        "ranks": ranks,
        "restarts": restarts,
        "threads": N_JOBS,
        "GB before the fit": round(before / 1e9, 3),
        "GB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 3),
    }


def large(n_cells: int, restarts: int) -> dict[str, Any]:
    """Time the consensus of one rank on many cells, and measure the peak of the whole process."""
    from nonneg import ConsensusNMF

    k = 10
    counts = many_counts(n_cells, 2000, k, 0.1, SEED)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    started, used = time.perf_counter(), time.process_time()
    model = ConsensusNMF(k, n_init=restarts, random_state=SEED, n_jobs=N_JOBS).fit(counts)
    return {
        "what": "large",
        "shape": list(counts.shape),
        "nonzeros": round(counts.nnz / np.prod(counts.shape), 4),
        "ranks": [k],
        "restarts": restarts,
        "threads": N_JOBS,
        "s": round(time.perf_counter() - started, 1),
        "s of all cores together": round(time.process_time() - used, 1),
        "GB before the fit": round(before / 1e9, 3),
        "GB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 3),
        "stability": round(float(np.mean(model.stability_)), 3),
        "iterations": int(model.n_iter_),
    }


def _cnmf_losses(model: Any, k: int, n_iter: int) -> list[float]:
    """Return half the squared error of cNMF's restarts, with the exact usages for their spectra."""
    import anndata
    import cnmf

    from nonneg.data import as_data_matrix
    from nonneg.losses.penalties import Penalties
    from nonneg.solvers.encoding import encode

    X = anndata.read_h5ad(model.paths["normalized_counts"]).X
    # Ours divides by the population's standard deviation.
    data = as_data_matrix(sp.csr_array(X) * np.sqrt(X.shape[0] / (X.shape[0] - 1)))
    found = []
    for number in range(n_iter):
        H = cnmf.load_df_from_npz(model.paths["iter_spectra"] % (k, number)).to_numpy()
        _, loss = encode(data, np.ascontiguousarray(H.T), beta=2.0, penalties=Penalties())
        found.append(float(loss or 0.0))
    return found


def signatures(restarts: int) -> dict[str, Any]:
    """Time the extraction of signatures from 500 simulated tumors."""
    from nonneg.applications import MutationalSignatures

    rng = np.random.default_rng(SEED)
    true = rng.dirichlet(np.full(96, 0.15), size=6)
    counts = rng.poisson(rng.gamma(0.5, 1000.0, size=(500, 6)) @ true).T
    MutationalSignatures(2, n_init=2, max_iter=2).fit(counts)
    started, used = time.perf_counter(), time.process_time()
    model = MutationalSignatures(range(2, 16), n_init=restarts, random_state=0, n_jobs=N_JOBS).fit(counts)
    seconds, used = time.perf_counter() - started, time.process_time() - used
    return {
        "what": "signatures",
        "shape": list(counts.shape),
        "ranks": "2 to 15",
        "restarts": restarts,
        "planted": 6,
        "recommended": model.n_signatures_,
        "s": round(seconds, 1),
        "s of all cores together": round(used, 1),
        "threads": N_JOBS,
    }


def main() -> None:
    """Run one of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["parity", "seeds", "speed", "memory", "signatures", "large"])
    parser.add_argument("--cells", type=int, default=100_000)
    parser.add_argument("--data", choices=["planted", "pbmc3k"], default="planted")
    parser.add_argument("--components", type=int, default=8)
    parser.add_argument("--ranks", default="5:12")
    parser.add_argument("--restarts", type=int, default=None)
    parser.add_argument("--cnmf-restarts", type=int, default=2)
    parser.add_argument("--device", help="where the restarts of speed run: None (default) or cuda")
    parser.add_argument("--write", action="store_true", help="add the records to the page, and remake it")
    options = parser.parse_args()
    first, last = (int(side) for side in options.ranks.split(":"))
    ranks = list(range(first, last + 1))
    n = options.restarts
    run: dict[str, Callable[[], Any]] = {
        "parity": lambda: parity(options.data, options.components, n or 20),
        "seeds": lambda: seeds(options.data, options.components, n or 20),
        "speed": lambda: speed(ranks, n or 100, options.cnmf_restarts, options.device),
        "memory": lambda: memory(ranks, n or 100),
        "signatures": lambda: signatures(n or 100),
        "large": lambda: large(options.cells, n or 20),
    }
    found = run[options.what]()
    records = found if isinstance(found, list) else [found]
    about = machine_facts()
    machine = f"{about['processor']}, {about['cores']} cores"
    stamp = {"date": datetime.now(UTC).date().isoformat(), "machine": machine}
    for record in records:
        print(json.dumps(record | stamp), flush=True)
    if options.write:
        append("consensus", [record | stamp for record in records], DOCS / "records")
        text = page(read("consensus", DOCS / "records"))
        (DOCS / "consensus.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
