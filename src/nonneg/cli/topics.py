"""`nonneg topics FILES...`: what documents are about."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nonneg.cli import arguments, terminal
from nonneg.exceptions import FileFormatError, InvalidParameterError

OPTIONS = """
files FILES*: text files or folders (.txt .md .rst), .csv .tsv or .jsonl files with a column of texts, or a
    document-term matrix (.npz .mtx .npy .mat .csv ...)
--stdlib: use the docstrings of Python's standard library
-k/--topics RANGE: number of topics; auto: recommend one; 5,10,20: recommend one of these (default: auto, or
    the number of --anchors)

[documents]
--text-column NAME: column of a table, or key of JSON lines, that contains the texts
--time-column NAME: column of a table, or key of JSON lines, that contains dates: adds topics over time
--lines: treat every line of a text file as a document
--vocabulary FILE: words of a matrix, one per line
--stop-words NAME [english]: words to ignore: english (default), none, or a file with one word per line
--min-df N: ignore words in fewer than N documents (default: 2)
--max-df P: ignore words in more than this fraction of the documents (default: 0.5 for texts)

[method]
--method NAME: nmf (default), kl, or anchor words by merit, spa, snpa, xray, fast-anchor, ...
--anchors WORDS: your own anchor words, separated by commas, for a method of anchor words (default: spa)
--seed-words FILE: words that guide topics: a file with a line per topic, such as `sports: game, team, player`
--max-iter
--tol
--seed
--device
--n-jobs
--checkpoint
"""
KINDS: dict[str, Any] = {"topics": arguments.or_auto(arguments.numbers)}


def run(options: argparse.Namespace) -> None:
    """Read, find topics, write."""
    from nonneg.applications import TopicModel
    from nonneg.report.words import counted

    if bool(options.files) == options.stdlib:
        raise InvalidParameterError("Give either files of documents or --stdlib.")
    folder = arguments.output_folder(options, "stdlib" if options.stdlib else options.files[0], "topics")
    # By which `nonneg edit-topics` reads them again.
    inputs = {name: getattr(options, name) for name in ("stdlib", "text_column", "time_column", "lines")}
    documents = read_inputs(options.files, inputs, options.vocabulary)
    parameters = _parameters(options, documents)
    n_topics = options.topics or len(parameters.get("anchors", ())) or "auto"
    model = TopicModel(n_topics, **parameters)
    sought = counted(n_topics, "topic") if isinstance(n_topics, int) else "the number of topics"
    texts = counted(len(documents.names), "document")
    terminal.progress(f"{texts} from {documents.source}: looking for {sought}")
    proportions, seconds = terminal.timed(model.fit_transform, documents.contents)
    if "documents-weighted" in model.certificate_:
        terminal.note(f"note: {model.certificate_['documents-weighted'].sentence}")
    write_topics(folder, model, proportions, documents, seconds, inputs)


def write_topics(
    folder: Path, model: Any, proportions: Any, documents: Any, seconds: float, inputs: dict[str, Any]
) -> None:
    """Write the results, and say what they are."""
    from nonneg.report import topics

    record = topics.describe(model, documents, seconds, proportions, **inputs)
    over_time = record.details["over_time"]
    if over_time is not None and (missing := topics.missing_dates(over_time)):
        terminal.note(f"note: {missing}")
    record.files = _files(model, proportions, documents.names, record)
    terminal.finish(folder, record)


def recorded_inputs(model: Path) -> dict[str, Any]:
    """Return how the documents of a model were read, as the record beside it says."""
    from nonneg.report.record import RESULT, read_record

    record = model.with_name(RESULT)
    known = (read_record(record).details.get("inputs") if record.is_file() else None) or {}
    inputs = {"stdlib": False, "text_column": None, "time_column": None, "lines": False}
    # A record may come from elsewhere.
    known = known if isinstance(known, dict) else {"lines": [known]}
    if not all(isinstance(known.get(name), bool | str | None) for name in inputs):
        raise FileFormatError(f"{record} is damaged: it does not say how the documents were read.")
    return inputs | {name: known[name] for name in inputs if name in known}


def read_inputs(files: Sequence[Path], inputs: dict[str, Any], vocabulary: Path | None = None) -> Any:
    """Read documents as the options of a run said."""
    from nonneg.applications.topics.files import Documents, read_documents

    warnings.filterwarnings("ignore", ".*no word of a topic")  # the certificate says it
    if not inputs["stdlib"]:
        return read_documents(
            files,
            column=inputs["text_column"],
            lines=inputs["lines"],
            vocabulary=vocabulary,
            time_column=inputs["time_column"],
        )
    from nonneg.datasets import load_standard_library

    terminal.progress("reading the docstrings of the standard library")
    library = load_standard_library()
    texts, names = library.extras["texts"], library.extras["objects"]
    return Documents(list(texts), list(names), None, "the docstrings of the standard library")


def _parameters(options: argparse.Namespace, documents: Any) -> dict[str, Any]:
    """Collect what the user said; everything else is left to the defaults of `TopicModel`."""
    names = ("method", "min_df", "max_df", "max_iter", "tol", "checkpoint", "device")
    args = arguments.parameters(options, *names)
    if options.anchors is not None:
        args = {"method": "spa"} | args | {"anchors": [word.strip() for word in options.anchors.split(",")]}
    if options.seed_words is not None:
        args["seed_words"] = _seed_words(options.seed_words)
    if documents.words is not None:
        args["vocabulary"] = documents.words
    if documents.are_texts:
        words: Any = options.stop_words
        if words not in ("none", "english"):
            lines = _lines(Path(words), "--stop-words english, none or")
            words = [word.lower() for word in lines if word]
        args["stop_words"] = None if words == "none" else words
        # Words in every other text connect documents, whatever they are about.
        args.setdefault("max_df", 0.5)
    return args


def _lines(path: Path, option: str) -> list[str]:
    try:
        return [line.strip() for line in path.read_text("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{option} {path} cannot be read: {error}") from error


def _seed_words(path: Path) -> dict[str, list[str]]:
    topics: dict[str, list[str]] = {}
    for number, line in enumerate(_lines(path, "--seed-words"), 1):
        if not line or line.startswith("#"):
            continue
        name, colon, words = line.partition(":")
        group = [word.strip() for word in words.split(",") if word.strip()]
        if not colon or not name.strip() or not group or name.strip() in topics:
            raise FileFormatError(
                f"{path}, line {number}: expected another topic and its words, such as `sports: game, team`."
            )
        topics[name.strip()] = group
    return topics


def _files(model: Any, proportions: Any, names: Sequence[str], record: Any) -> dict[str, Any]:
    from nonneg.cli import files

    columns = ("topic", "name", "proportion", "n_documents", "npmi", "coherence", "anchor")
    topics = [
        {name: entry[name] for name in columns} | {"words": " ".join(str(word) for word, _ in entry["words"])}
        for entry in record.details["topics"]
    ]
    written = {
        "topics.csv": files.entries_file(topics),
        "documents.csv": files.proportions_file(proportions, names, model.topic_names_),
        "topics.npy": files.array_file(model.topics_),
    }
    if over_time := record.details["over_time"]:
        heading = ["period", "documents", *(f"topic_{at}" for at in range(len(topics)))]
        lines = zip(*(over_time[name] for name in ("periods", "counts", "proportions")), strict=True)
        cells = [[period, count, *means] for period, count, means in lines]
        written["over_time.csv"] = files.table_file(heading, cells)
    return written
