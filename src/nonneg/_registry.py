"""The base of every registry: named implementations, each with a summary and the parameters it accepts.

Errors, documentation and contract tests read the registries, so a new entry needs no other change.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any, Generic, TypeVar

from nonneg.exceptions import UnknownNameError, UnsupportedError


@dataclass(frozen=True)
class Entry:
    """An implementation and what it accepts."""

    implementation: Callable[..., Any] | str  # or "module:function", which is imported when it first runs
    summary: str  # what it does, in one line for the documentation
    options: frozenset[str] = field(default=frozenset(), kw_only=True)  # its own parameters (`method_params`)

    @property
    def run(self) -> Callable[..., Any]:
        """The function, imported if necessary."""
        if isinstance(self.implementation, str):
            function: Callable[..., Any] = resolve_name(self.implementation)
            return function
        return self.implementation


EntryType = TypeVar("EntryType", bound=Entry)


class Registry(dict[str, EntryType], Generic[EntryType]):
    """Entries by name."""

    def __init__(self, parameter: str, entries: Mapping[str, EntryType]) -> None:
        super().__init__(entries)
        self.parameter = parameter  # what users pass the name as: "solver", "init", "method"

    def name_of(self, name: object, *, also: Iterable[str] = ()) -> str:
        """Return a registered name; `also` are names that the caller handles."""
        return UnknownNameError.check(self.parameter, name, [*self, *also])

    def find(self, name: object) -> EntryType:
        """Return an entry by name."""
        return self[self.name_of(name)]

    def check_options(self, name: str, options: Iterable[str]) -> None:
        """Reject parameters that an entry does not accept, and say which ones it or others do."""
        accepted = self.find(name).options
        for option in options:
            if option in accepted:
                continue
            accepts = f"It accepts {sorted(accepted)}." if accepted else "It accepts none."
            refused = f"{self.parameter}={name!r} does not accept {option}"
            if others := [repr(key) for key, entry in self.items() if option in entry.options]:
                *first, last = others
                able = f"{', '.join(first)} and {last} do" if first else f"{last} does"
                raise UnsupportedError(f"{refused}; only {able}. {accepts}")
            near = difflib.get_close_matches(str(option), accepted, n=1)
            raise UnknownNameError(f"{refused}. {accepts}" + (f" Did you mean {near[0]!r}?" if near else ""))
