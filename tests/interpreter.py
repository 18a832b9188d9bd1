"""Triton's interpreter without what takes most of its time."""

from __future__ import annotations

import functools
from typing import Any

KNOWN = "3.9."
"""The version of Triton whose types are made as below."""


@functools.cache
def spare_the_interpreter() -> None:
    """Make the interpreter remember what it computes again and again."""
    import triton

    _patch_the_language_once()
    if triton.__version__.startswith(KNOWN):
        _remember_types()


def _patch_the_language_once() -> None:
    """Spare Triton's interpreter what takes a third of its time.

    Whenever a kernel calls a function, the interpreter looks through all of `triton.language` for what it has
    to replace. It has done so before for this function, and never undoes it.
    """
    from triton.runtime import interpreter

    called, ready = interpreter.InterpretedFunction.__call__, set()

    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        if self.fn in ready:
            return self.rewrite()(*arguments, **named)
        ready.add(self.fn)
        return called(self, *arguments, **named)

    interpreter.InterpretedFunction.__call__ = call


def _remember_types() -> None:
    """Compute the shape, the size and the name of a type once, not for every intermediate result."""
    from triton.language import core
    from triton.language.semantic import TritonSemantic
    from triton.runtime import interpreter

    of_numpy, numbers = interpreter._get_np_dtype, {}

    def type_of_numpy(kind: Any) -> Any:
        element = kind.element_ty if type(kind) is core.block_type else kind
        known = numbers.get(id(element))
        if known is None:
            known = numbers[id(element)] = element, of_numpy(element)
        return known[1]

    interpreter._get_np_dtype = type_of_numpy
    # Every sum and product of integers is computed a second time in 64 bits. The tests' are small.
    interpreter.interpreter_builder.options = interpreter.InterpreterOptions(sanitize_overflow=False)
    constexpr = core.constexpr
    block_init, unwrap = core.block_type.__init__, core._unwrap_if_constexpr
    broadcast = TritonSemantic.broadcast_impl_value
    blocks: dict[Any, Any] = {}
    shapes: dict[Any, Any] = {}
    tensors: dict[Any, Any] = {}
    plain = {int, float, bool, str, type(None), core.tensor, core.dtype, core.block_type, core.pointer_type}

    def init_block(self: Any, element_ty: Any, shape: Any) -> None:
        values = shape.values if type(shape) is core.tuple else shape
        sizes = (*[one.value if type(one) is constexpr else one for one in values],)
        known = blocks.get((id(element_ty), sizes))
        if known is None:
            block_init(self, element_ty, shape)
            self.shape = shapes.setdefault(sizes, self.shape)
            # This keeps the type of the elements, and so its id.
            blocks[id(element_ty), sizes] = vars(self).copy()
        else:
            vars(self).update(known)

    def init_tensor(self: Any, handle: Any, kind: Any) -> None:
        shape = kind.shape if kind.is_block() else ()
        known = tensors.get(id(shape))
        if known is None:
            sizes = list(shape)
            numel = functools.reduce(lambda a, b: a * b, sizes, 1)
            known = shape, constexpr(numel), core.tuple([constexpr(size) for size in sizes])
            tensors[id(shape)] = known
        self.handle, self.type, self.dtype = handle, kind, kind.scalar
        _, self.numel, self.shape = known

    def unwrap_plain(one: Any) -> Any:
        kind = type(one)
        if kind is constexpr:
            return one.value
        return one if kind in plain else unwrap(one)

    def broadcast_others(self: Any, lhs: Any, rhs: Any) -> Any:
        if lhs.type.is_block() and rhs.type.is_block() and lhs.type.shape is rhs.type.shape:
            return lhs, rhs
        return broadcast(self, lhs, rhs)

    core.block_type.__init__ = init_block
    core.tensor.__init__ = init_tensor
    core._unwrap_if_constexpr = unwrap_plain
    TritonSemantic.broadcast_impl_value = broadcast_others
