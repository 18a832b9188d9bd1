"""Decoded weights of a block of rows beside a column of ones, and sums of the negative values (compiled)."""

from __future__ import annotations

from nonneg.kernels.compiled.jit import jit

UNSHIFTED, SHIFTED, LINEAR = 0, 1, 2


@jit(error_model="numpy")
def decode_block(values, threshold, reference, rule, out, negative_counts, negative_squares, active):
    """Write the decoded weights less a reference, and a one, into each row of `out`; add to the sums."""
    n_rows, n = values.shape
    for i in range(n_rows):
        row, target = values[i], out[i]
        for j in range(n):
            value = row[j]
            below = value < 0
            negative_counts[j] += 1.0 if below else 0.0
            negative_squares[j] += value * value if below else 0.0
            over = value > threshold[j]
            active[j] += 1.0 if over or rule == LINEAR else 0.0
            if rule == UNSHIFTED:
                weight = value if over else 0.0
            elif rule == SHIFTED:
                weight = value - threshold[j] if over else 0.0
            else:
                weight = value
            target[j] = weight - reference[j]
        target[n] = 1.0
