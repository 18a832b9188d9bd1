"""Recordings: frames and back, sound files, sources."""

from __future__ import annotations

from nonneg.applications.audio.files import Sound, read_sound, write_sound
from nonneg.applications.audio.frames import Framing
from nonneg.applications.audio.methods import METHODS
from nonneg.applications.audio.separation import SourceSeparation

__all__ = ["METHODS", "Framing", "Sound", "SourceSeparation", "read_sound", "write_sound"]
