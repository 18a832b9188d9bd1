"""The front door: help at once, one line for an error, exit codes."""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from nonneg.cli import COMMANDS, EXAMPLES, build_parser, main, terminal
from nonneg.exceptions import OutputError

HEAVY = ("numpy", "scipy", "sklearn", "matplotlib", "pandas", "torch")


def test_help_names_every_command(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(command in shown for command in COMMANDS)
    assert main([]) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    "words", [["--help"], ["fit", "--help"], ["demo", "--help"], ["transform", "--help"]], ids=str
)
def test_help_imports_nothing_heavy(words):
    code = (
        "import sys\n"
        "from nonneg.cli import main\n"
        f"assert main({words!r}) == 0\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_the_module_can_be_run():
    run = subprocess.run(
        [sys.executable, "-m", "nonneg", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("nonneg ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fitt"], "'fitt' is not a command. Did you mean 'fit'?"),
        (["xyzzy"], "'xyzzy' is not a command. `nonneg --help` lists the commands."),
        (["fit", "x.npy", "--sede", "3"], "unrecognized arguments: --sede 3. Did you mean --seed?"),
        (["fit"], "required: FILE"),
        (["fit", "x.npy", "-k", "2:4"], "-k/--components: expected an integer of at least 1, got '2:4'"),
        (["fit", "x.npy", "--seed", "-1"], "--seed: expected an integer from 0 to 4294967295, got '-1'"),
        (["consensus", "x.npy", "-k", "0"], "expected an integer of at least 1, a range such as 5:15"),
        (["consensus", "x.npy", "--restarts", "1"], "--restarts: expected an integer of at least 2, got '1'"),
        (["fit", "x.npy", "-k", "many"], "got 'many'"),
        (["fit", "x.npy", "--image-shape", "8"], "such as 8x8, got '8'"),
        (["fit", "x.npy", "--missing", "maybe"], "invalid choice: 'maybe'"),
        (["fit", "x.npy", "--tol", "small"], "invalid float value: 'small'"),
    ],
    ids=str,
)
def test_wrong_words_are_explained(words, said, capsys):
    assert main(words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_are_shown_and_can_be_typed(command, capsys):
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    for line in EXAMPLES[command]:
        assert f"  {line}\n" in shown
        typed = shlex.split(line.split(" | ")[-1].split(" > ")[0].removeprefix('eval "$(').removesuffix(')"'))
        parser, _ = build_parser(typed[1:])
        assert parser.parse_args(typed[1:]).command == command


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_states_the_defaults(command):
    _, parser = build_parser([command])
    stated = [
        (said[1], action.default)
        for action in parser._actions
        if isinstance(action.default, int | float)
        and (said := re.search(r"\(default: ([-+.e\d]+)\)", action.help or ""))
    ]
    assert [float(said) for said, _ in stated] == [float(default) for _, default in stated]
    assert stated or command not in ("fit", "topics", "rank")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_knows_every_command_and_its_options(shell, capsys):
    pytest.importorskip("shtab")
    assert main(["completion", shell]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)
    assert all(option in shown for option in ("--image-shape", "--text-column", "--endmembers", "--json"))


def test_a_fit_in_another_thread_leaves_signals_alone(capsys):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(main(["--version"])))
    thread.start()
    thread.join()
    assert codes == [0]


def test_signals_are_as_before_afterwards():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    main(["--version"])
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_an_error_is_one_line_without_a_traceback(capsys, tmp_path):
    assert main(["fit", str(tmp_path / "none.npy")]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("nonneg: error: ")
    assert shown.err.count("\n") == 1
    assert "does not exist" in shown.err


def test_debug_shows_the_traceback(tmp_path):
    from nonneg.exceptions import FileFormatError

    with pytest.raises(FileFormatError):
        main(["fit", str(tmp_path / "none.npy"), "--debug"])


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OutputError("The disk\nis full."), 2, "nonneg: error: The disk is full."),
        (MemoryError("Unable to allocate 3 TiB"), 2, "Try --dtype float32"),
        (KeyboardInterrupt(), 130, "interrupted; nothing was written"),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_what_happens_has_its_exit_code(error, code, said, monkeypatch, capsys):
    def fail(options):
        raise error

    monkeypatch.setattr("nonneg.cli.report.run", fail)
    assert main(["report", "out"]) == code
    assert said in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("written", "said"), [([], "nothing was written"), (["out/W.npy"], "the results were written")]
)
def test_a_full_standard_output_says_where_the_results_are(written, said, monkeypatch, capsys):
    def run(options):
        terminal.outcome.files = [Path(name) for name in written]
        terminal.say("2 components")

    monkeypatch.setattr("nonneg.cli.report.run", run)
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stdout", full)
        assert main(["report", "out"]) == 2
        monkeypatch.undo()
        with suppress(OSError):
            full.close()
    assert re.search(rf"nonneg: error: .*No space left on device; {said}", capsys.readouterr().err)


def test_a_full_standard_error_and_a_closed_input_end_no_run(monkeypatch, tmp_path):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

    path = tmp_path / "X.csv"
    path.write_text("1,2\n3,4\n5,7\n")
    monkeypatch.setattr("sys.stderr", Full())
    assert main(["fit", str(path), "-k", "1", "-o", str(tmp_path / "out")]) == 0
    monkeypatch.setattr("sys.stdin", None)
    assert main(["fit", "-", "-k", "1", "-o", str(tmp_path / "never")]) == 2
    sys.stdin.close()


def test_an_old_encoding_of_the_terminal_costs_nothing(monkeypatch):
    shown = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(shown, encoding="cp1252"))
    terminal.say("2,595 documents about \u738b, Stra\N{LATIN SMALL LETTER SHARP S}e")
    assert shown.getvalue().decode("cp1252") == "2,595 documents about ?, Stra\xdfe" + os.linesep
