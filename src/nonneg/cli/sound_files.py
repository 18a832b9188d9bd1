"""Sound files that `nonneg separate` and `nonneg transform` write: their names, samples and checks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nonneg._typing import FloatArray
from nonneg.applications.audio import write_sound
from nonneg.applications.audio.files import EXACT
from nonneg.cli import terminal
from nonneg.exceptions import OutputError
from nonneg.report.record import Writer, earlier_files
from nonneg.report.sounds import Separated

_SUBTYPES = ("FLOAT", "DOUBLE", *EXACT)  # samples that sources are written in if the recording has them


def check_targets(folder: Path, names: Sequence[Sequence[str]]) -> None:
    """Check that no sounds would be replaced but those of an earlier run, such as training recordings."""
    own = earlier_files(folder)
    for name in (name for own_names in names for name in own_names):
        if (folder / name).exists() and name not in own:
            raise OutputError(
                f"{folder / name} exists and is not the result of an earlier run. Choose another "
                "folder with -o."
            )


def file_names(names: Sequence[str], n_recordings: int, ending: str) -> list[list[str]]:
    """Return the files of each recording, named after the sources."""
    stems: list[str] = []
    for at, name in enumerate(names):
        stem = re.sub(r"[^\w.+-]+", "-", name).strip("-.") or f"source-{at + 1}"
        stems.append(stem if stem.lower() not in [other.lower() for other in stems] else f"{stem}-{at + 1}")
    before = [""] if n_recordings == 1 else [f"recording-{one + 1}-" for one in range(n_recordings)]
    return [[f"{start}{stem}.{ending}" for stem in stems] for start in before]


def sound_files(separated: Separated, names: Sequence[Sequence[str]], ending: str) -> dict[str, Writer]:
    """Return writers of the sources, with the samples of each recording where they hold them."""
    peak, files = max(float(np.abs(sources).max()) for sources in separated.sources), {}
    # .flac is limited to [-1, 1]; all sources are multiplied by the same number.
    scale = 1.0 / peak if ending == "flac" and peak > 1 else 1.0
    if scale < 1:
        terminal.note(
            f"note: all sources were multiplied by {scale:.4g}, because .flac is limited to [-1, 1]"
        )
    floats = False
    for own, sound, sources in zip(names, separated.sounds, separated.sources, strict=True):
        subtype = sound.subtype if sound.subtype in _SUBTYPES else None
        if ending == "flac" and subtype not in ("PCM_16", "PCM_24"):
            subtype = "PCM_24"
        if ending == "wav" and subtype in EXACT and peak > 1 - 2.0 ** (1 - EXACT[subtype]):
            subtype, floats = "FLOAT", True
        parts = scale * sources
        if subtype in EXACT:
            parts = _rounded(parts, EXACT[subtype])
        for name, source in zip(own, parts, strict=True):
            files[name] = _sound_file(source, sound.rate, subtype)
    if floats:
        terminal.note("note: sources are louder than full scale and were written as 32-bit floats")
    return files


def _sound_file(source: FloatArray, rate: int, subtype: str | None) -> Writer:
    return lambda path: write_sound(path, source.T, rate, subtype=subtype)


def _rounded(sources: FloatArray, bits: int) -> FloatArray:
    """Round sources to whole steps whose sums are those of the recording, rounded."""
    step = 2.0 ** (1 - bits)
    whole = np.rint(sources / step)
    loudest = int(np.argmax(np.square(sources).reshape(len(sources), -1).sum(axis=1)))
    whole[loudest] += np.rint(sources.sum(axis=0) / step) - whole.sum(axis=0)
    return np.clip(whole * step, -1.0, 1.0 - step)
