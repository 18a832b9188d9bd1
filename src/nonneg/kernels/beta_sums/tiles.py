"""Sums over tiles of the model, and the line search, in Triton, for float32.

Products of float32 are six products of bfloat16: a number is the sum of three of them, and the three smallest
products of parts are left out. That is as exact as float32, as fast as three TF32 products, and its operands
need no rearrangement. Their sums are added to the total by an ordinary addition, because tensor cores round
toward zero.
"""

from __future__ import annotations

import os

try:
    import triton
    import triton.language as tl

    from nonneg.kernels.beta_sums.entrywise import both_terms, chosen_step, divergence, raised_to
except ImportError:
    triton = None


AVAILABLE = triton is not None
# Triton's interpreter does not multiply half precision: there the parts are stored in float32.
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"

if triton is not None:
    PART = tl.constexpr(tl.float32 if INTERPRETED else tl.bfloat16)

    @triton.jit
    def _parts(a):
        """Return three numbers of half precision whose sum is a."""
        first = a.to(tl.bfloat16)
        a -= first.to(tl.float32)
        second = a.to(tl.bfloat16)
        third = (a - second.to(tl.float32)).to(tl.bfloat16)
        return first.to(PART), second.to(PART), third.to(PART)

    @triton.jit
    def _product(a0, a1, a2, b0, b1, b2):
        """Return a b, the smallest products of parts first."""
        c = tl.dot(a2, b0)
        c = tl.dot(a0, b2, c)
        c = tl.dot(a1, b1, c)
        c = tl.dot(a1, b0, c)
        c = tl.dot(a0, b1, c)
        return tl.dot(a0, b0, c)

    @triton.jit
    def _less_product(total, a, b0, b1, b2):
        """Return total - a b."""
        a0, a1, a2 = _parts(a)
        # Were it a sum, the compiler would let the tensor cores add.
        return total - _product(a0, a1, a2, b0, b1, b2)

    @triton.jit
    def split(
        right,
        damping,
        out,
        n_right,
        k,
        SQUARES: tl.constexpr,
        DAMPED: tl.constexpr,
        CAPPED: tl.constexpr,
        N: tl.constexpr,
        K: tl.constexpr,
    ):
        """Write the parts of a factor, padded with zeros, and of its squares."""
        j = tl.program_id(0) * N + tl.arange(0, N)
        c = tl.arange(0, K)
        inside = (j < n_right)[:, None] & (c < k)[None, :]
        R = tl.load(right + j.to(tl.int64)[:, None] * k + c[None, :], mask=inside, other=0.0)
        at = j.to(tl.int64)[:, None] * K + c[None, :]
        rows = (j < n_right)[:, None]
        size = tl.cast(n_right, tl.int64) * K
        first, second, third = _parts(R)
        tl.store(out + at, first, mask=rows)
        tl.store(out + size + at, second, mask=rows)
        tl.store(out + 2 * size + at, third, mask=rows)
        if SQUARES:
            S = R * R
            if DAMPED:
                damp = tl.load(damping + c, mask=c < k, other=0.0)[None, :]
                if CAPPED:
                    # The last entry is what bounds it: a part of the largest square.
                    damp = tl.minimum(damp, tl.load(damping + k) * tl.max(S, axis=1)[:, None])
                S += damp
            first, second, third = _parts(S)
            tl.store(out + 3 * size + at, first, mask=rows)
            tl.store(out + 4 * size + at, second, mask=rows)
            tl.store(out + 5 * size + at, third, mask=rows)

    @triton.jit
    def sums(
        x,
        mask,
        left,
        right,
        weights,
        exact,
        wanted,
        numbers,
        first,
        second,
        traces,
        losses,
        n_left,
        n_right,
        k,
        x_left,
        x_right,
        mask_left,
        mask_right,
        n_each,
        NEWTON: tl.constexpr,
        KIND: tl.constexpr,
        CONVEX: tl.constexpr,
        MASKED: tl.constexpr,
        WEIGHTED: tl.constexpr,
        EXACT: tl.constexpr,
        SOME: tl.constexpr,
        SECOND: tl.constexpr,
        TRACED: tl.constexpr,
        LOSS: tl.constexpr,
        SUMS: tl.constexpr,
        N_LEFT: tl.constexpr,
        N_RIGHT: tl.constexpr,
        K: tl.constexpr,
    ):
        """Write the sums of some rows on the left over some rows on the right."""
        i = tl.program_id(0) * N_LEFT + tl.arange(0, N_LEFT)
        part = tl.program_id(1)
        c = tl.arange(0, K)
        rows = i < n_left
        work = 1
        if SOME:
            work = tl.max(tl.load(wanted + i, mask=rows, other=0).to(tl.int32), axis=0)
        if work > 0:
            inside = rows[:, None] & (c < k)[None, :]
            at = i.to(tl.int64)[:, None] * k + c[None, :]
            l0, l1, l2 = _parts(tl.load(left + at, mask=inside, other=0.0))
            # Numbers given as arguments would be rounded to float32.
            beta = tl.load(numbers)
            lower = tl.load(numbers + 1).to(tl.float32)
            most = tl.load(numbers + 2).to(tl.float32)
            offset = tl.load(numbers + 3).to(tl.float32)
            exactly = rows[:, None]
            if EXACT:
                exactly = (tl.load(exact + i, mask=rows, other=0) != 0)[:, None]
            total = tl.zeros((N_LEFT, K), tl.float32)
            total2 = tl.zeros((N_LEFT, K), tl.float32)
            trace = tl.zeros((N_LEFT,), tl.float32)
            loss = tl.zeros((N_LEFT,), tl.float64)
            begin = part * n_each
            end = tl.minimum(begin + n_each, n_right)
            size = tl.cast(n_right, tl.int64) * K
            x_rows = x + i.to(tl.int64)[:, None] * x_left
            mask_rows = mask + i.to(tl.int64)[:, None] * mask_left
            for start in range(begin, end, N_RIGHT):
                j = start + tl.arange(0, N_RIGHT)
                columns = j < end
                place = right + j.to(tl.int64)[:, None] * K + c[None, :]
                r0 = tl.load(place, mask=columns[:, None], other=0.0)
                r1 = tl.load(place + size, mask=columns[:, None], other=0.0)
                r2 = tl.load(place + 2 * size, mask=columns[:, None], other=0.0)
                here = rows[:, None] & columns[None, :]
                entry = tl.load(x_rows + j.to(tl.int64)[None, :] * x_right, mask=here, other=0.0) + offset
                v = _product(l0, l1, l2, tl.trans(r0), tl.trans(r1), tl.trans(r2))
                v = tl.maximum(v + offset, lower)
                if MASKED:
                    seen = tl.load(mask_rows + j.to(tl.int64)[None, :] * mask_right, mask=here, other=0) != 0
                else:
                    seen = here
                if LOSS:
                    terms = tl.where(seen, divergence(entry, v, beta, KIND), 0.0)
                    if WEIGHTED:
                        terms *= tl.load(weights + j, mask=columns, other=0.0)[None, :]
                    loss += tl.sum(terms, axis=1).to(tl.float64)
                if SUMS:
                    one, two = both_terms(entry, v, beta, most, exactly, NEWTON, KIND, CONVEX, EXACT)
                    if MASKED or TRACED or KIND != 1:
                        one = tl.where(seen, one, 0.0)
                        two = tl.where(seen, two, 0.0)
                    if WEIGHTED:
                        weight = tl.load(weights + j, mask=columns, other=0.0)[None, :]
                        one *= weight
                        two *= weight
                    total = _less_product(total, -one, r0, r1, r2)
                    if SECOND:
                        if NEWTON:
                            s0 = tl.load(place + 3 * size, mask=columns[:, None], other=0.0)
                            s1 = tl.load(place + 4 * size, mask=columns[:, None], other=0.0)
                            s2 = tl.load(place + 5 * size, mask=columns[:, None], other=0.0)
                            total2 = _less_product(total2, -two, s0, s1, s2)
                        else:
                            total2 = _less_product(total2, -two, r0, r1, r2)
                    if TRACED:
                        trace += tl.sum(two, axis=1)
            whole = part.to(tl.int64) * n_left
            if SUMS:
                tl.store(first + whole * k + at, total, mask=inside)
            if SECOND:
                tl.store(second + whole * k + at, total2, mask=inside)
            if TRACED:
                tl.store(traces + whole + i, trace, mask=rows)
            if LOSS:
                tl.store(losses + whole + i, loss, mask=rows)

    @triton.jit
    def search(
        x,
        mask,
        left,
        direction,
        right,
        penalty,
        losses,
        numbers,
        order,
        lengths,
        done,
        steps,
        n_left,
        n_right,
        k,
        x_left,
        x_right,
        mask_left,
        mask_right,
        tries,
        RESUMED: tl.constexpr,
        KIND: tl.constexpr,
        CONVEX: tl.constexpr,
        MASKED: tl.constexpr,
        N_LEFT: tl.constexpr,
        N_RIGHT: tl.constexpr,
        K: tl.constexpr,
    ):
        """Write a step for every row on the left.

        The first call tries one step for all rows, and a second one more of them for the rows that need it,
        which come first in `order`: most programs have none of these.
        """
        i = tl.program_id(0) * N_LEFT + tl.arange(0, N_LEFT)
        c = tl.arange(0, K)
        rows = i < n_left
        if RESUMED:
            i = tl.load(order + i, mask=rows, other=0)
        inside = rows[:, None] & (c < k)[None, :]
        at = i.to(tl.int64)[:, None] * k + c[None, :]
        L = tl.load(left + at, mask=inside, other=0.0)
        D = tl.load(direction + at, mask=inside, other=0.0)
        d0, d1, d2 = _parts(D)
        linear = tl.load(penalty + i, mask=rows, other=0.0)
        quadratic = tl.load(penalty + n_left + i, mask=rows, other=0.0)
        down = -tl.load(penalty + 2 * n_left + i, mask=rows, other=0.0)
        beta = tl.load(numbers)
        lower = tl.load(numbers + 1).to(tl.float32)
        offset = tl.load(numbers + 3).to(tl.float32)
        size = tl.cast(n_right, tl.int64) * K
        x_rows = x + i.to(tl.int64)[:, None] * x_left
        mask_rows = mask + i.to(tl.int64)[:, None] * mask_left
        t = tl.where(down > 0, 1.0, 0.0).to(tl.float64)
        found = down <= 0
        if RESUMED:
            t = tl.load(lengths + i, mask=rows, other=0.0)
            found = tl.load(done + i, mask=rows, other=1) != 0
        base = t
        if not CONVEX:
            base = tl.load(losses + i, mask=rows, other=0.0)
        turn = 0
        while (turn < tries) & (tl.max((found == 0).to(tl.int32), axis=0) > 0):
            t0, t1, t2 = _parts(L + t.to(tl.float32)[:, None] * D)
            value = tl.zeros((N_LEFT,), tl.float64)
            for start in range(0, n_right, N_RIGHT):
                j = start + tl.arange(0, N_RIGHT)
                columns = j < n_right
                place = right + j.to(tl.int64)[:, None] * K + c[None, :]
                r0 = tl.trans(tl.load(place, mask=columns[:, None], other=0.0))
                r1 = tl.trans(tl.load(place + size, mask=columns[:, None], other=0.0))
                r2 = tl.trans(tl.load(place + 2 * size, mask=columns[:, None], other=0.0))
                here = rows[:, None] & columns[None, :]
                entry = tl.load(x_rows + j.to(tl.int64)[None, :] * x_right, mask=here, other=0.0) + offset
                v = tl.maximum(_product(t0, t1, t2, r0, r1, r2) + offset, lower)
                if MASKED:
                    here = tl.load(mask_rows + j.to(tl.int64)[None, :] * mask_right, mask=here, other=0) != 0
                if CONVEX:
                    d = _product(d0, d1, d2, r0, r1, r2)
                    if KIND == 1:
                        terms = d * (1.0 - entry / v)
                    else:
                        terms = d * (v - entry) * raised_to(v, beta, KIND)
                else:
                    terms = divergence(entry, v, beta, KIND)
                value += tl.sum(tl.where(here, terms, 0.0), axis=1).to(tl.float64)
            t, found = chosen_step(t, found, base, value, down, linear, quadratic, CONVEX)
            turn += 1
        if RESUMED:
            tl.store(steps + i, tl.where(found, t, 0.0).to(tl.float32), mask=rows)
        else:
            tl.store(lengths + i, t, mask=rows)
            tl.store(done + i, found.to(tl.int8), mask=rows)
