"""The installed package: the wheel builds, is typed and carries its license and templates."""

from __future__ import annotations

import email
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE", "CMakeLists.txt"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    # Without the compiled core, which takes a minute to build.
    settings = ("wheel.cmake=false", "wheel.py-api=py3", "wheel.platlib=false")
    options = ["--no-isolation", *(f"--config-setting={setting}" for setting in settings)]
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", *options],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (built,) = (source / "dist").glob("nonneg-*.whl")
    with zipfile.ZipFile(built) as archive:
        yield archive


def metadata(wheel: zipfile.ZipFile) -> email.message.Message:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return email.message_from_bytes(wheel.read(name))


def test_wheel_is_typed(wheel):
    assert "nonneg/py.typed" in wheel.namelist()


def test_wheel_holds_every_file_of_the_package_and_nothing_else(wheel):
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "nonneg").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    }
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == sources


def test_wheel_holds_no_experiments_and_no_benchmarks(wheel):
    top = {name.split("/")[0] for name in wheel.namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} == {"nonneg"}


def test_wheel_describes_itself_by_the_readme(wheel):
    assert metadata(wheel)["Description-Content-Type"] == "text/markdown"
    assert metadata(wheel).get_payload().startswith("# nonneg")


def test_wheel_carries_its_license(wheel):
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())
    assert metadata(wheel)["License-Expression"] == "BSD-3-Clause"


def test_wheel_offers_the_extras_and_the_command(wheel):
    extras = {"dask", "torch", "cupy", "audio", "report", "formats", "singlecell", "all"}
    assert set(metadata(wheel).get_all("Provides-Extra")) >= extras
    (name,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert "nonneg = nonneg.cli:main" in wheel.read(name).decode()


def test_every_direct_dependency_is_pinned_for_the_tests():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in lines if "==" in line}
    groups = project["dependency-groups"]
    asked = project["project"]["dependencies"] + groups["test"] + groups["lint"] + groups["docs"]
    names = {
        requirement.partition(">=")[0].partition("[")[0].lower().replace("_", "-") for requirement in asked
    }
    assert names - pinned == set()
