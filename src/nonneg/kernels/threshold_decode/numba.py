"""Decoded weights of a block of rows beside a column of ones, and sums of the negative values (compiled)."""

from __future__ import annotations

from nonneg.kernels.jit import jit

UNSHIFTED, SHIFTED, LINEAR = 0, 1, 2


@jit(error_model="numpy")
def decode_block(values, shares, threshold, reference, rule, out, negative_counts, negative_squares, active):
    """Write the decoded weights less a reference, and a one, into each row of `out`; add to the sums."""
    # A row counts in the sums as often as its share says.
    n_rows, n = values.shape
    for i in range(n_rows):
        row, target, share = values[i], out[i], shares[i]
        for j in range(n):
            value = row[j]
            below = value < 0
            negative_counts[j] += share if below else 0.0
            negative_squares[j] += share * value * value if below else 0.0
            over = value > threshold[j]
            active[j] += share if over or rule == LINEAR else 0.0
            if rule == UNSHIFTED:
                weight = value if over else 0.0
            elif rule == SHIFTED:
                weight = value - threshold[j] if over else 0.0
            else:
                weight = value
            target[j] = weight - reference[j]
        target[n] = 1.0
