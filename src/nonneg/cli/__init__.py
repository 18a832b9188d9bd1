"""The command line: `nonneg COMMAND`. Each command is a file that is loaded when it is asked for."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from nonneg._version import __version__
from nonneg.cli import terminal
from nonneg.exceptions import NonnegError

COMMANDS = {
    "demo": "factorize handwritten digits and write a report",
    "fit": "factorize a file, and write the factors, a summary and a report",
    "rank": "estimate the number of components by several methods, and write a report",
    "anchors": "find the samples of which all others are mixtures, and write a report",
    "topics": "find the topics of documents, and write a report with top words and representative documents",
    "edit-topics": "merge, split and rename topics that were found, and write everything again",
    "communities": "find the overlapping communities of a graph, and draw it in a report",
    "separate": "separate a recording into its sources, and write sound files and a report",
    "unmix": "find the endmembers of a hyperspectral image, and write abundance maps and a report",
    "transform": "apply the model of an earlier run to new data, and write the weights",
    "report": "write the report of an earlier run again",
    "reproduce": "reproduce the experiments of the papers",
    "bench": "run the benchmarks against other libraries",
}
"""The commands, with what their help says; the file of a command has its name, with _ for -."""

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        parser = _parser(words)
        arguments = parser.parse_args(words)
        if arguments.command is None:
            terminal.say(parser.format_help().rstrip())
            return 0
        return int(arguments.run(arguments))
    except SystemExit as request:  # argparse has said what was wrong, or has shown the help
        return request.code if isinstance(request.code, int) else 2
    except NonnegError as error:
        return _failure(error, words)
    except MemoryError as error:
        hint = "not enough memory. Try --dtype float32, a sparse format or a smaller -k"
        return _failure(error, words, f"{hint}. {error}".rstrip())
    except KeyboardInterrupt:
        terminal.note("interrupted; nothing was written")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of the output has left, as `head` does
        return 0


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nonneg",
        description="Nonnegative matrix factorization with a certificate on every fit.",
        epilog="`nonneg COMMAND --help` explains a command.",
    )
    parser.add_argument("--version", action="version", version=f"nonneg {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    wanted = next((word for word in words if not word.startswith("-")), None)
    for name, words_of_help in COMMANDS.items():
        command = commands.add_parser(name, help=words_of_help, description=words_of_help.capitalize() + ".")
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        if name == wanted:
            # Only this command's file is imported, so that help comes at once.
            module = importlib.import_module(f"nonneg.cli.{name.replace('-', '_')}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser


def _failure(error: BaseException, words: Sequence[str], sentence: str | None = None) -> int:
    if "--debug" in words:
        raise error
    terminal.note(f"nonneg: error: {' '.join((sentence or str(error)).split())}")
    return 2
