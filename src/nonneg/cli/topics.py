"""`nonneg topics FILES...`: what documents are about."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from nonneg.cli import arguments, terminal

TOPICS, DOCUMENTS, WEIGHTS, TIMES = "topics.csv", "documents.csv", "topics.npy", "over_time.csv"
N_WORDS, N_EXAMPLES, N_LETTERS = 20, 3, 400
# As Dieng, Ruiz & Blei (2020) count them.
N_DIVERSITY_WORDS = 25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = "`nonneg edit-topics DIR` merges, splits and renames the topics afterwards."
    parser.add_argument(
        "files", type=Path, nargs="*", metavar="FILES",
        help="text files or folders (.txt .md .rst), .csv .tsv or .jsonl files with a column of texts, or a "
        "document-term matrix (.npz .mtx .npy .mat .csv ...)",
    )  # fmt: skip
    parser.add_argument(
        "--stdlib", action="store_true", help="use the docstrings of Python's standard library"
    )
    parser.add_argument(
        "-k", "--topics", type=arguments.count_or_candidates, metavar="K",
        help="number of topics; auto: recommend one; 5,10,20: recommend one of these (default: auto, or the "
        "number of --anchors)",
    )  # fmt: skip
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="output folder (default: name of the first file + -topics)",
    )
    _add_text_arguments(parser.add_argument_group("documents"))
    _add_method_arguments(parser.add_argument_group("method"))
    parser.add_argument_group("output").add_argument(
        "-q", "--quiet", action="store_true", help="do not show progress"
    )


def _add_text_arguments(group: Any) -> None:
    group.add_argument(
        "--text-column",
        metavar="NAME",
        help="column of a table, or key of JSON lines, that contains the texts",
    )
    group.add_argument(
        "--time-column", metavar="NAME",
        help="column of a table, or key of JSON lines, that contains dates: adds topics over time",
    )  # fmt: skip
    group.add_argument("--lines", action="store_true", help="treat every line of a text file as a document")
    group.add_argument("--vocabulary", type=Path, metavar="FILE", help="words of a matrix, one per line")
    group.add_argument(
        "--stop-words", metavar="NAME", default="english",
        help="words to ignore: english (default), none, or a file with one word per line",
    )  # fmt: skip
    group.add_argument(
        "--min-df",
        type=arguments.count,
        metavar="N",
        help="ignore words in fewer than N documents (default: 2)",
    )
    group.add_argument(
        "--max-df", type=arguments.positive_number, metavar="F",
        help="ignore words in more than this fraction of the documents (default: 0.5 for texts)",
    )  # fmt: skip


def _add_method_arguments(group: Any) -> None:
    group.add_argument(
        "--method", metavar="NAME",
        help="nmf (default), kl, lda, or anchor words by merit, merit-0, spa, snpa, xray, fast-anchor, ...",
    )  # fmt: skip
    group.add_argument("--anchors", metavar="WORDS", help="your own anchor words, separated by commas")
    group.add_argument(
        "--seed-words", type=Path, metavar="FILE",
        help="words that guide topics: a file with a line per topic, such as `sports: game, team, player`",
    )  # fmt: skip
    group.add_argument(
        "--balance", action=argparse.BooleanOptionalAction, default=None,
        help="nmf: keep large subjects from taking up all topics (default: yes)",
    )  # fmt: skip
    group.add_argument(
        "--min-documents", type=int, metavar="N",
        help="topics of fewer documents rest on few; nmf: they are set aside (default: 10)",
    )  # fmt: skip
    group.add_argument(
        "--duplicates", choices=["merge", "keep"],
        help="merge: copies of a document take no part in the search for topics (default)",
    )  # fmt: skip
    group.add_argument("--max-iter", type=arguments.count, metavar="N", help="maximum number of iterations")
    group.add_argument("--seed", type=int, metavar="N", default=0, help="random seed (default: 0)")
    arguments.add_device(group)
    group.add_argument("--n-jobs", type=int, metavar="N", help="number of threads (default: all cores)")


def run(options: argparse.Namespace) -> int:
    """Read, find topics, write."""
    # Imported here, so that --help does not wait for NumPy and scikit-learn.
    from nonneg.applications import TopicModel
    from nonneg.exceptions import InvalidParameterError
    from nonneg.report.folder import check_output_folder

    if bool(options.files) == options.stdlib:
        raise InvalidParameterError("Give either files of documents or --stdlib.")
    first = "stdlib" if options.stdlib else options.files[0].absolute().name.split(".")[0]
    folder = options.output or Path(f"{first}-topics")
    check_output_folder(folder)
    inputs = _inputs(options)
    documents = read_inputs(inputs, quiet=options.quiet)
    with terminal.warnings_as_notes():
        parameters = _parameters(options, documents)
        n_topics = options.topics or len(parameters.get("anchors", ())) or "auto"
        model = TopicModel(n_topics, **parameters)
        if not options.quiet:
            sought = f"{n_topics} topics" if isinstance(n_topics, int) else "the number of topics"
            terminal.note(f"{len(documents.names)} documents from {documents.source}: looking for {sought}")
        started = time.perf_counter()
        proportions = model.fit_transform(documents.contents)
        seconds = time.perf_counter() - started
    for name in ("documents-used", "documents-weighted"):
        if name in model.certificate_:
            terminal.note(f"note: {model.certificate_[name].sentence}")
    write_topics(folder, model, proportions, documents, seconds, inputs)
    return 0


def write_topics(
    folder: Path,
    model: Any,
    proportions: Any,
    documents: Any,
    seconds: float,
    inputs: dict[str, Any] | None = None,
) -> None:
    """Write the results, and say what they are."""
    from nonneg._arrays import write_npy
    from nonneg.cli.results import say_results, write_csv, write_proportions, write_results
    from nonneg.cli.topics_over_time import over_time_table
    from nonneg.report.topic_page import build_topic_page, topic_sentence

    record = topic_record(model, proportions, documents, seconds, inputs)

    def write_files(fresh: Path) -> None:
        columns = ("topic", "name", "proportion", "n_documents", "npmi", "coherence", "anchor")
        rows = (
            [*(entry[name] for name in columns), " ".join(str(word) for word, _ in entry["words"])]
            for entry in record["topics"]
        )
        write_csv(fresh / TOPICS, [*columns, "words"], rows)
        write_proportions(fresh / DOCUMENTS, proportions, documents.names, model.topic_names_)
        write_npy(fresh / WEIGHTS, model.topics_)
        if record["over_time"] is not None:
            write_csv(fresh / TIMES, *over_time_table(record["over_time"]))

    written = write_results(
        folder,
        record,
        write_files,
        lambda: build_topic_page(record),
        known=(TOPICS, DOCUMENTS, WEIGHTS, TIMES),
        model=model,
    )
    sentence = topic_sentence(record)
    if record["selection"]:
        sentence = f"{sentence} {record['selection']['reason']}"
    say_results(sentence, _table(record), written)


def _table(record: dict[str, Any]) -> str:
    from nonneg.report.tables import markdown_table

    rows = [
        {
            "topic": entry["topic"],
            "name": entry["name"],
            "proportion": f"{entry['proportion']:.1%}",
            "documents": f"{entry['n_documents']}{' (few)' if entry['few_documents'] else ''}",
            # A topic of a single word has none.
            "NPMI": None if entry["npmi"] is None else f"{entry['npmi']:.2f}",
            "anchor": entry["anchor"],
            "words": " ".join(str(word) for word, _ in entry["words"][:8]),
        }
        for entry in record["topics"]
    ]
    columns = ["topic", "name", "proportion", "documents", "NPMI", "anchor", "words"]
    for column in ("name", "anchor"):
        if all(row[column] is None for row in rows):
            columns.remove(column)
    return markdown_table(rows, columns).rstrip("\n")


def topic_record(
    model: Any, proportions: Any, documents: Any, seconds: float, inputs: dict[str, Any] | None
) -> dict[str, Any]:
    """Describe topics and documents."""
    import numpy as np

    from nonneg.cli.topics_over_time import over_time_record
    from nonneg.metrics import top_words, topic_diversity
    from nonneg.report.records import run_record

    used = model.topics_[:, model.word_indices_]
    examples = model.representative_documents(documents.contents, N_EXAMPLES, proportions=proportions)
    names = model.top_words(N_WORDS)
    # Words without weight are not words of a topic, even where it has fewer than N_WORDS.
    sets = [set(words) for words in names]
    shared = np.array([[len(one & other) for other in sets] for one in sets], dtype=np.intp)
    topics = [
        {
            "topic": at,
            "name": model.topic_names_[at],
            "proportion": model.topic_proportions_[at],
            "n_documents": model.documents_per_topic_[at],
            "few_documents": bool(model.few_documents_[at]),
            "npmi": model.npmi_[at],
            "coherence": model.coherence_[at],
            "anchor": None if model.anchor_words_ is None else model.anchor_words_[at],
            "words": list(zip(words, np.sort(used[at])[::-1][: len(words)].tolist(), strict=True)),
            "examples": [_example(documents, int(row), proportions[row, at]) for row in examples[at]],
        }
        for at, words in enumerate(names)
    ]
    return run_record(
        "topics",
        f"Topics of {documents.source}",
        data={
            "source": documents.source,
            "n_documents": len(proportions),
            "n_words": model.n_features_in_,
            "n_used": len(model.word_indices_),
            "n_empty": int((~(proportions.sum(axis=1) > 0)).sum()),
            "n_copies": int((model.duplicate_of_ != np.arange(len(model.duplicate_of_))).sum()),
            "n_set_aside": len(model.set_aside_),
            "kind": "texts" if documents.are_texts else "counts",
        },
        estimator=model,
        result={
            "method": model.method,
            "n_topics": len(topics),
            "n_iter": model.n_iter_,
            "npmi": np.nan if np.isnan(model.npmi_).all() else np.nanmean(model.npmi_),
            "diversity": topic_diversity(top_words(used, N_DIVERSITY_WORDS)),
            "coherence": model.coherence_.mean(),
            "similarity_count": np.triu(shared, 1).sum(),
            "seconds": seconds,
        },
        topics=topics,
        shared_words=shared,
        selection=model.selection_,
        hierarchy=model.hierarchy().merges,
        over_time=over_time_record(model, proportions, documents),
        edits=model.edits_,
        inputs=inputs,
    )


def _example(documents: Any, row: int, proportion: float) -> dict[str, Any]:
    text = None
    if documents.are_texts:
        text = " ".join(documents.contents[row].split())
        if len(text) > N_LETTERS:
            text = text[:N_LETTERS].rsplit(" ", 1)[0] + " \N{HORIZONTAL ELLIPSIS}"
    return {"name": documents.names[row], "row": row, "proportion": proportion, "text": text}


def _inputs(options: argparse.Namespace) -> dict[str, Any]:
    """Say where the documents are, for `nonneg edit-topics`."""
    vocabulary = options.vocabulary
    return {
        "files": [str(path.absolute()) for path in options.files],
        "stdlib": options.stdlib,
        "text_column": options.text_column,
        "time_column": options.time_column,
        "lines": options.lines,
        "vocabulary": None if vocabulary is None else str(vocabulary.absolute()),
    }


def read_inputs(inputs: dict[str, Any], *, quiet: bool) -> Any:
    """Read the documents of a run again."""
    from nonneg.applications.topics.files import Documents, read_documents

    if not inputs.get("stdlib"):
        vocabulary = inputs.get("vocabulary")
        return read_documents(
            [Path(path) for path in inputs["files"]],
            column=inputs.get("text_column"),
            lines=bool(inputs.get("lines")),
            vocabulary=None if vocabulary is None else Path(vocabulary),
            time_column=inputs.get("time_column"),
        )
    from nonneg.datasets import load_standard_library

    if not quiet:
        terminal.note("reading the docstrings of the standard library")
    found = load_standard_library()
    texts, names = found.extras["texts"], found.extras["objects"]
    return Documents(list(texts), list(names), None, "the docstrings of the standard library")


def _parameters(options: argparse.Namespace, documents: Any) -> dict[str, Any]:
    """Collect what the user said; everything else is left to the defaults of `TopicModel`."""
    said: dict[str, Any] = {
        "method": options.method,
        "anchors": None if options.anchors is None else [word.strip() for word in options.anchors.split(",")],
        "seed_words": None if options.seed_words is None else _seed_words(options.seed_words),
        "balance": options.balance,
        "min_documents": options.min_documents,
        "duplicates": options.duplicates,
        "min_df": options.min_df,
        "max_df": options.max_df,
        "random_state": options.seed,
        "device": options.device,
        "n_jobs": options.n_jobs,
        "verbose": None if options.quiet else 1,
        "max_iter": options.max_iter,
        "vocabulary": documents.words,
    }
    if documents.are_texts:
        said["stop_words"] = _stop_words(options.stop_words)
        if options.max_df is None:
            # Words in every other text connect documents, whatever they are about.
            said["max_df"] = 0.5
    return {name: value for name, value in said.items() if value is not None}


def _seed_words(path: Path) -> dict[str, list[str]]:
    from nonneg.exceptions import FileFormatError

    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"--seed-words {path} cannot be read: {error}") from error
    found: dict[str, list[str]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, colon, words = line.partition(":")
        group = [word.strip() for word in words.split(",") if word.strip()]
        if not colon or not name.strip() or not group or name.strip() in found:
            raise FileFormatError(
                f"{path}, line {number}: expected another topic and its words, such as `sports: game, team`."
            )
        found[name.strip()] = group
    return found


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
            f"--stop-words {name} is neither 'english' nor 'none', nor a file of words: {error}"
        ) from error
