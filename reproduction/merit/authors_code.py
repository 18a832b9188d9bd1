"""Success rates of the authors' published code in the paper's settings, where the paper shows only curves.

Run for this library with the settings of their scripts; the numbers of trials are small.
"""

from __future__ import annotations

from reproduction.merit.rates import Rate, rate_of

_FIGURE_2 = {
    "merit": {5: 0, 8: 0, 10: 0.85, 12: 1, 14: 1, 16: 1, 20: 1},
    "fast-gradient": {5: 0, 8: 0, 10: 0, 12: 0, 14: 0.10, 16: 0.95, 20: 1},
    "spa": {5: 0, 8: 0, 10: 0, 12: 0, 14: 0, 16: 0, 20: 0.05},
}
_FIGURE_4A = {
    "merit": {5: 0, 7: 0.17, 9: 1, 11: 1, 13: 1, 15: 1},
    "fast-gradient": {5: 0, 7: 0, 9: 0.58, 11: 1, 13: 1, 15: 1},
    "spa": {5: 0, 7: 0, 9: 0, 11: 0.42, 13: 0.58, 15: 1},
}
_TRIALS = {"figure-2": 20, "figure-4a": 12}


def authors_rates(figure: str) -> dict[tuple[str, int], Rate]:
    """Return the rates that the authors' code had."""
    table = _FIGURE_2 if figure == "figure-2" else _FIGURE_4A
    return {
        (method, snr): rate_of(share, _TRIALS[figure])
        for method, shares in table.items()
        for snr, share in shares.items()
    }
