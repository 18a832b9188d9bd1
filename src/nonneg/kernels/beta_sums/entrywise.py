"""Entrywise functions of data and model in Triton, and kernels that apply them to a stored model."""

from __future__ import annotations

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None


if triton is not None:

    @triton.jit
    def raised_to(v, beta, KIND: tl.constexpr):
        """Return v^(beta - 2)."""
        if KIND == 0:
            inverse = 1.0 / v
            raised = inverse * inverse
        elif KIND == 1:
            raised = 1.0 / v
        elif KIND == 2:
            raised = tl.full(v.shape, 1.0, v.dtype)
        elif KIND == 3:
            raised = 1.0 / (v * tl.sqrt(v))
        elif KIND == 4:
            raised = 1.0 / tl.sqrt(v)
        else:
            # In float64 whatever the data: the logarithm of a large number has few digits after the point.
            raised = tl.exp((beta - 2.0) * tl.log(v.to(tl.float64))).to(v.dtype)
        return raised

    @triton.jit
    def _named_divergence(x, v, KULLBACK: tl.constexpr):
        """Return r log(r) - r + 1 or r - 1 - log(r), r = x / v, in float32, exact also near r = 1."""
        inverse = 1.0 / v
        s = (x - v) * inverse
        ratio = x * inverse
        bits = ratio.to(tl.int32, bitcast=True)
        # The ratio is 2^exponent times a number between sqrt(1/2) and sqrt(2).
        exponent = (bits - 0x3F3504F3) >> 23
        near = exponent == 0
        f = (bits - (exponent << 23)).to(tl.float32, bitcast=True) - 1.0
        f = tl.where(near, s, f)
        # log(1 + f) = 2 (u + u^3 / 3 + u^5 / 5 ...), and f - 2 u = f u.
        u = f / (2.0 + f)
        w = u * u
        series = w * u * (0.6666667 + w * (0.4 + w * (0.2857143 + w * 0.2222222)))
        log = exponent.to(tl.float32) * 0.6931472 + 2.0 * u + series
        less = s * u - series
        if KULLBACK:
            out = tl.where(near, s * s - (1.0 + s) * less, ratio * log - s)
        else:
            out = tl.where(near, less, s - log)
        return out

    @triton.jit
    def divergence(x, v, beta, KIND: tl.constexpr):
        """Return the divergence of every entry without loss of digits where the fit is good."""
        if KIND == 2:
            loss = 0.5 * (x - v) * (x - v)
        elif KIND == 3:
            root = tl.sqrt(v)
            gap = (x - v) / (tl.sqrt(x) + root)
            loss = 2.0 * gap * gap / root
        elif KIND == 4:
            root = tl.sqrt(v)
            own = tl.sqrt(x)
            gap = (x - v) / (own + root)
            loss = (4.0 * gap * gap * (own + 0.5 * root)) / 3.0
        elif (KIND < 2) and (v.dtype == tl.float32):
            loss = _named_divergence(x, v, KIND == 1)
            if KIND == 1:
                loss *= v
        else:
            x = x.to(tl.float64)
            v = v.to(tl.float64)
            if KIND == 1:
                loss = (v - x) + x * tl.log(tl.maximum(x / v, 1e-300))
            elif KIND == 0:
                ratio = tl.maximum(x / v, 1e-300)
                loss = ratio - 1.0 - tl.log(ratio)
            else:
                power = tl.exp((beta - 1.0) * tl.log(v))
                own = tl.exp(beta * tl.log(tl.maximum(x, 1e-300)))
                own = tl.where(x > 0, own - beta * x * power, 0.0)
                loss = ((beta - 1.0) * power * v + own) / (beta * (beta - 1.0))
        return loss

    @triton.jit
    def both_terms(
        x,
        v,
        beta,
        most,
        exactly,
        NEWTON: tl.constexpr,
        KIND: tl.constexpr,
        CONVEX: tl.constexpr,
        EXACT: tl.constexpr,
    ):
        """Return ratio and power, or first and second derivatives, of every entry."""
        if NEWTON:
            if KIND == 1:
                inverse = 1.0 / v
                ratio = x * inverse
                one = 1.0 - ratio
                two = ratio * inverse
            elif KIND == 0:
                inverse = 1.0 / v
                ratio = x * inverse
                one = inverse - inverse * ratio
                two = inverse * inverse
                if EXACT:
                    two *= tl.where(exactly, 2.0 * ratio - 1.0, 1.0)
            else:
                raised = raised_to(v, beta, KIND)
                one = raised * (v - x)
                two = raised
                if CONVEX or EXACT:
                    own = (beta - 1.0).to(v.dtype)
                    rest = (2.0 - beta).to(v.dtype)
                    two = own * tl.minimum(raised, most) + rest * raised * x / v
                    if not CONVEX:
                        two = tl.where(exactly, two, raised)
        elif KIND == 1:
            one = x / v
            two = tl.full(v.shape, 1.0, v.dtype)
        else:
            raised = raised_to(v, beta, KIND)
            one = x * raised
            two = raised * v
        return one, two

    @triton.jit
    def chosen_step(t, found, base, value, down, linear, quadratic, CONVEX: tl.constexpr):
        """Return the next steps and which rows have found theirs; `base` are the losses at 0."""
        if CONVEX:
            # The chord of the derivative: exact for a parabola.
            up = value + linear + quadratic * t
            longer = found | (up <= 0)
            t = tl.where(longer, t, t * down / tl.where(longer, 1.0, down + up))
            found = longer | (up <= 2.0 * down)
        else:
            gain = base - value - t * (linear + 0.5 * quadratic * t)
            # At the end what is to be gained drowns in rounding; the direction is good all the same.
            ending = (down < 1e-9 * base) & (gain > -1e-14 * base)
            found = found | (gain > 0) | ending
            t = tl.where(found, t, 0.4 * t)
        return t, found

    @triton.jit
    def entries(
        x,
        mask,
        model,
        other,
        terms,
        row_weights,
        column_weights,
        exact,
        numbers,
        n_rows,
        n_columns,
        x_row,
        x_column,
        mask_row,
        mask_column,
        NEWTON: tl.constexpr,
        KIND: tl.constexpr,
        CONVEX: tl.constexpr,
        MASKED: tl.constexpr,
        BY_ROW: tl.constexpr,
        BY_COLUMN: tl.constexpr,
        EXACT: tl.constexpr,
        SECOND: tl.constexpr,
        LOSS: tl.constexpr,
        SUMS: tl.constexpr,
        N_ROWS: tl.constexpr,
        N_COLUMNS: tl.constexpr,
    ):
        """Overwrite a stored model by the first term of every entry; write second terms and losses."""
        i = tl.program_id(0) * N_ROWS + tl.arange(0, N_ROWS)
        j = tl.program_id(1) * N_COLUMNS + tl.arange(0, N_COLUMNS)
        kind = model.dtype.element_ty
        here = (i < n_rows)[:, None] & (j < n_columns)[None, :]
        at = i.to(tl.int64)[:, None] * n_columns + j[None, :]
        beta = tl.load(numbers)
        lower = tl.load(numbers + 1).to(kind)
        most = tl.load(numbers + 2).to(kind)
        offset = tl.load(numbers + 3).to(kind)
        place = i.to(tl.int64)[:, None] * x_row + j.to(tl.int64)[None, :] * x_column
        entry = tl.load(x + place, mask=here, other=0.0) + offset
        v = tl.maximum(tl.load(model + at, mask=here, other=1.0) + offset, lower)
        weight = tl.full((N_ROWS, N_COLUMNS), 1.0, kind)
        if MASKED:
            place = i.to(tl.int64)[:, None] * mask_row + j.to(tl.int64)[None, :] * mask_column
            weight = tl.where(tl.load(mask + place, mask=here, other=0) != 0, weight, 0.0)
        if BY_ROW:
            weight *= tl.load(row_weights + i, mask=i < n_rows, other=0.0)[:, None]
        if BY_COLUMN:
            weight *= tl.load(column_weights + j, mask=j < n_columns, other=0.0)[None, :]
        exactly = here
        if EXACT:
            exactly = (tl.load(exact + i, mask=i < n_rows, other=0) != 0)[:, None]
        if LOSS:
            tl.store(terms + at, weight * divergence(entry, v, beta, KIND), mask=here)
        if SUMS:
            one, two = both_terms(entry, v, beta, most, exactly, NEWTON, KIND, CONVEX, EXACT)
            tl.store(model + at, weight * one, mask=here)
            if SECOND:
                tl.store(other + at, weight * two, mask=here)

    @triton.jit
    def search_entries(
        x,
        mask,
        model,
        change,
        penalty,
        losses,
        numbers,
        steps,
        n_rows,
        n_columns,
        n_all,
        x_row,
        x_column,
        mask_row,
        mask_column,
        tries,
        KIND: tl.constexpr,
        CONVEX: tl.constexpr,
        MASKED: tl.constexpr,
        N_ROWS: tl.constexpr,
        N_COLUMNS: tl.constexpr,
    ):
        """Write a step for every row of a stored model and of its change along the direction."""
        i = tl.program_id(0) * N_ROWS + tl.arange(0, N_ROWS)
        rows = i < n_rows
        kind = model.dtype.element_ty
        linear = tl.load(penalty + i, mask=rows, other=0.0)
        quadratic = tl.load(penalty + n_all + i, mask=rows, other=0.0)
        down = -tl.load(penalty + 2 * n_all + i, mask=rows, other=0.0)
        beta = tl.load(numbers)
        lower = tl.load(numbers + 1).to(kind)
        offset = tl.load(numbers + 3).to(kind)
        at = i.to(tl.int64)[:, None] * n_columns
        x_rows = x + i.to(tl.int64)[:, None] * x_row
        mask_rows = mask + i.to(tl.int64)[:, None] * mask_row
        t = tl.where(down > 0, 1.0, 0.0).to(tl.float64)
        found = down <= 0
        base = t
        if not CONVEX:
            base = tl.load(losses + i, mask=rows, other=0.0)
        turn = 0
        while (turn < tries) & (tl.max((found == 0).to(tl.int32), axis=0) > 0):
            length = t.to(kind)[:, None]
            value = tl.zeros((N_ROWS,), tl.float64)
            for start in range(0, n_columns, N_COLUMNS):
                j = start + tl.arange(0, N_COLUMNS)
                here = rows[:, None] & (j < n_columns)[None, :]
                entry = tl.load(x_rows + j.to(tl.int64)[None, :] * x_column, mask=here, other=0.0) + offset
                d = tl.load(change + at + j[None, :], mask=here, other=0.0)
                v = tl.load(model + at + j[None, :], mask=here, other=1.0) + length * d
                v = tl.maximum(v + offset, lower)
                if MASKED:
                    here = tl.load(mask_rows + j.to(tl.int64)[None, :] * mask_column, mask=here, other=0) != 0
                if CONVEX:
                    terms = d * (v - entry) * raised_to(v, beta, KIND)
                else:
                    terms = divergence(entry, v, beta, KIND)
                value += tl.sum(tl.where(here, terms, 0.0), axis=1).to(tl.float64)
            t, found = chosen_step(t, found, base, value, down, linear, quadratic, CONVEX)
            turn += 1
        tl.store(steps + i, tl.where(found, t, 0.0).to(kind), mask=rows)
