"""Libraries that may be missing."""

from __future__ import annotations

import math
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import pytest

from nonneg._optional import import_optional, install_command
from nonneg.exceptions import MissingDependencyError, NonnegError


def test_installed_library_is_returned():
    assert import_optional("math", extra="none", purpose="Counting") is math


def test_missing_library_says_how_to_get_it():
    with pytest.raises(MissingDependencyError, match="Reading shells needs not_there") as caught:
        import_optional("not_there.inside", extra="formats", purpose="Reading shells")
    assert f"Install it with: {install_command('formats')}" in str(caught.value)
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, NonnegError)


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'nonneg[report]'"),
        (
            '{"url": "file:///a%20clone/nonneg", "dir_info": {"editable": true}}',
            "pip install --editable '/a clone/nonneg[report]'",
        ),
        (
            '{"url": "file:///a/clone", "dir_info": {}}',
            "pip install 'nonneg[report] @ file:///a/clone'",
        ),
        (
            '{"url": "https://host/nonneg.git", "vcs_info": {"vcs": "git"}}',
            "pip install 'nonneg[report] @ git+https://host/nonneg.git'",
        ),
    ],
)
def test_the_advice_works_for_how_nonneg_was_installed(origin, command, monkeypatch):
    installed = SimpleNamespace(read_text=lambda name: origin if name == "direct_url.json" else None)
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: installed)
    assert install_command("report") == command


def test_the_advice_where_nonneg_is_not_installed(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", missing)
    assert install_command("report") == "pip install 'nonneg[report]'"


def test_error_inside_a_library_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "broken_library.py").write_text("import something_it_needs\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="something_it_needs") as caught:
        import_optional("broken_library", extra="formats", purpose="Reading")
    assert not isinstance(caught.value, MissingDependencyError)
