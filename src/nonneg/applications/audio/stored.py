"""How a saved model stores the transform of its signals."""

from __future__ import annotations

from nonneg.applications.audio.constant_q import ConstantQ
from nonneg.applications.audio.frames import Framing
from nonneg.applications.audio.lapped import LappedFraming
from nonneg.applications.audio.stft import STFT
from nonneg.estimators.stored_fields import Part, StoredArray, Value

FRAMING = Part(
    {
        kind: {
            "frame_length": Value(int),
            "hop": Value(int, source="step"),
            "window": StoredArray("frame_length", source="weights"),
        }
        for kind in (Framing, STFT)
    }
    | {
        ConstantQ: {
            "rate": Value(float),
            "bins_per_octave": Value(int),
            "fmin": Value(float),
            "hop": Value(int, source="step"),
        }
    }
    | {
        LappedFraming: {
            "frame_length": Value(int),
            "window": StoredArray("length of the window", source="weights"),
        }
    }
)
