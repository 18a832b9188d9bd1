"""Sounds and names of `nonneg separate`, and the parts of files that are read."""

from __future__ import annotations

import argparse

import numpy as np

from nonneg.applications.audio import Sound

RATE = 100


def sound(samples, name="a.wav", rate=RATE, subtype=None):
    samples = np.asarray(samples, dtype=float)
    return Sound(samples, rate, 1 if samples.ndim == 1 else len(samples), name, subtype)


def options(**changes):
    given = {"channel": "all", "rate": None, "files": ["a.wav"], "begin": 0.0, "seconds": None, "quiet": True}
    return argparse.Namespace(**(given | changes))
