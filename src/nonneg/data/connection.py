"""A running Dask cluster: whether it answers, has this version of `nonneg`, and can send arrays of a GPU."""

from __future__ import annotations

import asyncio
import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from distributed import Client, Security, WorkerPlugin, rpc
from distributed.protocol.serialize import dask_serialize

from nonneg._version import __version__
from nonneg.exceptions import InvalidParameterError, NonnegError

CONNECT_SECONDS = 8.0  # a scheduler answers in milliseconds, a busy one in a second or two
NAMED = 3  # processes that a message names

_checked: WeakSet[Any] = WeakSet()


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Use a running cluster inside the block."""
    _check_address(address)
    with Client(address, timeout=CONNECT_SECONDS) as client:
        if not client.nthreads():
            raise InvalidParameterError(
                f"The Dask scheduler at {address} has no workers. Start some: dask worker {address}"
            )
        check_versions(client)
        yield client


def _check_address(address: str) -> None:
    # Not left to `Client`, which waits for ever for some servers that are no schedulers.
    async def ask() -> Any:
        async with rpc(address, connection_args=Security().get_connection_args("client")) as server:
            return await server.identity()

    expected = "Expected an address such as tcp://host:8786, which `dask scheduler` prints when it starts."
    try:
        kind = asyncio.run(asyncio.wait_for(ask(), CONNECT_SECONDS))["type"]
    except TimeoutError:
        reason = f"no answer within {CONNECT_SECONDS:g} s"
    except (OSError, ValueError) as error:
        reason = str(error) or type(error).__name__
    except Exception:  # bytes of another protocol can mean anything
        reason = "what answers is not a part of Dask"
    else:
        if kind == "Scheduler":
            return
        reason = f"it is the address of a {kind.lower()}"
    raise InvalidParameterError(f"No Dask scheduler answers at {address} ({reason}). {expected}")


def check_versions(client: Any) -> None:
    """Refuse a cluster, when it is first used, whose scheduler or workers have another `nonneg` or none."""
    if client in _checked:
        return
    # From the standard library, which every process can import.
    asked = (pkgutil.resolve_name, "nonneg:__version__")
    found = client.run(*asked, on_error="return")
    try:
        found["the scheduler"] = client.run_on_scheduler(*asked)
    except ImportError as error:
        found["the scheduler"] = error
    without = [place for place, one in found.items() if isinstance(one, ImportError)]
    others = [place for place, one in found.items() if isinstance(one, str) and one != __version__]
    if without or others:
        places = without or others
        what = "cannot import nonneg" if without else f"have a version of nonneg other than {__version__}"
        more = f" and {len(places) - NAMED} more" if len(places) > NAMED else ""
        raise NonnegError(
            f"Some processes of the Dask cluster {what}: {', '.join(places[:NAMED])}{more}. Install "
            f"nonneg=={__version__}, the version here, where the scheduler and the workers run, and start "
            "them again."
        )
    _checked.add(client)


class SendFromGPU(WorkerPlugin):  # type: ignore[misc]
    """Let workers, also those to come, send arrays that are on a GPU."""

    # Dask converts tensors to NumPy arrays, which fails on a GPU, and then it asks for them again and again.
    # For arrays of CuPy it needs another library. Both can be pickled.

    name = "nonneg-send-from-gpu"

    def __init__(self, library: str) -> None:
        self.library = library

    def setup(self, worker: Any) -> None:
        """Called by Dask on every worker."""
        if self.library == "torch":
            import torch
            from distributed.protocol.torch import serialize_torch_Tensor

            kind, usual = torch.Tensor, serialize_torch_Tensor
        else:
            import cupy

            kind, usual = cupy.ndarray, None

        def serialize(array: Any) -> Any:
            if usual is None or array.device.type != "cpu":
                raise NotImplementedError  # Dask goes on with pickle
            return usual(array)

        dask_serialize.register(kind, serialize)
