"""`nonneg separate FILE...`: the sources of a recording, or of several."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from nonneg.cli import arguments, terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help="sound files: .wav .flac .ogg ..."
    )
    parser.add_argument(
        "-k",
        "--sources",
        type=arguments.count,
        metavar="K",
        help="number of sources (default: the number that --train or --group names, otherwise 2)",
    )
    parser.add_argument(
        "--train",
        action="append",
        metavar="[NAME=]FILE",
        help="solo recording of a source, which is named after the file or NAME; repeat for each source, or "
        "for several recordings of the same NAME. Further sources (-k) are learned from the recording itself",
    )
    parser.add_argument(
        "--group",
        action="append",
        type=arguments.named_counts,
        metavar="NAME=N,N,...",
        help="components of a source by hand, numbered from 1 as in the report; repeat for each source. "
        "Components that are not listed form a source called rest",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="output folder (default: name of the first FILE + -sources)",
    )
    _add_sound_arguments(parser.add_argument_group("sound"))
    _add_model_arguments(parser.add_argument_group("model"))
    _add_search_arguments(parser.add_argument_group("search"))
    output = parser.add_argument_group("output")
    output.add_argument(
        "--format",
        choices=["wav", "flac"],
        default="wav",
        help="format of the sources (default: wav), with the samples of the recording where possible: 16, 24 "
        "or 32 bits, or floats",
    )
    output.add_argument(
        "--players",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="include audio players in the report",
    )
    output.add_argument("-q", "--quiet", action="store_true", help="do not show progress")


def _add_sound_arguments(group: Any) -> None:
    group.add_argument(
        "--recordings",
        choices=["aligned", "consecutive"],
        help="several files are realizations of the same piece, aligned sample by sample (default), or "
        "pieces that follow one another",
    )
    group.add_argument(
        "--channel",
        metavar="C",
        default="all",
        help="channels to use: all (default), their mean, or one: 0, 1, ...",
    )
    group.add_argument("--rate", type=arguments.count, metavar="HZ", help="resample to this rate first")
    group.add_argument(
        "--begin", type=float, default=0.0, metavar="S", help="skip this many seconds at the beginning"
    )
    group.add_argument(
        "--seconds", type=arguments.positive_number, metavar="S", help="use only this many seconds"
    )
    group.add_argument(
        "--frame-length",
        type=arguments.count,
        metavar="N",
        help="samples per frame (default: 46 to 372 ms, as concentrates the energy; 512 for transforms)",
    )
    group.add_argument(
        "--hop",
        type=arguments.count,
        metavar="N",
        help="samples from one frame to the next (default: a quarter of a frame; half for transforms)",
    )
    group.add_argument(
        "--window",
        metavar="NAME",
        help="hann, sine, rectangular or another SciPy window (default: hann; for transforms flat with "
        "tapered ends)",
    )


def _add_model_arguments(group: Any) -> None:
    group.add_argument(
        "--method",
        choices=["stft", "transform", "tl", "jd", "dct"],
        help="the short-time Fourier transform (stft, default); a transform learned with the components (tl) "
        "or before them (jd), the cosine transform (dct), or the learned or the cosine transform, whichever "
        "explains held-out frames better (transform)",
    )
    group.add_argument(
        "--components",
        type=arguments.count,
        metavar="N",
        help="total number of components (default: eight per source; one for transforms; forty with --train)",
    )
    group.add_argument(
        "--grouping",
        choices=["auto", "timbre", "timbre-dynamics", "activations", "harmonic-percussive"],
        help="how components are grouped into sources: by their spectra (timbre), by spectra and dynamics "
        "(timbre-dynamics), by the one of these whose sources have the more equal energies (auto, default), "
        "by activations, or into sustained and struck sounds (harmonic-percussive, two sources)",
    )
    group.add_argument(
        "--eps0",
        type=arguments.number_or_name,
        metavar="E",
        help="power below which differences hardly count, for transforms (default: a tenth of the mean)",
    )
    group.add_argument(
        "--average-frames",
        type=arguments.count,
        metavar="N",
        help="average variances over this number of frames",
    )


def _add_search_arguments(group: Any) -> None:
    group.add_argument(
        "--n-init",
        type=arguments.count,
        metavar="N",
        help="number of initializations (default: 1; 3 for transforms)",
    )
    group.add_argument(
        "--init",
        metavar="NAME",
        help="initialization of transforms: dct (default), jd or random",
    )
    group.add_argument(
        "--max-iter",
        type=arguments.count,
        metavar="N",
        help="maximum number of iterations (default: 200; 100 for transforms)",
    )
    group.add_argument(
        "--tol",
        type=float,
        metavar="TOL",
        help="tolerance of the stopping rule (default: 1e-4; 1e-7 for transforms)",
    )
    group.add_argument("--seed", type=int, metavar="N", default=0, help="random seed (default: 0)")
    group.add_argument("--n-jobs", type=int, metavar="N", help="number of threads (default: all cores)")
    group.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="save progress there, and resume an interrupted run"
    )


def run(options: argparse.Namespace) -> int:
    """Read, separate, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    from nonneg.applications import SourceSeparation
    from nonneg.cli.results import say_results
    from nonneg.cli.separate_inputs import read_recordings, read_training, separated_by_recording, stacked
    from nonneg.cli.separate_results import Separated, check_targets, source_table, write_sources
    from nonneg.report.folder import check_output_folder
    from nonneg.report.separation_page import separation_sentence

    folder = options.output or Path(f"{options.files[0].name.split('.')[0]}-sources")
    check_output_folder(folder)
    with terminal.warnings_as_notes():
        sounds = read_recordings(options)
        training, trained_on = read_training(options, sounds[0].rate)
        model = SourceSeparation(options.sources, **_parameters(options))
        named = list(training or dict(options.group or ()))
        check_targets(folder, named, len(sounds), options.format)
        started = time.perf_counter()
        signals = stacked([sound.samples for sound in sounds], model.recordings)
        sources = model.fit_separate(signals, sounds[0].rate, training=training or None)
        seconds = time.perf_counter() - started
        if not options.quiet:
            length = sum(sound.samples.shape[-1] for sound in sounds) / sounds[0].rate
            terminal.note(f"separated {length:.2f} s of sound in {seconds:.1f} s")
        found = separated_by_recording(sources, sounds, model.recordings)
        separated = Separated(model, sounds, found, seconds, trained_on)
        record, written = write_sources(folder, separated, ending=options.format, players=options.players)
    say_results(separation_sentence(record), source_table(record), written)
    return 0


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Collect what the user said; everything else is left to the defaults of `SourceSeparation`."""
    said = {
        "eps0": options.eps0,
        "average_frames": options.average_frames,
        "n_components": options.components,
        "grouping": _grouping(options),
        "frame_length": options.frame_length,
        "hop": options.hop,
        "window": options.window,
        "recordings": options.recordings,
        "method": options.method,
        "n_init": options.n_init,
        "init": options.init,
        "max_iter": options.max_iter,
        "tol": options.tol,
        "random_state": options.seed,
        "n_jobs": options.n_jobs,
        "checkpoint": None if options.checkpoint is None else str(options.checkpoint),
        "verbose": 0 if options.quiet else 1,
    }
    return {name: value for name, value in said.items() if value is not None}


def _grouping(options: argparse.Namespace) -> Any:
    from nonneg.cli.separate_inputs import grouping_by_hand
    from nonneg.exceptions import InvalidParameterError

    if not options.group:
        return options.grouping
    if options.grouping is not None:
        raise InvalidParameterError(
            "--group says which components belong to which source, and --grouping how to find out: leave one "
            "of them out."
        )
    return grouping_by_hand(options.group)
