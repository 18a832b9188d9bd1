"""The base of every registry: named implementations, each with a summary and the parameters it accepts.

Errors, documentation and contract tests read the registries, so a new entry needs no other change.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Generic, TypeVar

from nonneg.exceptions import UnknownNameError, UnsupportedError


@dataclass(frozen=True)
class Entry:
    """An implementation and what it accepts.

    Parameters
    ----------
    implementation : callable or str
        The function, or "module:function", which is imported when it first runs.
    summary : str
        What it does, in one line for the documentation.
    options : frozenset of str
        The parameters of its own that it accepts (`method_params`).
    aliases : tuple of str
        Other names.
    """

    implementation: Callable[..., Any] | str
    summary: str
    options: frozenset[str] = field(default=frozenset(), kw_only=True)
    aliases: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def run(self) -> Callable[..., Any]:
        """The function, imported if necessary."""
        if isinstance(self.implementation, str):
            module, _, function = self.implementation.partition(":")
            found: Callable[..., Any] = getattr(import_module(module), function)
            return found
        return self.implementation


EntryType = TypeVar("EntryType", bound=Entry)


class Registry(dict[str, EntryType], Generic[EntryType]):
    """Entries by name.

    Parameters
    ----------
    parameter : str
        What users pass the name as: "solver", "init", "method". Error messages say it.
    entries : mapping of str to Entry
        The entries.
    """

    def __init__(self, parameter: str, entries: Mapping[str, EntryType]) -> None:
        super().__init__(entries)
        self.parameter = parameter

    def name_of(self, name: object, *, also: Iterable[str] = ()) -> str:
        """Return the registered name, given that or an alias; `also` are names that the caller handles."""
        if isinstance(name, str):
            if name in self:
                return name
            for key, entry in self.items():
                if name in entry.aliases:
                    return key
        raise UnknownNameError.of(self.parameter, name, [*self, *also])

    def find(self, name: object, *, also: Iterable[str] = ()) -> EntryType:
        """Return an entry by name or alias."""
        return self[self.name_of(name, also=also)]

    def check_options(self, name: str, given: Iterable[str]) -> None:
        """Reject parameters that an entry does not accept, and say which ones it or others do."""
        name = self.name_of(name)
        accepted = self[name].options
        for option in given:
            if option in accepted:
                continue
            others = [repr(key) for key, entry in self.items() if option in entry.options]
            accepts = f"It accepts {sorted(accepted)}." if accepted else "It accepts none."
            if others:
                able = others[0] if len(others) == 1 else f"{', '.join(others[:-1])} and {others[-1]}"
                raise UnsupportedError(
                    f"{self.parameter}={name!r} does not accept {option}; "
                    f"only {able} {'does' if len(others) == 1 else 'do'}. {accepts}"
                )
            near = difflib.get_close_matches(str(option), accepted, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UnknownNameError(f"{self.parameter}={name!r} does not accept {option}. {accepts}{hint}")
