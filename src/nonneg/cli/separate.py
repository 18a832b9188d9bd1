"""`nonneg separate FILE...`: the sources of a recording, or of several takes."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from nonneg.cli import arguments, terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="sound: .wav .flac .ogg ...")
    parser.add_argument(
        "-k", "--sources", type=arguments.count, default=2, metavar="K", help="how many sources (default: 2)"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="folder for the results (default: the first FILE's name + -sources)",
    )
    _add_sound_arguments(parser.add_argument_group("sound"))
    _add_model_arguments(parser.add_argument_group("model"))
    _add_search_arguments(parser.add_argument_group("search"))
    output = parser.add_argument_group("output")
    output.add_argument(
        "--format", choices=["wav", "flac"], default="wav", help="of the sources: 32-bit floats or 24 bits"
    )
    output.add_argument(
        "--players", action=argparse.BooleanOptionalAction, default=True, help="sounds in the report"
    )
    output.add_argument("--quiet", action="store_true", help="show no progress")


def _add_sound_arguments(group: Any) -> None:
    group.add_argument(
        "--takes",
        choices=["aligned", "consecutive"],
        help="several files are the same piece played again, sample by sample (default), or pieces one after "
        "the other",
    )
    group.add_argument("--channel", metavar="C", default="mean", help="0, 1, ... or mean (default)")
    group.add_argument("--rate", type=arguments.count, metavar="HZ", help="resample to this rate first")
    group.add_argument(
        "--begin", type=float, default=0.0, metavar="S", help="leave so many seconds at the beginning out"
    )
    group.add_argument(
        "--seconds", type=arguments.positive_number, metavar="S", help="take only so many seconds"
    )
    group.add_argument(
        "--frame-length", type=arguments.count, metavar="N", help="samples a frame (default: 512)"
    )
    group.add_argument(
        "--hop", type=arguments.count, metavar="N", help="from frame to frame (default: half a frame)"
    )
    group.add_argument(
        "--window",
        metavar="NAME",
        help="sine, hann, rectangular or another of scipy (default: flat with tapered ends)",
    )


def _add_model_arguments(group: Any) -> None:
    group.add_argument(
        "--method",
        choices=["tl", "jd", "dct"],
        help="learn the transform with the components (default), before them, or keep the cosine transform",
    )
    group.add_argument(
        "--components", type=arguments.count, metavar="N", help="components in all (default: one a source)"
    )
    group.add_argument(
        "--grouping",
        choices=["activations", "templates", "both"],
        help="how components are put together to sources: by when they sound (default), by what they are",
    )
    group.add_argument(
        "--eps0",
        type=arguments.number_or_name,
        metavar="E",
        help="power that does not count (default: a tenth of the mean)",
    )
    group.add_argument(
        "--average-frames", type=arguments.count, metavar="N", help="average variances over so many frames"
    )


def _add_search_arguments(group: Any) -> None:
    group.add_argument("--starts", type=arguments.count, metavar="N", help="starts (default: 3)")
    group.add_argument(
        "--init", choices=["dct", "jd", "random"], help="transform to start from (default: dct)"
    )
    group.add_argument(
        "--max-iter", type=arguments.count, metavar="N", help="at most so many iterations (default: 100)"
    )
    group.add_argument("--tol", type=float, metavar="TOL", help="stop when ten iterations gain less an entry")
    group.add_argument("--seed", type=int, metavar="N", default=0, help="of the random numbers (default: 0)")
    group.add_argument("--n-jobs", type=int, metavar="N", help="threads (default: all cores)")
    group.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="save the run there, and take it up again"
    )


def run(options: argparse.Namespace) -> int:
    """Read, separate, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    from nonneg.applications import SourceSeparation
    from nonneg.cli.results import say_results
    from nonneg.cli.separate_results import Separated, source_table, write_sources
    from nonneg.report.folder import check_output_folder
    from nonneg.report.separation_page import separation_sentence

    folder = options.output or Path(f"{options.files[0].name.split('.')[0]}-sources")
    check_output_folder(folder)
    sounds = _read(options)
    takes = [sound.samples for sound in sounds]
    with terminal.warnings_as_notes():
        model = SourceSeparation(options.sources, **_parameters(options))
        started = time.perf_counter()
        signals: Any = takes[0] if len(takes) == 1 else takes
        sources = model.fit_separate(signals, sounds[0].rate)
        seconds = time.perf_counter() - started
        separated = Separated(model, sounds, _by_take(sources, len(takes)), seconds)
        record, written = write_sources(folder, separated, ending=options.format, players=options.players)
    say_results(separation_sentence(record), source_table(record), written)
    return 0


def _by_take(sources: Any, n_takes: int) -> list[Any]:
    """Bring what `separate` returns into one form: an array (n_sources, n_samples) a take."""
    if n_takes == 1:
        return [sources]
    return sources if isinstance(sources, list) else [sources[:, take] for take in range(n_takes)]


def _read(options: argparse.Namespace) -> list[Any]:
    from dataclasses import replace

    from nonneg.applications.audio import read_sound
    from nonneg.exceptions import InvalidDataError, InvalidParameterError

    channel = int(options.channel) if options.channel.isdecimal() else options.channel
    sounds = [read_sound(path, channel=channel, rate=options.rate) for path in options.files]
    rates = sorted({sound.rate for sound in sounds})
    if len(rates) > 1:
        raise InvalidDataError(
            f"The files have {rates} samples a second; one rate is needed. Choose it with --rate, such as "
            f"--rate {rates[0]}."
        )
    if options.begin < 0:
        raise InvalidParameterError(f"--begin must be at least 0, got {options.begin}.")
    parts = []
    for sound in sounds:
        first = round(options.begin * sound.rate)
        last = None if options.seconds is None else first + round(options.seconds * sound.rate)
        part = sound.samples[first:last]
        if len(part) == 0:
            raise InvalidDataError(
                f"{sound.source} ends after {len(sound.samples) / sound.rate:.2f} s; nothing is left behind "
                f"--begin {options.begin:g}."
            )
        parts.append(replace(sound, samples=part))
    if not options.quiet:
        for sound in parts:
            channels = "" if sound.n_channels == 1 else f", {sound.n_channels} channels ({options.channel})"
            terminal.note(
                f"read {sound.source}: {len(sound.samples) / sound.rate:.2f} s, {sound.rate} Hz{channels}"
            )
    return parts


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Collect what the user said; all else is left to the defaults of `SourceSeparation`."""
    said = {
        "n_components": options.components,
        "grouping": options.grouping,
        "frame_length": options.frame_length,
        "hop": options.hop,
        "window": options.window,
        "takes": options.takes,
        "method": options.method,
        "eps0": options.eps0,
        "n_starts": options.starts,
        "init": options.init,
        "max_iter": options.max_iter,
        "tol": options.tol,
        "average_frames": options.average_frames,
        "random_state": options.seed,
        "n_jobs": options.n_jobs,
        "checkpoint": None if options.checkpoint is None else str(options.checkpoint),
        "verbose": 0 if options.quiet else 1,
    }
    return {name: value for name, value in said.items() if value is not None}
