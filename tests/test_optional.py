"""Libraries that may be missing."""

from __future__ import annotations

import pytest

from nonneg._optional import import_optional
from nonneg.exceptions import MissingDependencyError


def test_error_inside_a_library_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "broken_library.py").write_text("import something_it_needs\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="something_it_needs") as caught:
        import_optional("broken_library", extra="formats", purpose="Reading")
    assert not isinstance(caught.value, MissingDependencyError)
