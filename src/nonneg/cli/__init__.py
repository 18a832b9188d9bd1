"""Command line: `nonneg COMMAND`. Each command is a file that is loaded when it is asked for.

It has the options, as the help shows them, and a function that imports what it needs, so that help does not
wait for NumPy and scikit-learn.
"""

from __future__ import annotations

import argparse
import difflib
import gc
import importlib
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from nonneg._interruption import pending
from nonneg._version import __version__
from nonneg.cli import arguments, terminal
from nonneg.exceptions import NonnegError

COMMANDS = {
    "demo": "factorize handwritten digits and write a report",
    "fit": "factorize a file, and write the factors, a summary and a report",
    "rank": "estimate the number of components by several methods, and write a report",
    "consensus": "find the programs on which many restarts agree, and write tables and a report",
    "signatures": "find mutational signatures and their exposures, and write tables and a report",
    "anchors": "find anchors: the samples of which all others are mixtures, and write a report",
    "topics": "find the topics of documents, and write a report with top words and representative documents",
    "edit-topics": "merge, split and rename the topics of an earlier run, and write the results again",
    "communities": "find the overlapping communities of a graph, and draw it in a report",
    "separate": "separate a recording into its sources, and write sound files and a report",
    "unmix": "find the endmembers of a hyperspectral image, and write abundance maps and a report",
    "transform": "apply the model of an earlier run to new data, and write the weights",
    "report": "write the report of an earlier run again",
    "completion": "print a script for shell completion",
}
"""The commands, with what their help says; the file of a command has its name, with _ for -."""

EXAMPLES = {
    "demo": ("nonneg demo", "nonneg demo -o digits --open"),
    "fit": (
        "nonneg fit table.csv",
        "nonneg fit counts.h5ad -k 20 --loss kullback-leibler -o programs",
        "nonneg fit faces.npy -k 49 --image-shape 19x19 --open",
        "nonneg fit big.npy -k 30 --checkpoint run --device cuda",
    ),
    "rank": ("nonneg rank table.csv", "nonneg rank counts.mtx --json > rank.json"),
    "consensus": (
        "nonneg consensus counts.h5ad -k 5:15 --restarts 100",
        "nonneg consensus counts.h5ad -k 8 --group-by cell_type --checkpoint run --open",
    ),
    "signatures": (
        "nonneg signatures catalog.tsv -k 2:15",
        "nonneg signatures catalog.tsv -k 6 --reference COSMIC_SBS.txt --open",
    ),
    "anchors": ("nonneg anchors table.csv", "nonneg anchors spectra.npy -k 6"),
    "topics": (
        "nonneg topics letters/ -k 12",
        "nonneg topics reviews.csv --text-column text --open",
        "cat titles.txt | nonneg topics - --lines -k 8",
    ),
    "edit-topics": ("nonneg edit-topics letters-topics letters/ --merge 3,7 --rename 2=trade",),
    "communities": (
        "nonneg communities edges.csv -k auto",
        "nonneg communities --example karate -k 2 --open",
    ),
    "separate": ("nonneg separate song.wav -k 3", "nonneg separate song.wav --train drums=drums.wav"),
    "unmix": ("nonneg unmix scene.hdr -k 4", "nonneg unmix --example --open"),
    "transform": ("nonneg transform table-nmf new.csv", "nonneg transform letters-topics new-letters/"),
    "report": ("nonneg report table-nmf --open",),
    "completion": ('eval "$(nonneg completion bash)"', "nonneg completion zsh > ~/.zfunc/_nonneg"),
}
"""Examples at the end of the help of each command."""

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command."""
    words = list(sys.argv[1:] if argv is None else argv)
    terminal.begin(json="--json" in words)
    code = guarded(lambda: _run(words), debug="--debug" in words)
    if argv is None:
        gc.freeze()  # the process ends: to look for garbage once more takes a tenth of a small fit
    return code


def guarded(call: Callable[[], int], *, debug: bool = False) -> int:
    """Call a program; what went wrong is told in one line and by the exit code."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the shell, as by >&-
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 (open as long as the process)
    try:
        with _interruptions() as received:
            code = call()
        return code or (INTERRUPTED if received else 0)
    except SystemExit as request:  # argparse has said what was wrong, or has shown the help
        return request.code if isinstance(request.code, int) else 2
    except KeyboardInterrupt:
        terminal.note(f"interrupted; {terminal.WRITTEN[bool(terminal.outcome.files)]}")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has left, as `head` does. What is buffered has nowhere to go.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (NonnegError, MemoryError, OSError) as error:
        if debug:
            raise
        sentence = str(error)
        if isinstance(error, MemoryError):
            sentence = f"not enough memory. Try --dtype float32, a sparse format or a smaller -k. {error}"
        elif not isinstance(error, NonnegError):  # such as a full disk behind standard output
            sentence = f"{error}; {terminal.WRITTEN[bool(terminal.outcome.files)]}"
        terminal.note(f"nonneg: error: {' '.join(sentence.split())}")
        return 2


def _run(words: list[str]) -> int:
    parser, command = build_parser(words)
    options, unknown = parser.parse_known_args(words)
    if options.command is None:
        terminal.say(parser.format_help().rstrip())
        return 0
    if unknown and command is not None:
        known = set(re.findall(r"--[\w-]+", command.format_help()))
        close = difflib.get_close_matches(unknown[0].split("=")[0], known, n=1, cutoff=0.7)
        hint = f". Did you mean {close[0]}?" if close else ""
        command.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    terminal.outcome.quiet = getattr(options, "quiet", False)
    with terminal.standard_input_as_file(options), terminal.warnings_as_notes():
        options.run(options)
    if getattr(options, "json", False):
        terminal.say_outcome()
    if getattr(options, "open", False):
        terminal.open_report()
    return 0


@contextmanager
def _interruptions() -> Iterator[list[int]]:
    """Treat SIGTERM as Ctrl-C, and remember that one of them came: a fit returns its best so far."""
    received: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        pending.set()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    # A process that was told to ignore Ctrl-C, as by nohup, goes on ignoring it.
    signals = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) is not signal.SIG_IGN]
    before = {one: signal.signal(one, interrupt) for one in signals}
    try:
        yield received
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        pending.clear()


def build_parser(
    words: Sequence[str], *, every: bool = False
) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser | None]:
    """Return the parser and that of the command among the words; with `every`, all commands are loaded."""
    about = ["Nonnegative matrix factorization with a certificate on every fit.", "", "commands:"]
    parser = argparse.ArgumentParser(
        prog="nonneg",
        usage="nonneg [-h] [--version] COMMAND ...",
        description="\n".join([*about, *(f"  {name:<12} {COMMANDS[name]}" for name in COMMANDS)]),
        epilog="`nonneg COMMAND --help` explains a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"nonneg {__version__}")
    # The description lists the commands, in groups.
    shown = None if every else argparse.SUPPRESS
    commands = parser.add_subparsers(dest="command", prog="nonneg", metavar="COMMAND", help=shown)
    command_name = next((word for word in words if not word.startswith("-")), None)
    if command_name is not None and command_name not in COMMANDS:
        close = difflib.get_close_matches(command_name, COMMANDS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else " `nonneg --help` lists the commands."
        parser.error(f"{command_name!r} is not a command.{hint}")
    asked: argparse.ArgumentParser | None = None
    # Only this command's file is imported, so that help comes at once.
    for name in COMMANDS if every else filter(None, [command_name]):
        command = commands.add_parser(
            name,
            help=COMMANDS[name],
            description=COMMANDS[name].capitalize() + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        module = importlib.import_module(f"nonneg.cli.{name.replace('-', '_')}")
        arguments.declare(command, _options(name, module.OPTIONS), getattr(module, "KINDS", {}))
        examples = "\n".join(["examples:", *(f"  {line}" for line in EXAMPLES[name])])
        command.epilog = "\n\n".join(filter(None, [examples, command.epilog]))
        command.set_defaults(run=module.run)
        asked = command if name == command_name else asked
    return parser, asked


def _options(name: str, own: str) -> str:
    """Return the options of a command, with those that all have at their end."""
    if name == "completion":
        return own
    common = """
-o/--output DIR: output folder (default: named after the first file)
-q/--quiet: do not show progress
--json: write the result as JSON to standard output and everything else to standard error
"""
    group = "" if "[output]" in own else "[output]\n"
    return f"{own.strip()}\n{group}--open: open the report in a browser{common * (name != 'report')}"
