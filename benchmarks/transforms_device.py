"""Transform learning on a GPU: agreement with the CPU, and the time of a thousand restarts in one batch.

Run with ``python -m benchmarks.transforms_device [WHAT ...]`` on a machine with an NVIDIA GPU and PyTorch;
WHAT is

- ``check``: some iterations equal those on the CPU;
- ``gcm``: 1000 restarts on the Gaussian composite model in one batch, microseconds per restart and
  iteration;
- ``music``: one restart on the music notes, milliseconds per iteration.

Without WHAT, all of them. Every line printed is a JSON record.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

N_STARTS, SEED = 1000, 20240601


def problem(kind: str, n_realizations: int, n_init: int, place: str) -> tuple[Any, Any]:
    """Return the data and initial states on a device."""
    import torch
    from reproduction.tlnmf.both_methods import drawn_frames, parameters

    from nonneg.transforms import frame_covariances
    from nonneg.transforms.initialization import initial_state

    Y = torch.asarray(drawn_frames(kind, n_realizations, 0), device=place)
    data = frame_covariances(Y)
    inits = initial_state(data, parameters(kind)["K"], init=None, n_init=n_init, rng=SEED)
    return data, inits


def options_of(method: str, kind: str) -> Any:
    """Return the options of a method."""
    from reproduction.tlnmf import both_methods

    return both_methods.options_of(kind)[0 if method == "tl" else 1]


def check() -> Iterator[dict[str, Any]]:
    """Compare iterations with those of the array code on the CPU."""
    from nonneg.transforms.loop import ARRAY_STEPS, batch_step

    for method in ("tl", "jd"):
        for S in (1, 10, 100):
            (data, state), (host, same) = problem("gcm", S, 20, "cuda"), problem("gcm", S, 20, "cpu")
            options = options_of(method, "gcm")
            step = batch_step(method, data, options)
            for _ in range(10):
                state, measures = step(state)
                same, expected = ARRAY_STEPS[method](same, host, options)
            apart = float((state.transform.cpu() - same.transform).abs().max())
            wanted = expected["loss"].numpy()
            loss = float(np.abs((measures["loss"].cpu().numpy() - wanted) / wanted).max())
            yield {"what": "check", "method": method, "S": S, "transform": apart, "loss": loss}


def timed(method: str, kind: str, S: int, n_init: int, n_iter: int) -> dict[str, Any]:
    """Time iterations of the loop."""
    from nonneg.transforms import LoopOptions

    data, state = problem(kind, S, n_init, "cuda")
    options = options_of(method, kind)
    state = LoopOptions(20).run(method, state, data, options, "").state
    began = time.perf_counter()
    run = LoopOptions(n_iter).run(method, state, data, options).run
    seconds = (time.perf_counter() - began) / max(1, run.n_iter)
    record = {"method": method, "kind": kind, "S": S, "n_init": n_init, "n_iter": run.n_iter}
    return record | {"seconds": seconds}


def gcm() -> Iterator[dict[str, Any]]:
    """Time a thousand restarts."""
    for method in ("tl", "jd"):
        for S in (10, 100):
            record = timed(method, "gcm", S, N_STARTS, 200)
            yield {"what": "gcm"} | record | {"microseconds": record["seconds"] * 1e6 / N_STARTS}


def music() -> Iterator[dict[str, Any]]:
    """Time one restart on the music notes."""
    for method in ("tl", "jd"):
        for S in (1, 100):
            record = timed(method, "music", S, 1, 50)
            yield {"what": "music"} | record | {"milliseconds": record["seconds"] * 1e3}


WHAT: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {"check": check, "gcm": gcm, "music": music}


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", help=f"of {', '.join(WHAT)} (default: all)")
    given = parser.parse_args()
    unknown = [name for name in given.what if name not in WHAT]
    if unknown:
        parser.error(f"{', '.join(unknown)}: expected some of {', '.join(WHAT)}")
    import torch

    if not torch.cuda.is_available():
        sys.stderr.write("no NVIDIA GPU that PyTorch can use\n")
        return 2
    head = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "numpy": np.__version__}
    sys.stdout.write(json.dumps(head) + "\n")
    for name in given.what or WHAT:
        for record in WHAT[name]():
            sys.stdout.write(json.dumps(record) + "\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
