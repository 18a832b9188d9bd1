"""Functions that are written for LLVM directly and compiled by numba's code generator.

To compile a kernel from Python, numba takes one second or more, most of it for types. A kernel that every
first fit waits for is worth writing in LLVM's own terms.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from nonneg._lazy import cached_property
from nonneg.kernels.clock import preparing

WORD = ir.IntType(64)
# Products and sums may fuse. NaN and infinity keep their meaning.
FLAGS = ("contract", "nsz", "arcp")


class MachineCode:
    """A function of the address of its arguments and of a range of rows; used as a `Task` is."""

    def __init__(self, name: str, build: Callable[[Builder], None]) -> None:
        self.name, self.build = name, build

    @cached_property
    def address(self) -> int:
        """Where the machine code is."""
        with preparing(), global_compiler_lock:
            self._library = cpu_target.target_context.codegen().create_library(self.name)
            module = self._library.create_ir_module(self.name)
            function = ir.Function(module, ir.FunctionType(ir.VoidType(), [WORD] * 3), self.name)
            builder = Builder(function)
            self.build(builder)
            builder.ret_void()
            self._library.add_ir_module(module)
            self._library.finalize()
            return self._library.get_pointer_to_function(self.name)

    @cached_property
    def dispatcher(self) -> Callable[[int, int, int], None]:
        """The function for Python; it runs without the interpreter's lock."""
        return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(self.address)


class Builder(ir.IRBuilder):
    """LLVM's instructions, and what kernels need besides."""

    def __init__(self, function: Any) -> None:
        super().__init__(function.append_basic_block())
        self.arguments, self.start, self.stop = function.args

    def argument(self, i: int, kind: Any = None) -> Any:
        """Return a number of the arguments or, as a pointer to entries of this kind, an address."""
        found = self.load(self.gep(self.inttoptr(self.arguments, WORD.as_pointer()), [WORD(i)]))
        return found if kind is None else self.inttoptr(found, kind.as_pointer())

    def variable(self, value: Any) -> Any:
        """Return the place of a new variable."""
        return cgutils.alloca_once_value(self, value)

    @contextmanager
    def loop(self, stop: Any, start: Any = None, step: Any = None) -> Iterator[Any]:
        """Do what follows for every number of a range."""
        start, step = WORD(0) if start is None else start, WORD(1) if step is None else step
        with cgutils.for_range_slice(self, start, stop, step, WORD) as (i, _):
            yield i

    def at(self, array: Any, *index: tuple[Any, Any] | Any) -> Any:
        """Return a pointer to an entry; `(i, n)` stands for i n."""
        place = WORD(0)
        for part in index:
            place = self.add(place, self.mul(*part) if isinstance(part, tuple) else part)
        return self.gep(array, [place], inbounds=True)

    def whole(self, place: Any, vector: Any) -> Any:
        """Return a pointer to a vector that begins with this entry."""
        return self.bitcast(place, vector.as_pointer())

    def spread(self, value: Any, vector: Any) -> Any:
        """Return a vector of equal entries."""
        one = self.insert_element(ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None)
        return self.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)

    def smaller(self, a: Any, b: Any) -> Any:
        """Return what Python's `min(a, b)` returns."""
        return self.select(self.fcmp_ordered("<", b, a), b, a)

    def larger(self, a: Any, b: Any) -> Any:
        """Return what Python's `max(a, b)` returns."""
        return self.select(self.fcmp_ordered(">", b, a), b, a)

    def call_at(self, address: int, result: Any, arguments: Sequence[Any]) -> Any:
        """Call a function of C by its address."""
        form = ir.FunctionType(result, [argument.type for argument in arguments])
        return self.call(self.inttoptr(WORD(address), form.as_pointer()), arguments)


def address_of(name: str) -> int:
    """Return the address of a function of Python's interface for C."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
