"""Libraries that may be missing."""

from __future__ import annotations

import pytest

from nonneg._optional import import_optional
from nonneg.exceptions import MissingDependencyError, NonnegError


def test_missing_library_says_how_to_get_it():
    with pytest.raises(MissingDependencyError, match="Reading shells needs not_there") as caught:
        import_optional("not_there.inside", extra="formats", purpose="Reading shells")
    assert "Install it with: pip install 'nonneg[formats]'" in str(caught.value)
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, NonnegError)


def test_error_inside_a_library_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "broken_library.py").write_text("import something_it_needs\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="something_it_needs") as caught:
        import_optional("broken_library", extra="formats", purpose="Reading")
    assert not isinstance(caught.value, MissingDependencyError)
