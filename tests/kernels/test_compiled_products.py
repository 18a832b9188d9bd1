"""The BLAS of compiled kernels is held to one thread."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits

from nonneg import _threads
from nonneg.kernels import compiled_products
from nonneg.kernels.compiled_products import single_threaded_products


def counts():
    # Others, PyTorch's say, may have been loaded since.
    known = [*_threads._blas.lib_controllers, *compiled_products._overlooked()]
    return {library.filepath: library.get_num_threads() for library in known}


@pytest.fixture
def two_threads():
    with single_threaded_products():
        pass  # all libraries are loaded
    with threadpool_limits(limits=2, user_api="blas"):
        yield counts()


def test_every_blas_is_held_and_set_free_again(two_threads):
    with single_threaded_products():
        assert set(counts().values()) == {1}
        with single_threaded_products():
            assert set(counts().values()) == {1}
        assert set(counts().values()) == {1}
    assert counts() == two_threads


def test_it_is_set_free_after_an_error(two_threads):
    with pytest.raises(RuntimeError), single_threaded_products():
        raise RuntimeError
    assert counts() == two_threads


def test_a_library_that_was_loaded_late_is_held_too(two_threads, monkeypatch):
    compiled_products._overlooked.cache_clear()
    monkeypatch.setattr(_threads, "_blas", _threads._blas.select(prefix="none of them"))
    try:
        with single_threaded_products():
            assert compiled_products._overlooked()
            assert set(counts().values()) == {1}
        assert counts().items() >= two_threads.items()
    finally:
        compiled_products._overlooked.cache_clear()
