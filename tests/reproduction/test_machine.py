"""Facts about the machine, without its name."""

from __future__ import annotations

import json
import platform
import re
import subprocess

import pytest
from reproduction import machine


def test_the_facts_are_plain_and_do_not_name_the_machine():
    text = json.dumps(machine.machine_facts() | machine.present_facts())
    facts = json.loads(text)
    assert facts["cores"] >= 1
    assert facts["memory_gib"] > 0
    assert facts["versions"]["numpy"][0].isdigit()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", facts["date"])
    assert platform.node() == "" or platform.node() not in text


def test_the_system_is_named_with_its_version(monkeypatch):
    monkeypatch.setattr("platform.system", lambda: "Linux")
    for release in ("6.1.0-12-amd64", "6.1.0"):
        monkeypatch.setattr("platform.release", lambda release=release: release)
        assert machine.machine_facts()["system"] == "Linux 6.1.0"


def test_a_library_that_is_not_installed_is_said():
    assert machine.machine_facts(["no-such-library"])["versions"] == {"no-such-library": "from source"}


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("Vendor ID: ARM\nModel name: Neoverse-N1\n", "ARM Neoverse-N1 (m)"),
        ("Vendor ID: GenuineIntel\nModel name: Intel(R) Xeon(R) X\n", "Intel Xeon X (m)"),
        ("Vendor ID: AuthenticAMD\nModel name: EPYC\n", "AMD EPYC (m)"),
        ("nothing of use\n", "p"),
    ],
)
def test_the_processor_is_named_as_far_as_it_is_known(told, name, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "m")
    monkeypatch.setattr(platform, "processor", lambda: "p")
    monkeypatch.setattr(
        subprocess, "run", lambda *words, **more: subprocess.CompletedProcess(words, 0, stdout=told)
    )
    assert machine.processor() == name


def test_without_lscpu_the_system_is_asked(monkeypatch):
    def absent(*words, **more):
        raise FileNotFoundError("lscpu")

    monkeypatch.setattr(subprocess, "run", absent)
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert machine.processor() == platform.machine()
