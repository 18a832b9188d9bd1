"""Recordings: frames and back, sound files, masks, groups of components, sources."""

from __future__ import annotations

from nonneg.applications.audio.files import Sound, read_sound, write_sound
from nonneg.applications.audio.frames import Framing
from nonneg.applications.audio.grouping import group_components
from nonneg.applications.audio.masks import wiener_masks
from nonneg.applications.audio.methods import METHODS
from nonneg.applications.audio.separation import SourceSeparation

__all__ = [
    "METHODS",
    "Framing",
    "Sound",
    "SourceSeparation",
    "group_components",
    "read_sound",
    "wiener_masks",
    "write_sound",
]
