"""Errors and warnings raised by nonneg, all importable from here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class NonnegError(Exception):
    """Base class: catch this to catch everything nonneg raises on purpose."""


class InvalidDataError(NonnegError, ValueError):
    """The data cannot be factorized as they are."""


class NegativeDataError(InvalidDataError):
    """An entry of the data is negative."""


class NonFiniteDataError(InvalidDataError):
    """An entry of the data is NaN or infinite."""


class DataTypeError(InvalidDataError, TypeError):
    """The data have a type that is not a real number."""


class InvalidParameterError(NonnegError, ValueError):
    """A parameter has a value that is not allowed."""


class UnknownNameError(InvalidParameterError):
    """A name is not known."""

    @classmethod
    def of(cls, what: str, name: object, known: Iterable[str], *, other: str = "") -> UnknownNameError:
        """Build the error, and suggest similar names; `other` is what may be given instead of a name."""
        names = sorted(known)
        near = difflib.get_close_matches(str(name), names, n=3)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        either = f", or {other}" if other else ""
        more = f" and {len(names) - 20} more" * (len(names) > 20)  # of the columns of a table, say
        return cls(f"{what}={name!r} is not known. Expected one of {names[:20]}{more}{either}.{hint}")

    @classmethod
    def check(cls, what: str, name: object, known: Iterable[str], *, other: str = "") -> str:
        """Return a name that is a known string, or raise the error."""
        if isinstance(name, str) and name in known:
            return name
        raise cls.of(what, name, known, other=other)


class ShapeError(InvalidParameterError):
    """The shape of a given array does not match the data."""


class UnsupportedError(NonnegError, ValueError):
    """Two valid choices that do not go together."""


class UnsupportedInputError(UnsupportedError):
    """The chosen solver does not accept this container."""


class FileFormatError(NonnegError, ValueError):
    """A file is corrupt, truncated or of an unknown format."""


class UnsafeFileError(FileFormatError):
    """Reading the file would need pickle, which can run code."""


class OutputError(NonnegError, OSError):
    """Results could not be written; previous ones are kept."""


class MissingDependencyError(NonnegError, ImportError):
    """An optional library is not installed."""


class DeviceMemoryError(NonnegError, MemoryError):
    """A GPU is too small for the data and their factors."""


class LostRowsError(NonnegError):
    """Rows of W were lost with the workers that held them and their copies."""

    run: Any = None  # how far the fit had come

    def __str__(self) -> str:
        return (
            "Rows of W were lost: the workers that held them and their copies died together. Fit again; with "
            "checkpoint=FOLDER, a fit resumes where it stopped."
        )


class NonnegWarning(UserWarning):
    """Base class of the warnings."""


class InterruptedFitWarning(NonnegWarning):
    """The run was interrupted; the best factors so far are returned."""


class DataChangedWarning(NonnegWarning):
    """The data were adapted before the fit."""


@contextmanager
def as_data_errors(name: str = "X") -> Iterator[None]:
    """Raise what scikit-learn, NumPy and pandas say of data that they cannot convert as an error of ours."""
    said = "" if name == "X" else f"{name}: "  # scikit-learn's words name X
    try:
        yield
    except NonnegError:
        raise
    except TypeError as error:
        raise DataTypeError(f"{said}{error}") from error
    except (ValueError, OverflowError) as error:
        if "with a sequence" in str(error):
            raise ShapeError(f"Expected {name} as a table of numbers, all rows of one length.") from error
        raise (ShapeError if "features, but" in str(error) else InvalidDataError)(f"{said}{error}") from error
