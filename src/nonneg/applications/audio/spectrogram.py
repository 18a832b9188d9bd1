"""NMF of magnitude spectrograms: window length, number of components, and the fit."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from nonneg._random import generator
from nonneg._typing import FloatArray
from nonneg.applications.audio.continuity import Priors, factorize_with_priors
from nonneg.applications.audio.recordings import Recordings
from nonneg.applications.audio.stft import STFT, automatic_frame_length
from nonneg.data import as_data_matrix
from nonneg.estimators import NMF
from nonneg.iteration import Checkpoint, RelativeDecrease
from nonneg.iteration.progress import reporter
from nonneg.solvers.factorize import initial_factors

# The constants were chosen on the mixtures that the study `studies/separation` names as choosing ones.
# Where one component per source is enough, a frame may be this many times as long as librosa's 93 ms ...
LONGER = (1, 2, 4)
# ... if that makes the spectrogram this much more concentrated: steady notes near each other in pitch gain a
# quarter or more.
WORTH_LENGTH = 0.9
# One component per source is enough where these leave less than this share of the power unexplained (two
# notes or tones: up to 0.1; mixtures of instruments: from 0.43). Otherwise there are this many per source.
SIMPLE = 0.2
COMPONENTS_PER_SOURCE = 8
# Iterations that show whether one is enough.
SIMPLE_ITERATIONS = 30
# Frames are twice as long where more than this share of the power is below this many hertz: a bass and a kick
# drum are few hertz apart (bass and drums: from 0.71; a bass below another instrument: up to 0.57).
LOW, LOW_SHARE = 150.0, 0.65
# Bands of the first fit: half a semitone wide.
BANDS_PER_OCTAVE = 24
# Iterations with all bins afterwards: five bring the divergence of 10 s of piano and drums within 0.02% of
# its limit.
REFINEMENTS = 5
# Sweeps over a frame when its activations are encoded.
ENCODING_SWEEPS = 10


def spectrogram_framing(
    recordings: Recordings, frame_length: int | None, hop: int | None, window: Any, rate: float | None
) -> STFT:
    """Return the given transform, or one with frames of librosa's duration."""
    if frame_length is None:
        frame_length = automatic_frame_length(recordings.shortest, rate)
    return STFT(frame_length, hop, "hann" if window is None else window)


def concentrated_framing(recordings: Recordings, framing: STFT) -> STFT:
    """Return the transform with the shortest frames that concentrate the energy nearly as well as any."""
    base = framing.frame_length
    lengths = [base * factor for factor in LONGER if base * factor <= max(base, recordings.shortest // 4)]
    if len(lengths) == 1:
        return framing
    spread = np.array([_spread(recordings, STFT(length, None, framing.window)) for length in lengths])
    chosen = int(np.flatnonzero(WORTH_LENGTH * spread <= spread.min())[0])
    return STFT(lengths[chosen], None, framing.window)


def low_framing(V: FloatArray, framing: STFT, recordings: Recordings, rate: float | None) -> STFT:
    """Return the transform, with longer frames for a spectrogram of low sounds."""
    if rate is None or 2 * framing.frame_length > recordings.shortest // 4:
        return framing
    powers = np.square(V).sum(axis=0, dtype=np.float64)
    below = np.arange(len(powers)) * rate / framing.frame_length < LOW
    if powers[below].sum() <= LOW_SHARE * powers.sum():
        return framing
    return STFT(2 * framing.frame_length, None, framing.window)


def _spread(recordings: Recordings, framing: STFT) -> float:
    """Return the ratio of l1 and l2 norm of the coefficients: small if few of them hold the energy."""
    total = squares = count = 0.0
    for part in recordings.parts:
        magnitudes = np.abs(framing.analyze(part))
        total += float(magnitudes.sum(dtype=np.float64))
        squares += float(np.square(magnitudes).sum(dtype=np.float64))
        count += magnitudes.size
    return total / (squares * count) ** 0.5 if squares > 0 else 1.0


def magnitudes(coefficients: list[Any], exponent: float = 1.0) -> FloatArray:
    """Return the spectrogram of all recordings: root mean squares over aligned ones, others in a row.

    Divided by its mean, so that nothing hinges on how loud a recording is.
    """
    V = np.concatenate([np.sqrt(np.mean(np.square(np.abs(part)), axis=0)) for part in coefficients])
    V = V if exponent == 1 else V**exponent
    mean = float(V.mean(dtype=np.float64))
    return V / V.dtype.type(mean if mean > 0 else 1.0)


def is_simple(V: FloatArray, n_sources: int, pool: bool, **options: Any) -> bool:
    """Return whether one component per source explains most of a spectrogram."""
    pooled, widths = _pooled(V, pool)
    few = NMF(n_sources, transform_max_iter=ENCODING_SWEEPS, **(options | {"max_iter": SIMPLE_ITERATIONS}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # good enough to see whether they are enough
        rest = pooled - few.fit_transform(pooled) @ few.components_
    # Sums over a wide band are large, whatever is in it: powers are per bin.
    power, left = (float((np.square(part).sum(axis=0) / widths).sum()) for part in (pooled, rest))
    return left <= SIMPLE * power


def fit_spectrogram(
    V: FloatArray,
    n_sources: int,
    n_components: int | None,
    *,
    pool: bool = True,
    continuity: float = 0.0,
    percussive: bool = False,
    checkpoint: Any = None,
    **options: Any,
) -> tuple[NMF, FloatArray]:
    """Factorize a spectrogram.

    First with bins pooled to bands, which is fast and has the same minima but for details of the spectra
    (sums of Poisson variables are Poisson variables), then with all bins from there.
    """
    n_components = COMPONENTS_PER_SOURCE * n_sources if n_components is None else n_components
    folder = None if checkpoint is None else Path(checkpoint)
    # Whether spectra are smooth is seen in bins only.
    pooled, widths = _pooled(V, pool and not percussive)
    if continuity > 0:
        W, H = _with_priors(pooled, n_components, continuity, percussive, folder, options)
    else:
        coarse = NMF(n_components, checkpoint=None if folder is None else str(folder / "bands"), **options)
        with warnings.catch_warnings():
            # Masks are ratios of sums of components: small changes of single ones do not matter to them.
            warnings.filterwarnings("ignore", message="The tolerance tol was reached")
            W = coarse.fit_transform(pooled)
        H = coarse.components_
        if pooled.shape == V.shape:
            return coarse, W
    shares = V.sum(axis=0) / np.repeat(np.maximum(pooled.sum(axis=0), np.finfo(V.dtype).tiny), widths)
    H = np.repeat(H, widths, axis=1) * shares
    model = NMF(
        n_components,
        checkpoint=None if folder is None else str(folder / "bins"),
        transform_max_iter=ENCODING_SWEEPS,
        **(options | {"init": "custom", "n_init": 1, "max_iter": min(options["max_iter"], REFINEMENTS)}),
    )
    with warnings.catch_warnings():
        # The fit to the bands has said whether it converged.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model, model.fit_transform(V, W=W, H=H.astype(V.dtype))


def _with_priors(
    V: FloatArray,
    k: int,
    weight: float,
    percussive: bool,
    folder: Path | None,
    options: Mapping[str, Any],
) -> tuple[FloatArray, FloatArray]:
    """Return the best factors of `n_init` runs with smooth activations, or with two kinds of components."""
    data, least = as_data_matrix(V), np.inf
    best: Any = None
    priors = (
        Priors.harmonic_percussive(-(-k // 2), k // 2, weight) if percussive else Priors.continuity(k, weight)
    )
    for number, random in enumerate(generator(options["random_state"]).spawn(options["n_init"])):
        W, Ht = initial_factors(data, k, init=options["init"], W=None, H=None, rng=random)
        run = factorize_with_priors(
            V,
            W,
            Ht.T,
            priors,
            max_iter=options["max_iter"],
            stop=RelativeDecrease(options["tol"]),
            callback=options["callback"],
            progress=reporter("SourceSeparation", options["verbose"]),
            checkpoint=Checkpoint.of(
                None if folder is None else folder / f"bands-{number}", "continuity", weight, k, V, W, Ht
            ),
        )
        loss = run.history.loss[-1] if run.history.loss else 0.0
        if best is None or loss < least:
            best, least = run.state, loss
    return best.W, best.H


def _pooled(V: FloatArray, pool: bool) -> tuple[FloatArray, Any]:
    """Return the sums over bands and their widths."""
    edges = band_edges(V.shape[1]) if pool else np.arange(V.shape[1])
    return np.add.reduceat(V, edges, axis=1), np.diff([*edges, V.shape[1]])


def band_edges(n_bins: int) -> Any:
    """Return the first bin of each band: single bins, and where these are narrower, parts of an octave."""
    edges = [0]
    while edges[-1] < n_bins:
        edges.append(edges[-1] + max(1, round(edges[-1] * (2 ** (1 / BANDS_PER_OCTAVE) - 1))))
    return np.array(edges[:-1])
