"""Real data sets, read from the local store; a file each."""

from __future__ import annotations

from nonneg.datasets.real.indian_pines import load_indian_pines
from nonneg.datasets.real.olivetti import load_olivetti
from nonneg.datasets.real.tdt2 import load_tdt2

__all__ = ["load_indian_pines", "load_olivetti", "load_tdt2"]
