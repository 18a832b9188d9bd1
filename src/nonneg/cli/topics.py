"""`nonneg topics FILES...`: what documents are about."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from nonneg.cli import arguments, terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "files", type=Path, nargs="*", metavar="FILES",
        help="text files or folders of them (.txt .md .rst), .csv .tsv or .jsonl with a column of texts, or "
        "one document-term matrix (.npz .mtx .npy .mat .csv ...)",
    )  # fmt: skip
    parser.add_argument(
        "--stdlib", action="store_true", help="the docstrings of Python's standard library, in place of files"
    )
    parser.add_argument(
        "-k", "--topics", type=arguments.count, metavar="K",
        help="how many topics (default: 10, or as many as --anchors)",
    )  # fmt: skip
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="folder for the results (default: first name + -topics)",
    )
    _add_text_arguments(parser.add_argument_group("documents"))
    _add_method_arguments(parser.add_argument_group("method"))
    parser.add_argument_group("output").add_argument("--quiet", action="store_true", help="show no progress")


def _add_text_arguments(group: Any) -> None:
    group.add_argument(
        "--text-column", metavar="NAME", help="column of a table, or key of JSON lines, with texts"
    )
    group.add_argument("--lines", action="store_true", help="every line of a text file is a document")
    group.add_argument("--vocabulary", type=Path, metavar="FILE", help="words of a matrix, one a line")
    group.add_argument(
        "--stop-words", metavar="NAME", default="english",
        help="words that are not counted: english (default), none, or a file with one a line",
    )  # fmt: skip
    group.add_argument(
        "--min-documents",
        type=arguments.count,
        metavar="N",
        help="leave out words in fewer documents (default: 2)",
    )
    group.add_argument(
        "--max-share", type=arguments.positive_number, metavar="S",
        help="leave out words in more than this share of the documents (default: 0.5 for texts)",
    )  # fmt: skip


def _add_method_arguments(group: Any) -> None:
    group.add_argument(
        "--method", metavar="NAME",
        help="nmf (default), kl, lda, or anchor words by merit, merit(0), spa, snpa, xray, fast-anchor, ...",
    )  # fmt: skip
    group.add_argument("--anchors", metavar="WORDS", help="anchor words of your own, separated by commas")
    group.add_argument(
        "--balance", action=argparse.BooleanOptionalAction, default=None,
        help="nmf: keep large subjects from taking all topics (default: yes)",
    )  # fmt: skip
    group.add_argument("--max-iter", type=arguments.count, metavar="N", help="at most so many iterations")
    group.add_argument("--seed", type=int, metavar="N", default=0, help="of the random numbers (default: 0)")
    group.add_argument("--n-jobs", type=int, metavar="N", help="threads (default: all cores)")


def run(options: argparse.Namespace) -> int:
    """Read, find topics, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    from nonneg.applications import TopicModel
    from nonneg.cli.topic_results import topic_table, write_topic_results
    from nonneg.exceptions import InvalidParameterError
    from nonneg.report.folder import check_output_folder
    from nonneg.report.topic_page import topic_sentence

    if bool(options.files) == options.stdlib:
        raise InvalidParameterError("Give files of documents, or --stdlib, and not both.")
    first = "stdlib" if options.stdlib else options.files[0].absolute().name.split(".")[0]
    folder = options.output or Path(f"{first}-topics")
    check_output_folder(folder)
    documents = _read(options)
    with terminal.warnings_as_notes():
        parameters = _parameters(options, documents)
        n_topics = options.topics or len(parameters.get("anchors", range(10)))
        model = TopicModel(n_topics, **parameters)
        if not options.quiet:
            terminal.note(
                f"{len(documents.names)} documents from {documents.source}: looking for {n_topics} topics"
            )
        started = time.perf_counter()
        memberships = model.fit_transform(documents.contents)
        seconds = time.perf_counter() - started
    record, written = write_topic_results(folder, model, memberships, documents, seconds=seconds)
    terminal.say(topic_sentence(record))
    terminal.say(topic_table(record))
    for path in written:
        terminal.say(str(path))
    return 0


def _read(options: argparse.Namespace) -> Any:
    from nonneg.applications.topics.files import Documents, read_documents

    if not options.stdlib:
        return read_documents(
            options.files, column=options.text_column, lines=options.lines, vocabulary=options.vocabulary
        )
    from nonneg.datasets import load_standard_library

    if not options.quiet:
        terminal.note("reading the docstrings of the standard library")
    found = load_standard_library()
    texts, names = found.extras["texts"], found.extras["objects"]
    return Documents(list(texts), list(names), None, "the docstrings of the standard library")


def _parameters(options: argparse.Namespace, documents: Any) -> dict[str, Any]:
    """Collect what the user said; all else is left to the defaults of `TopicModel`."""
    said: dict[str, Any] = {
        "method": options.method,
        "anchors": None if options.anchors is None else [word.strip() for word in options.anchors.split(",")],
        "balance": options.balance,
        "min_documents": options.min_documents,
        "max_share": options.max_share,
        "random_state": options.seed,
        "n_jobs": options.n_jobs,
        "verbose": None if options.quiet else 1,
        "method_options": None if options.max_iter is None else {"max_iter": options.max_iter},
        "vocabulary": documents.words,
    }
    if documents.are_texts:
        said["stop_words"] = _stop_words(options.stop_words)
        if options.max_share is None:
            # Words in every other text tie documents together, whatever they are about.
            said["max_share"] = 0.5
    return {name: value for name, value in said.items() if value is not None}


def _stop_words(name: str) -> Any:
    if name == "none":
        return None
    if name == "english":
        return name
    from nonneg.exceptions import FileFormatError

    try:
        return [word.strip().lower() for word in Path(name).read_text("utf-8").splitlines() if word.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(
            f"--stop-words {name} is neither 'english' nor 'none', and no file of words: {error}"
        ) from error
