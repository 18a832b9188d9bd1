"""The setting of Figures 2 and 3: ten anchors and the middles of their pairs."""

from __future__ import annotations

from typing import Any

from reproduction.merit.anchor_trials import settings_by_draws

N_DRAWS = 50
SNRS = tuple(range(5, 21))
SHOWN = ("merit", "fast-gradient", "spa")


def trials(quick: bool, shown: tuple[str, ...] = SHOWN) -> list[dict[str, Any]]:
    """Return one setting per method, signal-to-noise ratio and batch of draws."""
    k = 10
    common = {"data": "middle", "n": k * (k + 1) // 2, "n_features": 50, "n_anchors": k}
    snrs = (8, 12, 20) if quick else SNRS
    cases = [{"snr": snr, "method": method} for snr in snrs for method in shown]
    return settings_by_draws(cases, 3 if quick else N_DRAWS, 10, common)
