"""A statement about a fit, with its number, its threshold and a verdict; a certificate is a list of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Self

from nonneg._html import badge, table
from nonneg.certificates.advice import DETAILS, THEOREMS, Advice, advice_for
from nonneg.certificates.plain_values import PlainValues
from nonneg.exceptions import InvalidParameterError, UnknownNameError


class Verdict(StrEnum):
    """Verdict on a statement."""

    HOLDS = "holds"
    FAILS = "fails"
    NOT_VERIFIABLE = "not verifiable"


def verdict_of(holds: bool, otherwise: Verdict = Verdict.FAILS) -> Verdict:
    """Return the verdict on a claim that was checked."""
    return Verdict.HOLDS if holds else otherwise


@dataclass(frozen=True)
class Statement(PlainValues):
    """One claim about a fit, and whether it holds.

    Attributes
    ----------
    name : str
        A lower-case word or words with hyphens, by which a program asks for it.
    sentence : str
        What it says, in words and numbers.
    number : float or None
        The measured quantity; None where it could not be measured.
    threshold : float or None
        What the number was compared with; None where nothing was.
    verdict : Verdict or str
        ``"holds"``, ``"fails"`` or ``"not verifiable"``.
    quantities : mapping of str to float, int, str or bool
        What the statement rests on.
    """

    name: str
    sentence: str
    number: float | None
    threshold: float | None
    verdict: Verdict
    quantities: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            verdict = Verdict(self.verdict)
        except ValueError:
            raise InvalidParameterError(
                f"Expected a verdict among {[str(v) for v in Verdict]}, got {self.verdict!r}."
            ) from None
        object.__setattr__(self, "verdict", verdict)
        for name in ("number", "threshold"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else float(value))
        quantities = {str(key): _plain(value) for key, value in self.quantities.items()}
        object.__setattr__(self, "quantities", MappingProxyType(quantities))

    @property
    def holds(self) -> bool:
        """Whether the verdict is ``"holds"``."""
        return self.verdict is Verdict.HOLDS

    @property
    def grade(self) -> str:
        """``"good"``, ``"caution"``, ``"problem"`` or ``"open"``: green, amber, red or gray in reports."""
        if self.verdict is Verdict.FAILS:
            return "problem" if self.headline else "caution"
        return "good" if self.holds else "open"

    @property
    def badge(self) -> str:
        """The verdict in one word for people: ``"caution"`` where a statement fails without harm."""
        return "caution" if self.grade == "caution" else str(self.verdict)

    @property
    def is_detail(self) -> bool:
        """Whether it is a number for readers of the papers, from which nothing follows for the answer."""
        if self.verdict is Verdict.FAILS:
            return self.advice.startswith("Nothing to do")
        return self.name in DETAILS or (self.name in THEOREMS and not self.holds)

    @property
    def advice(self) -> str:
        """What to do about a statement that fails; empty for others."""
        return self._remedy.todo

    @property
    def headline(self) -> str:
        """What a report says first if the result should not be used as it is; empty otherwise."""
        return self._remedy.headline

    @property
    def _remedy(self) -> Advice:
        return advice_for(self.name, self.quantities) if self.verdict is Verdict.FAILS else Advice("")

    def _as_plain(self) -> dict[str, Any]:
        plain = {name: _to_json(value) for name, value in vars(self).items()}
        quantities = {key: _to_json(value) for key, value in self.quantities.items()}
        return plain | {"verdict": str(self.verdict), "quantities": quantities}

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only view of a dict cannot be pickled or copied, and estimators are.
        plain = dict(self.quantities)
        return type(self), (self.name, self.sentence, self.number, self.threshold, self.verdict, plain)

    def __str__(self) -> str:
        return f"[{self.badge}] {self.name}: {self.sentence} {self.advice}".rstrip()

    def __repr__(self) -> str:
        numbers = f"number={self.number}, threshold={self.threshold}"
        return f"Statement({self.name!r}, {numbers}, verdict={str(self.verdict)!r})"


@dataclass(frozen=True)
class Certificate(PlainValues):
    """Statements about one fit, in the order in which they were made.

    Iterate over it, ask for one by name (``certificate["stationarity"]``), or print it.

    Attributes
    ----------
    statements : tuple of Statement
        With different names.
    """

    statements: tuple[Statement, ...] = ()

    def __post_init__(self) -> None:
        statements = tuple(self.statements)
        names = [statement.name for statement in statements]
        if len(set(names)) < len(names):
            raise InvalidParameterError(f"Expected statements with different names, got {names}.")
        object.__setattr__(self, "statements", statements)

    def __iter__(self) -> Iterator[Statement]:
        return iter(self.statements)

    def __len__(self) -> int:
        return len(self.statements)

    def __contains__(self, name: object) -> bool:
        return any(statement.name == name for statement in self.statements)

    def __getitem__(self, name: str) -> Statement:
        for statement in self.statements:
            if statement.name == name:
                return statement
        raise UnknownNameError.of("statement", name, self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the statements."""
        return tuple(statement.name for statement in self.statements)

    def with_statements(self, more: Iterable[Statement]) -> Certificate:
        """Return a certificate with further statements, which replace those of the same name.

        Parameters
        ----------
        more : iterable of Statement
            What to add.

        Returns
        -------
        Certificate
            A new one.
        """
        joined = {statement.name: statement for statement in self.statements}
        joined.update((statement.name, statement) for statement in more)
        return Certificate(tuple(joined.values()))

    def describe(self, verbose: bool = False) -> str:
        """Return the statements as text, one per line; ``print(certificate)`` shows the same.

        Parameters
        ----------
        verbose : bool, default False
            Also those that are numbers for readers of the papers (`Statement.is_detail`).

        Returns
        -------
        str
            The last line has the number of statements that are not shown.
        """
        lines = [str(line) for line in self.statements if verbose or not line.is_detail]
        if hidden := len(self.statements) - len(lines):
            lines.append(f"({hidden} more for readers of the papers: describe(verbose=True))")
        return "\n".join(lines) or "(no statements)"

    def _as_plain(self) -> dict[str, Any]:
        return {"statements": [statement.as_dict() for statement in self.statements]}

    @classmethod
    def _of_plain(cls, values: Mapping[str, Any]) -> Self:
        return cls(tuple(Statement.from_dict(statement) for statement in values["statements"]))

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        inside = ", ".join(f"{statement.name}: {statement.verdict}" for statement in self.statements)
        return f"Certificate({inside})"

    def _repr_html_(self) -> str:
        rows = [
            (badge(row.badge, row.grade), row.name, f"{row.sentence} {row.advice}".rstrip())
            for row in self.statements
            if not row.is_detail
        ]
        return table(["verdict", "statement", "what it says"], rows) if rows else "(no statements)"


def _plain(value: Any) -> Any:
    """Turn NumPy scalars and the like into Python's own, and refuse what JSON cannot hold."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return str(value) if isinstance(value, StrEnum) else value
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        return value.item()
    raise InvalidParameterError(
        f"Expected a number, a truth value or a text among the quantities, got {value!r}."
    )


def _to_json(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
