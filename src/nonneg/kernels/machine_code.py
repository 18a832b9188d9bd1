"""Functions that are written for LLVM directly and compiled by numba's code generator.

To compile a kernel from Python, numba takes one second or more, most of it for types. A kernel that every
first fit waits for is worth writing in LLVM's own terms.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core.caching import make_library_cache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from nonneg._lazy import cached_property
from nonneg.kernels.clock import preparing

WORD = ir.IntType(64)
# Products and sums may fuse. NaN and infinity keep their meaning.
FLAGS = ("contract", "nsz", "arcp")
# The same for sums of many terms, in any order.
SUM = (*FLAGS, "reassoc")

_Cache = make_library_cache("llvm-")


class MachineCode:
    """A function of the address of its arguments and of a range of rows; used as a `Task` is.

    `build` writes it, given a `Builder` and the number of bytes of an entry of the arrays. LLVM takes a third
    less time for compact code; loops that it is to vectorize are faster without.
    """

    def __init__(self, build: Callable[[Builder, int], None], itemsize: int, *, compact: bool = True) -> None:
        self.build, self.itemsize, self.compact = build, itemsize, compact
        self.name = f"{build.__name__}_{itemsize}"
        self._library: Any = None

    @cached_property
    def address(self) -> int:
        """Where the machine code is."""
        with preparing(), global_compiler_lock:
            # Another thread may have come first.
            self._library = self._library or self._stored() or self._compiled()
            return self._library.get_pointer_to_function(self.name)

    def _stored(self) -> Any:
        """Return the code from numba's cache, if it is there."""
        with contextlib.suppress(Exception):  # whatever it is, compiling takes a tenth of a second
            return _Cache(self.build)._load_overload(self._key(), cpu_target.target_context)
        return None

    def _compiled(self) -> Any:
        library = cpu_target.target_context.codegen().create_library(self.name)
        module = library.create_ir_module(self.name)
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [WORD] * 3), self.name)
        if self.compact:
            function.attributes.add("optsize")
        builder = Builder(function)
        self.build(builder, self.itemsize)
        builder.ret_void()
        _optimize_once(library)
        library.enable_object_caching()
        library.add_ir_module(module)
        library.finalize()
        with contextlib.suppress(Exception):  # a folder that cannot be written to, for one
            library.get_pointer_to_function(self.name)  # which makes the code that is stored
            _Cache(self.build)._save_overload(self._key(), library)
        return library

    def _key(self) -> tuple[int, int]:
        # The cache looks at the file of `build`; its code depends on this one, too.
        return self.itemsize, Path(__file__).stat().st_mtime_ns

    @cached_property
    def dispatcher(self) -> Callable[[int, int, int], None]:
        """The function for Python; it runs without the interpreter's lock."""
        return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(self.address)


def _optimize_once(library: Any) -> None:
    """Leave out two of three rounds of optimization, which are for reference counts, where numba lets us."""
    codegen = library._codegen
    hooks = ("_optimize_functions", "_optimize_final_module", "_final_module")
    if not hasattr(codegen, "_module_pass_manager") or any(not hasattr(library, name) for name in hooks):
        return

    def optimize() -> None:
        found = codegen._module_pass_manager()
        passes, *builder = found if isinstance(found, tuple) else (found,)  # with LLVM 14 there is no builder
        passes.run(library._final_module, *builder)

    library._optimize_functions = lambda module: None
    library._optimize_final_module = optimize


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

    @contextlib.contextmanager
    def loop(self, stop: Any, start: Any = None, step: Any = None) -> Iterator[Any]:
        """Do what follows for every number of a range."""
        start, step = WORD(0) if start is None else start, WORD(1) if step is None else step
        with cgutils.for_range_slice(self, start, stop, step, WORD) as (i, _):
            yield i

    @contextlib.contextmanager
    def loop_until(self, most: Any) -> Iterator[Callable[[Any], None]]:
        """Repeat what follows; what is yielded ends the loop where a condition holds."""
        with cgutils.for_range(self, most, intp=WORD) as turn:

            def leave(condition: Any) -> None:
                with self.if_then(condition):
                    turn.do_break()

            yield leave

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

    def allocate(self, size: Any) -> Any:
        """Return the address of new memory."""
        return self.call(self._of_python("PyMem_RawMalloc", WORD), [size])

    def release(self, memory: Any) -> None:
        """Give memory back."""
        self.call(self._of_python("PyMem_RawFree", ir.VoidType()), [memory])

    def _of_python(self, name: str, result: Any) -> Any:
        # By name: the code is kept on disk, and addresses differ from process to process.
        return cgutils.get_or_insert_function(self.module, ir.FunctionType(result, [WORD]), name)


def arguments(numbers: list[int], size: int, arrays: tuple[Any, ...]) -> tuple[Any, int]:
    """Return what a function reads, as `team.run` puts it, and its address; it must outlive the call."""
    addresses = (array.__array_interface__["data"][0] for array in arrays)
    given = np.array([*numbers, size, *addresses], dtype=np.int64)
    return given, given.__array_interface__["data"][0]
