"""Checkpoint of a run, from which it resumes.

It is a folder with one file of arrays and JSON, replaced atomically. It carries a key made of the
data, the parameters and the initialization: a run with another key is not resumed.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from nonneg._arrays import is_dask, to_numpy, write_npz
from nonneg.exceptions import FileFormatError, InvalidDataError, OutputError
from nonneg.iteration.history import History

FILE_NAME = "run.npz"
_COST = 10  # saving takes at most about a tenth of the time


def checkpoint_key(*parts: Any) -> str:
    """Return a digest of what identifies a run: numbers, texts, lists and dicts of them, and arrays."""
    return hashlib.sha256(json.dumps(parts, default=_described).encode()).hexdigest()


def _described(value: Any) -> Any:
    if getattr(value, "shape", ()):
        array = np.ascontiguousarray(to_numpy(value))
        return [str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest()]
    return sorted(value) if isinstance(value, set | frozenset) else str(value)


def _check_state(state: Any, values: dict[str, Any]) -> None:
    """Reject wrong numbers, and factors that do not fit the data: compiled code would read beyond them."""
    for name, value in values.items():
        if isinstance(getattr(state, name), int | float) and not isinstance(value, int | float):
            raise ValueError(f"{name} is not a number")
    factors: dict[str, Any] = {name: getattr(state, name, None) for name in ("W", "Ht")}
    if not all(hasattr(factor, "shape") for factor in factors.values()):
        return
    sides = {n for factor in factors.values() for n in factor.shape}
    for item in fields(state):
        initial, stored = getattr(state, item.name), values.get(item.name)
        if (like := factors.get(item.name.partition("_")[0])) is not None:
            optional = initial is None and stored is None
            fits = optional or tuple(getattr(stored, "shape", ())) == tuple(like.shape)
        else:  # what is computed from them
            fits = initial is not None or sides.issuperset(getattr(stored, "shape", ())[:1])
        if not fits:
            raise ValueError(f"{item.name} does not fit the data")


def check_factors(state: Any, when: str) -> None:
    """Reject a state whose factors have entries that are not finite, or negative where they may not be."""
    # Rows of W may be spread over workers, where a look at them is a pass: the certificate looks at these.
    for name in ("W", "Ht"):
        factor = getattr(state, name, None)
        if factor is None or is_dask(factor) or not hasattr(factor, "shape"):
            continue
        low, high = float(factor.min()), float(factor.max())
        may_be_negative = name == "Ht" and getattr(state, "signed", False)
        good = low > -math.inf if may_be_negative else low >= 0
        if not (good and high < math.inf):
            bad = high if good else low
            raise InvalidDataError(f"The factor {name} of the state has an entry {bad:g} {when}.")


@dataclass
class Checkpoint:
    """Path and interval at which a run is saved."""

    folder: Path  # created if it does not exist
    key: str  # identifies data, parameters and initialization
    interval: float = 5.0  # seconds between two saves; 0 saves after every iteration
    from_numpy: Callable[[str, Any], Any] = lambda name, array: array  # to the device of the data
    _last: float = field(default_factory=time.monotonic)
    _seconds: float = 0.0  # that the last save took

    @classmethod
    def of(cls, folder: str | Path | None, *parts: Any, **options: Any) -> Checkpoint | None:
        """Return the checkpoint of the run whose iterates the parts determine; None without a folder.

        A part that takes a pass over the data is a function, which is called where there is a folder.
        """
        if folder is None:
            return None
        key = checkpoint_key(*(part() if callable(part) else part for part in parts))
        return cls(Path(folder), key, **options)

    def due(self) -> bool:
        """Tell whether `interval` seconds have passed since the last save, or more if that took long."""
        return time.monotonic() - self._last >= max(self.interval, _COST * self._seconds)

    def save(self, state: Any, n_iter: int, seconds: float, history: History) -> None:
        """Write the run, whose state is a dataclass; the old file stays until the new one is complete."""
        arrays: dict[str, Any] = {}
        numbers: dict[str, Any] = {}
        for item in fields(state):
            value = getattr(state, item.name)
            if value is None or isinstance(value, bool | int | float | str):
                numbers[item.name] = value
            else:
                arrays["state_" + item.name] = to_numpy(value)
        about = {
            "key": self.key,
            "n_iter": n_iter,
            "seconds": seconds,
            "history": history.as_dict(),
            "numbers": numbers,
        }
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
        started = time.monotonic()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_npz(self.folder / FILE_NAME, arrays)
        except OSError as error:
            raise OutputError(
                f"The checkpoint could not be written to {self.folder}: {error}. The previous one is intact. "
                "Free some space or name another folder."
            ) from error
        self._last = time.monotonic()
        self._seconds = self._last - started if self.interval else 0.0

    def load(self, state: Any) -> tuple[Any, int, float, History] | None:
        """Return state, number of iterations, seconds and history, if the folder has a run with this key."""
        path = self.folder / FILE_NAME
        if not path.exists():
            return None
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
                about = json.loads(bytes(stored["about"]).decode())
                if about["key"] != self.key:
                    return None
                arrays = {name[6:]: stored[name] for name in stored.files if name.startswith("state_")}
                values = about["numbers"] | arrays
                _check_state(state, values)
                check_factors(SimpleNamespace(**values), "in the checkpoint")
                history = History(about["history"])
                n_iter, seconds = int(about["n_iter"]), float(about["seconds"])
                if n_iter < 0 or not seconds >= 0 or (len(history) and history.n_iter[-1] != n_iter):
                    raise ValueError(f"{n_iter} iterations in {seconds} seconds do not fit its history")
        except MemoryError:
            raise
        except Exception as error:
            # NumPy, zip and JSON raise whatever they stumble over. NumPy takes what it does not know for
            # pickled data, and says how to load that all the same.
            because = "it contains no arrays" if "pickle" in str(error) else str(error)
            raise FileFormatError(
                f"The checkpoint {path} cannot be read ({because}). Delete it to start over, "
                "or name another folder."
            ) from error
        arrays = {name: self.from_numpy(name, array) for name, array in arrays.items()}
        return replace(state, **about["numbers"] | arrays), n_iter, seconds, history
