"""numba's `njit` as the kernels use it: without the GIL, cached on disk, and quick to load from there.

Before it loads a cached function, numba imports and registers everything that a compilation might need,
which takes 0.25 s; machine code that is already there needs its runtime alone. The load is tried with that,
and again in numba's own way if it fails.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from nonneg._forks import guard
from nonneg.kernels.clock import preparing

with preparing():
    import llvmlite.binding
    import numba

try:
    from numba.core.caching import FunctionCache
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.runtime import rtsys
except ImportError:  # another numba than those known: its own way serves
    FunctionCache = None
else:
    # A child that is forked while another thread compiles would wait for that thread forever. LLVM's own lock
    # is taken by any thread that disposes of what a compilation left.
    with contextlib.suppress(AttributeError):
        for holder in (llvmlite.binding.ffi.lib._lock, global_compiler_lock):
            guard(holder)


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function at its first call, or load it from the cache."""

    @_off_the_clock
    def decorate(function: Callable[..., Any]) -> Any:
        if numba.config.DISABLE_JIT:  # NUMBA_DISABLE_JIT=1, to debug kernels and to see which lines run
            return function
        # Few kernels are passed around as functions, for which numba compiles one more entry point.
        settings = {"nogil": True, "cache": True, "no_cfunc_wrapper": True} | options
        dispatcher = numba.njit(**settings)(function)
        if FunctionCache is not None and isinstance(getattr(dispatcher, "_cache", None), FunctionCache):
            dispatcher._cache = _QuickCache(dispatcher.py_func)
        # What numba calls where no version fits the types of the arguments yet.
        dispatcher._compile_for_args = _off_the_clock(_for_read_only(dispatcher))
        return dispatcher

    return decorate


def part(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that only compiled functions call, as a part of each of these.

    LLVM optimizes it there and nowhere else. With `jit` it would optimize the function twice, and make and
    store machine code and an entry point for Python that nobody calls.
    """
    return jit(**{"cache": False, "no_cpython_wrapper": True} | _PART | options)


def in_python(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Use a Python function instead of an intrinsic where nothing is compiled."""
    return lambda generated: function if numba.config.DISABLE_JIT else generated


def _for_read_only(dispatcher: Any) -> Callable[..., Any]:
    """Let versions for writable arrays serve read-only ones (memory maps) instead of compiling others."""
    compile_for_args = dispatcher._compile_for_args

    def compiled(*arguments: Any) -> Any:
        # No kernel writes to an array that it is given to read.
        given = [
            np.empty((0,) * one.ndim, one.dtype)
            if isinstance(one, np.ndarray) and one.flags.c_contiguous and not one.flags.writeable
            else one
            for one in arguments
        ]
        found = compile_for_args(*given)
        if any(one is not other for one, other in zip(given, arguments, strict=True)):
            dispatcher._insert([dispatcher.typeof_pyval(one)._code for one in arguments], found, False)
        return found

    return compiled


def _off_the_clock(prepare: Callable[..., Any]) -> Callable[..., Any]:
    """Leave compilation out of the time of iterations."""

    @functools.wraps(prepare)
    def prepared(*arguments: Any, **named: Any) -> Any:
        with preparing():
            return prepare(*arguments, **named)

    return prepared


_PART: dict[str, Any] = {}
if FunctionCache is not None:

    class _Linked(JITCodeLibrary):
        """Code that is linked into that of other functions, and optimized there."""

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        @property
        def codegen(self) -> Any:
            return self

        def set_env(self, name: str, environment: Any) -> None:
            """Do nothing: there is no machine code that could use Python's objects."""

    class _PartCompiler(Compiler):
        def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
            super().__init__(typing, target, library or _Linked(target.codegen(), "part"), *rest)

    _PART["pipeline_class"] = _PartCompiler

    class _QuickCache(FunctionCache):
        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                rtsys.initialize(target_context)
                found = self._load_overload(sig, target_context)
            except Exception:  # whatever it is, numba's own way either works or says what is wrong
                found = None
            return super().load_overload(sig, target_context) if found is None else found
