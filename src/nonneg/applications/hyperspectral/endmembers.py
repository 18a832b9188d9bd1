"""Endmembers of an image: by the default, which proposes and judges, or by a named method.

A candidate of the default is one run of vertex component analysis (Nascimento & Dias 2005, IEEE Trans.
Geoscience and Remote Sensing 43(4)) whose vertices are not pixels but medians of the most extreme ones.
Candidates differ in how far they rely on the brightness of a pixel, in the share of the pixels that a median
takes, and in whether pixels are averaged with their neighbors first. The number that judges is the mean
relative residual: what nonnegative mixtures of the endmembers leave of a pixel. Endmembers of the best run
of every setting are exchanged while that lowers it. Minimum volume is no candidate, because a larger simplex
always leaves less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, product
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from nonneg._random import generator
from nonneg._registry import Registry
from nonneg._ties import fixed_vectors
from nonneg._typing import BoolArray, FloatArray, IntArray
from nonneg.applications.hyperspectral.pixels import ImagePixels
from nonneg.certificates.bounds import upper
from nonneg.certificates.certificate import Certificate, Statement, Verdict, verdict_of
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidDataError
from nonneg.kernels.grams import SharedGram
from nonneg.leastsquares import nonnegative_least_squares
from nonneg.metrics import spectral_angles
from nonneg.minvol.factorize import minimum_volume
from nonneg.separable.registry import METHODS as SEPARABLE
from nonneg.separable.registry import Method
from nonneg.separable.result import SelectionResult
from nonneg.separable.select import select_anchors

AUTO, MIN_VOLUME = "auto", "min-volume"
METHODS: Registry[Method] = Registry(
    "method",
    {
        **SEPARABLE,
        AUTO: Method(
            "nonneg.applications.hyperspectral.endmembers:proposed_endmembers",
            "medians of extreme pixels in several geometries, judged by the mean relative residual",
            kind="volume",
        ),
        MIN_VOLUME: Method(
            "nonneg.minvol.factorize:minimum_volume",
            "the smallest simplex around the pixels, for images without pure ones",
            options=frozenset({"lam", "noise", "init", "tol", "max_iter"}),
            kind="volume",
            signed=False,
        ),
    },
)
"""The default, the methods of `nonneg.select_anchors`, and minimum volume."""
# Pixels are divided by brightness to this power: 0 trusts the brightness, 1 ignores it, and 1/2 evens out
# photon noise, whose variance is proportional to brightness.
POWERS = (0.0, 0.5, 1.0)
# Shares of the pixels that a median takes: a 1-2-5 series up to the 5% that is commonly called a tail. The
# study `unmixing` has other shares, and each image left out of the choice.
SHARES = (0.01, 0.02, 0.05)
# Runs per geometry and share. The best of n runs is among the best 1/n of all runs on average.
N_RUNS = 8
# Pixels of a fixed random sample: those that are searched, of which 1% are still a hundred, and those that
# judge, whose mean has a standard error of 3% of their spread.
N_SEARCHED, N_JUDGES = 10_000, 1_000
# Tukey (1977), Exploratory Data Analysis: values further than three interquartile ranges are "far out".
FAR_OUT = 3.0
# Two means are equal if they differ by less than two standard errors of the paired difference.
STANDARD_ERRORS = 2.0
# Residuals relative to the pixel below this are rounding.
ROUNDING = 1e-6
# Scores that differ by less than this part are equal, and the first one is taken: runs often find the same
# pixels in another order.
TIE = 1e-9
# Side of the square windows of pixels that are averaged for half of the candidates.
WINDOW = 3
# Pixels in a row that fall into one half of the image: objects of a few pixels are not torn apart.
RUN = 8


def search_endmembers(
    pixels: ImagePixels, k: int, method: str, constraint: str, params: Mapping[str, Any], **options: Any
) -> tuple[SelectionResult, FloatArray]:
    """Return what a method finds among the pixels, and the spectra of the endmembers."""
    METHODS.check_options(method, params)
    if method == AUTO:
        result = proposed_endmembers(pixels, k, generator(options["rng"]))
        return result, np.asarray(result.components, dtype=pixels.dtype)
    points = pixels.gathered()
    entry = METHODS.find(method)
    if entry.kind == "greedy":
        del options["verbose"]
    if method == MIN_VOLUME:
        result = _min_volume(points, k, constraint, verbose=options["verbose"], **params)
    else:
        # Division by the norm magnifies the noise of dark pixels, which only averages even out.
        norm = "l1" if entry.averages else None
        result = select_anchors(points, k, method=method, normalize=norm, method_params=params, **options)
    spectra = points[result.anchors] if result.components is None else np.asarray(result.components)
    return result, np.maximum(spectra, 0.0).astype(pixels.dtype)


def _min_volume(spectra: FloatArray, k: int, constraint: str, **options: Any) -> SelectionResult:
    """Find the smallest simplex around the pixels."""
    if len(spectra) < k:
        raise InvalidDataError(f"{len(spectra)} pixels are fewer than n_endmembers={k}.")
    # Abundances that only count relative to one another leave the brightness of a pixel free: the simplex is
    # that of the spectra divided by their sums. Its vertices get the mean brightness of the pixels, so that
    # abundances are shares of light; the brightness of an endmember and shade cannot be told apart.
    free = constraint in ("normalized", "nonnegative")
    sizes = spectra.sum(axis=1, dtype=np.float64) if free else np.ones(len(spectra))
    result = minimum_volume(
        as_data_matrix(np.ascontiguousarray(spectra / sizes[:, None], spectra.dtype)),
        k,
        constraint="sum-to-one" if free else constraint,
        caller="Unmixing",
        **options,
    )
    W, H = np.asarray(result.W), np.asarray(result.H)
    return SelectionResult(
        anchors=W.argmax(axis=0),
        method=MIN_VOLUME,
        components=H * H.dtype.type(sizes.mean()),
        history=result.history,
        certificate=result.certificate,
        lam=result.lam,
        n_iter=result.n_iter,
        stop_reason=result.stop_reason,
    )


@dataclass(frozen=True)
class Candidate:
    """The endmembers of one run, and how well they explain the pixels that judge."""

    name: str
    endmembers: FloatArray
    members: list[IntArray]  # the pixels of each median, the most extreme one first
    residuals: FloatArray  # of every judge, relative to it

    @property
    def score(self) -> float:
        """The mean relative residual."""
        return float(self.residuals.mean())

    def ties(self, other: Candidate) -> bool:
        """Tell whether another candidate is as good within sampling error."""
        gaps = other.residuals - self.residuals
        return float(gaps.mean()) <= STANDARD_ERRORS * float(gaps.std()) / math.sqrt(len(gaps))

    def angles(self, other: Candidate) -> FloatArray:
        """Return the angle of every endmember to its counterpart in another candidate."""
        angles = spectral_angles(self.endmembers, other.endmembers)
        return np.asarray(angles[linear_sum_assignment(angles)])


def proposed_endmembers(pixels: ImagePixels, n_endmembers: int, rng: np.random.Generator) -> SelectionResult:
    """Return the endmembers that leave the least of a pixel, among candidates of several geometries."""
    used = np.flatnonzero(pixels.mask)
    isolated = isolated_pixels(pixels, n_endmembers)
    rows = fixed_sample(np.setdiff1d(used, isolated), N_SEARCHED)
    sample = pixels.at(rows)
    judges = sample[fixed_sample(np.arange(len(rows)), N_JUDGES)]
    views = {"pixels": sample, f"{WINDOW} x {WINDOW} averages": window_means(pixels, rows)}
    candidates: list[Candidate] = []
    for view, searched in views.items():
        best: dict[str, tuple[Candidate, FloatArray]] = {}
        for name, endmembers, members, points in candidate_runs(searched, n_endmembers, rng):
            residuals = relative_residuals(judges, endmembers, nonnegative_weights(judges, endmembers))
            run = Candidate(f"{view}, {name}", endmembers, members, residuals)
            if name not in best or run.score < (1 - TIE) * best[name][0].score:
                best[name] = run, points
        candidates += [_exchanged(run, searched, points, judges) for run, points in best.values()]
    if not candidates:
        raise InvalidDataError(
            f"n_endmembers={n_endmembers}, but the extreme pixels differ in too few directions: nearly all "
            "are copies or mixtures of fewer spectra. Ask for fewer, or check the cube."
        )
    smallest = min(one.score for one in candidates)
    chosen = next(one for one in candidates if (1 - TIE) * one.score <= smallest)
    alone = "No pixel is unlike all others."
    if len(isolated):
        alone = f"{len(isolated)} of {len(used)} pixels were set aside: corrupt, or unlike all others."
    statements = (
        _choice_statement(chosen, candidates),
        purity_statement(judges, chosen.endmembers),
        Statement(
            "isolated-samples", alone, len(isolated), 0, Verdict.FAILS if len(isolated) else Verdict.HOLDS
        ),
    )
    return SelectionResult(
        anchors=np.searchsorted(used, [rows[members[0]] for members in chosen.members]),
        method="auto",
        components=chosen.endmembers,
        members=tuple(np.searchsorted(used, rows[members]) for members in chosen.members),
        certificate=Certificate(statements),
        n_iter=len(candidates) * N_RUNS,
        details={
            "how": f"medians of {chosen.name}",
            "isolated": np.searchsorted(used, isolated),
            "candidates": {one.name: one.score for one in candidates},
        },
    )


def _exchanged(run: Candidate, pixels: FloatArray, points: FloatArray, judges: FloatArray) -> Candidate:
    """Exchange endmembers of a run one by one, as long as that lowers the mean relative residual."""
    # A run looks away from the endmembers that it has so far; here, from all others, as N-FINDR does (Winter
    # 1999), whose simplex is the largest.
    k, tried = len(run.members), 0
    medians = np.stack([_median(points[rows]) for rows in run.members], axis=1)
    weights = nonnegative_weights(judges, run.endmembers)
    left = judges - weights @ run.endmembers
    for at, side in cycle(product(range(k), (1, -1))):
        if tried == 2 * k:
            break
        tried += 1
        direction = np.linalg.svd(np.delete(medians, at, axis=1))[0][:, -1]
        direction = direction * np.sign(direction @ medians[:, at])
        members, endmembers = run.members.copy(), run.endmembers.copy()
        members[at] = _largest(side * (points @ direction), len(members[at]))
        endmembers[at] = _median(pixels[members[at]])
        # Other mixtures have no part of the old endmember, and would get none of the new one.
        changed = (weights[:, at] > 0) | (left @ endmembers[at] > 0)
        mixed, residuals, some = weights.copy(), run.residuals.copy(), judges[changed]
        mixed[changed] = nonnegative_weights(some, endmembers, start=weights[changed])
        residuals[changed] = relative_residuals(some, endmembers, mixed[changed])
        new = Candidate(run.name, endmembers, members, residuals)
        if new.score < (1 - TIE) * run.score:
            run, weights, left, tried = new, mixed, judges - mixed @ endmembers, 0
            medians[:, at] = _median(points[members[at]])
    return run


def far_out(values: FloatArray) -> BoolArray:
    """Tell which positive values are far out above the others, on a logarithmic scale."""
    logarithms = np.log(np.maximum(values, ROUNDING))
    low, high = np.percentile(logarithms, (25, 75))
    return np.asarray(logarithms > high + FAR_OUT * (high - low))


def fixed_sample(rows: IntArray, count: int) -> IntArray:
    """Return rows drawn at random, the same ones every time, in their order."""
    # Evenly spaced pixels could all lie in a few columns of the image.
    return rows if len(rows) <= count else np.sort(np.random.default_rng(0).permutation(rows)[:count])


def isolated_pixels(pixels: ImagePixels, n_directions: int) -> IntArray:
    """Return the pixels far outside the directions in which other pixels vary: corrupt, or unlike all."""
    used = np.flatnonzero(pixels.mask)
    # The directions come from the other half of the pixels, so that a corrupt pixel does not explain itself,
    # and pixels have unit norm, so that a bright one counts like others.
    halves = [used[(used // RUN) % 2 == parity] for parity in (1, 0)]
    directions = []
    for half in halves:
        sample = pixels.at(fixed_sample(half, N_SEARCHED))
        if len(sample) <= n_directions or n_directions >= sample.shape[1]:
            return used[:0]
        sample = sample / np.linalg.norm(sample, axis=1, keepdims=True)
        directions.append(np.linalg.eigh(sample.T @ sample)[1][:, -n_directions:])
    outside = []
    for numbers, block in pixels.blocks():
        spectra = np.asarray(block, dtype=np.float64)
        first = (numbers // RUN) % 2 == 0
        spanned = (np.einsum("pk,pk->p", *2 * [spectra @ basis]) for basis in directions)
        share = np.where(first, *spanned) / np.einsum("pb,pb->p", spectra, spectra)
        outside.append(np.sqrt(np.maximum(1.0 - share, 0.0)))
    isolated = used[far_out(np.concatenate(outside))]
    # More than a median takes are a material of their own.
    return isolated if len(isolated) <= SHARES[0] * len(used) else used[:0]


def window_means(pixels: ImagePixels, rows: IntArray, window: int = WINDOW) -> FloatArray:
    """Average some pixels with those of a square window around each, as far as they are used."""
    height, width = pixels.mask.shape
    reach = np.arange(window) - window // 2
    down, across = (part.reshape(-1, 1) for part in np.meshgrid(reach, reach))
    i, j = rows // width + down, rows % width + across
    inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
    places = np.where(inside, i * width + j, rows)
    inside &= pixels.mask.reshape(-1)[places]
    centers = np.broadcast_to(np.arange(len(rows)), places.shape)[inside]
    entries = (np.ones(len(centers)), (centers, places[inside]))
    windows = sp.csc_array(entries, shape=(len(rows), pixels.mask.size))
    sums = sum(windows[:, numbers] @ spectra for numbers, spectra in pixels.blocks())
    return np.asarray(sums / inside.sum(axis=0)[:, None])


def candidate_runs(
    pixels: FloatArray, k: int, rng: np.random.Generator, shares: Sequence[float] = SHARES
) -> Iterator[tuple[str, FloatArray, list[IntArray], FloatArray]]:
    """Yield name, endmembers and members of every run among some pixels, and their coordinates."""
    norms = np.linalg.norm(pixels, axis=1)
    for power in POWERS:
        weights = norms**-power
        scaled = pixels * weights[:, None]
        mean = scaled.mean(axis=0)
        gram = scaled.T @ scaled - len(pixels) * np.outer(mean, mean)
        values, vectors = np.linalg.eigh(gram)
        directions = fixed_vectors(values[::-1][: k - 1], vectors[:, ::-1][:, : k - 1])
        points = (scaled - mean) @ directions
        size = float(np.sqrt((points**2).sum(axis=1).max(initial=0.0)))
        # Pixels that differ in brightness alone have fewer directions without it.
        if k > 1 and not np.abs(points).max(axis=0).min() > ROUNDING * float(np.linalg.norm(mean)):
            continue
        lifted = np.column_stack([points, np.full(len(points), size or 1.0)])
        for share in shares:
            count = max(1, round(share * len(pixels)))
            for _ in range(N_RUNS):
                members = _extreme_pixels(lifted, count, rng)
                if members is not None:
                    spectra = np.stack([_median(pixels[rows]) for rows in members])
                    yield f"brightness^{power:g}, extreme {100 * share:g}%", spectra, members, lifted


def _extreme_pixels(points: FloatArray, count: int, rng: np.random.Generator) -> list[IntArray] | None:
    """Return the most extreme pixels along random directions, each orthogonal to the medians so far."""
    k = points.shape[1]
    basis = medians = np.zeros((k, 0))
    members: list[IntArray] = []
    for _ in range(k):
        drawn = np.asarray(rng.standard_normal(k))
        direction = drawn - basis @ (basis.T @ drawn)
        along = points @ direction
        # The stronger side: that whose median is further out.
        sides = (_largest(along, count), _largest(-along, count))
        members.append(max(sides, key=lambda side: abs(float(_median(along[side])))))
        medians = np.column_stack([medians, _median(points[members[-1]])])
        basis, sizes, _ = np.linalg.svd(medians, full_matrices=False)
        if not sizes[-1] > ROUNDING * sizes[0]:
            return None
    return members


def _median(values: FloatArray) -> FloatArray:
    """Return the median over the rows, without the checks of `np.median`, which take longer than few rows."""
    half, odd = divmod(len(values), 2)
    ordered = np.partition(values, (half + odd - 1, half), axis=0)
    return np.asarray((ordered[half + odd - 1] + ordered[half]) / 2)


def _largest(values: FloatArray, count: int) -> IntArray:
    rows = np.argpartition(values, len(values) - count)[len(values) - count :]
    return rows[np.argsort(-values[rows], kind="stable")]


def relative_residuals(pixels: FloatArray, endmembers: FloatArray, weights: FloatArray) -> FloatArray:
    """Return what mixtures of endmembers leave of every pixel, relative to its norm."""
    residuals = pixels - weights @ endmembers
    return np.asarray(np.linalg.norm(residuals, axis=1) / np.linalg.norm(pixels, axis=1))


def nonnegative_weights(
    pixels: FloatArray, endmembers: FloatArray, start: FloatArray | None = None
) -> FloatArray:
    """Return the nonnegative weights of the endmembers that fit the pixels best."""
    system = SharedGram(endmembers @ endmembers.T)
    return np.asarray(nonnegative_least_squares(system, pixels @ endmembers.T, start=start))


def _choice_statement(chosen: Candidate, candidates: Sequence[Candidate]) -> Statement:
    """State the score of every candidate, and how far apart the endmembers of the equally good ones are."""
    equal = [one for one in candidates if one is not chosen and chosen.ties(one)]
    sentence = (
        f"Mixtures leave {100 * chosen.score:.3g}% of a pixel on average, the least of {len(candidates)} "
        f"candidates; the endmembers are medians of {chosen.name}. "
    )
    quantities = {one.name: one.score for one in candidates}
    if not equal:
        sentence += "No other candidate is as good within sampling error."
        return Statement("candidates", sentence, chosen.score, None, Verdict.HOLDS, quantities)
    worst = np.max([chosen.angles(one) for one in equal], axis=0)
    at = int(worst.argmax())
    sentence += (
        f"{'1 other is' if len(equal) == 1 else f'{len(equal)} others are'} as good within sampling error; "
        f"endmember {at} differs most among them, by up to {upper(worst[at], 3)} degrees."
    )
    return Statement("candidates", sentence, chosen.score, None, Verdict.NOT_VERIFIABLE, quantities)


def purity_statement(pixels: FloatArray, endmembers: FloatArray) -> Statement:
    """State whether pixels lie outside the mixtures of the endmembers by more than materials vary."""
    # Pixels at a vertex lie outside each of its k - 1 facets half of the time, by the variance in one
    # direction. That is at most the variance in the largest direction in which the pixels leave the span.
    k, m = endmembers.shape
    basis = np.linalg.qr(endmembers.T)[0][:, :k]
    residuals = (pixels - nonnegative_weights(pixels, endmembers) @ endmembers) @ basis
    beyond = pixels - (pixels @ basis) @ basis.T
    total = float(np.sum(pixels**2))
    outside = math.sqrt(float(np.sum(residuals**2)) / total)
    sentence = f"Pixels lie outside the mixtures of the endmembers by {100 * outside:.3g}% of their norm; "
    quantities = {"outside": outside}
    if k >= m:
        sentence += "endmembers that span all bands leave none in which variation among pure pixels is seen."
        return Statement("pure-pixels", sentence, None, 1.0, Verdict.NOT_VERIFIABLE, quantities)
    largest = float(np.linalg.eigvalsh(beyond.T @ beyond)[-1])
    most = quantities["most"] = max(math.sqrt(0.5 * (k - 1) * largest / total), ROUNDING)
    sentence += f"variation among pure pixels explains up to {upper(100 * most, 3)}%."
    if outside > most:
        sentence += " The purest pixels are mixed, or the materials vary in brightness or color."
    return Statement("pure-pixels", sentence, outside / most, 1.0, verdict_of(outside <= most), quantities)
