"""Two neighbouring float64 entries as one value, for loops that the compiler does not vectorise by itself.

It gives up on loops that write to several rows, which might overlap for all it knows. Sums and products of
pairs are single instructions where there are such, on every processor with 128-bit registers.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.cgutils import ir
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model
from numba.np.arrayobj import make_array

WIDTH = 2
VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
# A product and a sum may become one instruction.
FUSED = ("contract",)


class PairType(types.Type):
    """The type of a pair."""

    def __init__(self) -> None:
        super().__init__(name="Pair")


PAIR = PairType()


@register_model(PairType)
class PairModel(models.PrimitiveModel):
    """A pair is a vector register."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Return the address of an entry, counted from the first of a C-contiguous array."""
    first = make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(first, [index]), VECTOR.as_pointer())


def _repeated(builder: Any, value: Any) -> Any:
    """Return a pair of equal numbers."""
    found = ir.Constant(VECTOR, ir.Undefined)
    for lane in range(WIDTH):
        found = builder.insert_element(found, value, ir.Constant(ir.IntType(32), lane))
    return found


@intrinsic
def pair_at(context: Any, array: Any, index: Any) -> Any:
    """Read the entries `index` and `index + 1`, counted from the first of a C-contiguous array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], *arguments)
        return builder.load(place, align=8)

    return PAIR(array, types.intp), generate


@intrinsic
def twice_at(context: Any, array: Any, index: Any) -> Any:
    """Return a pair of the entry `index`, counted from the first of a C-contiguous array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first = make_array(signature.args[0])(context, builder, arguments[0]).data
        return _repeated(builder, builder.load(builder.gep(first, [arguments[1]])))

    return PAIR(array, types.intp), generate


@intrinsic
def put_pair(context: Any, array: Any, index: Any, pair: Any) -> Any:
    """Write the entries `index` and `index + 1`, counted from the first of a C-contiguous array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], place, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, PAIR), generate


@intrinsic
def pair_of(context: Any, value: Any) -> Any:
    """Return a pair of equal numbers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _repeated(builder, arguments[0])

    return PAIR(types.float64), generate


@intrinsic
def plus(context: Any, pair: Any, left: Any, right: Any) -> Any:
    """Return pair + left right."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        product = builder.fmul(arguments[1], arguments[2], flags=FUSED)
        return builder.fadd(arguments[0], product, flags=FUSED)

    return PAIR(PAIR, PAIR, PAIR), generate


@intrinsic
def minus(context: Any, pair: Any, left: Any, right: Any) -> Any:
    """Return pair - left right."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        product = builder.fmul(arguments[1], arguments[2], flags=FUSED)
        return builder.fsub(arguments[0], product, flags=FUSED)

    return PAIR(PAIR, PAIR, PAIR), generate


@intrinsic
def times(context: Any, left: Any, right: Any) -> Any:
    """Return left right."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fmul(*arguments, flags=FUSED)

    return PAIR(PAIR, PAIR), generate


@intrinsic
def total_of(context: Any, pair: Any) -> Any:
    """Return the sum of both entries."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first, second = (
            builder.extract_element(arguments[0], ir.Constant(ir.IntType(32), lane)) for lane in range(WIDTH)
        )
        return builder.fadd(first, second)

    return types.float64(PAIR), generate
