"""`nonneg edit-topics DIR`: merge, split and rename topics that `nonneg topics` found."""

from __future__ import annotations

import argparse
from typing import Any

from nonneg.cli import arguments, terminal
from nonneg.exceptions import FileFormatError, InvalidParameterError

OPTIONS = """
model DIR: the folder that `nonneg topics -o DIR` wrote
files FILES*: the documents, unless they were those of --stdlib

[changes; refer to topics by number or name, numbers are those in DIR]
--merge A,B,...+: merge these topics into one; may be repeated
--split A[:N]+: divide a topic into N (default: 2); may be repeated
--rename A=NAME+: name a topic; nothing after = removes its name; may be repeated
--cut N: merge topics along the tree of the report until N are left
"""
KINDS: dict[str, Any] = {name: {"default": []} for name in ("merge", "split", "rename")}


def run(options: argparse.Namespace) -> None:
    """Load, change, write."""
    from nonneg.applications.topics.editing import edited
    from nonneg.cli.topics import read_inputs, recorded_inputs, write_topics
    from nonneg.cli.transform import opened_model

    model, path = opened_model(options.model)
    if (name := type(model).__name__) != "TopicModel":
        raise FileFormatError(
            f"{path} contains a model of class {name}. Give the folder that `nonneg topics` wrote."
        )
    changes = _changes(options, model)
    folder = arguments.output_folder(options, options.model, "edited")
    inputs = recorded_inputs(path)
    # A record may come from elsewhere: it must not make the report show files of this machine.
    if not options.files and not inputs["stdlib"]:
        raise InvalidParameterError(f"Name the documents: nonneg edit-topics {options.model} FILES.")
    inputs["stdlib"] = not options.files
    documents = read_inputs(options.files, inputs)
    new, seconds = terminal.timed(edited, model, documents.contents, **changes)
    proportions = new.transform(documents.contents)
    moved = [
        f"{old} is now {' and '.join(map(str, sorted(numbers)))}"
        for old, numbers in enumerate(new.edits_[-1]["mapping"])
        if numbers != [old]
    ]
    terminal.progress(f"numbers of topics: {', '.join(moved) or 'as before'}")
    write_topics(folder, new, proportions, documents, seconds, inputs)


def _changes(options: argparse.Namespace, model: Any) -> dict[str, Any]:
    merge = [[_topic(part) for part in group.split(",")] for group in options.merge]
    for words, group in zip(options.merge, merge, strict=True):
        if len(set(group)) < 2:
            raise InvalidParameterError(f"--merge {words}: expected several topics, such as --merge 3,7.")
    split = [_split(text) for text in options.split]
    rename = dict(_name(text) for text in options.rename)
    if options.cut is not None:
        if merge or split:
            raise InvalidParameterError("--cut merges topics by itself. Leave out --merge and --split.")
        merge = model.topic_groups(options.cut)
    if not (merge or split or rename):
        raise InvalidParameterError("Nothing to change. Give --merge, --split, --rename or --cut.")
    return {"merge": merge, "split": split, "rename": rename}


def _topic(text: str) -> Any:
    return int(text) if text.strip().isdecimal() else text.strip()


def _split(text: str) -> tuple[Any, int]:
    topic, colon, parts = text.rpartition(":")
    if not colon:
        return _topic(text), 2
    if not parts.strip().isdecimal():
        raise InvalidParameterError(
            f"--split {text}: expected a number after the colon, such as --split 2:3."
        )
    return _topic(topic), int(parts)


def _name(text: str) -> tuple[Any, str | None]:
    topic, equals, name = text.partition("=")
    if not equals:
        raise InvalidParameterError(
            f"--rename {text}: expected a topic and a name, such as --rename 0=sports."
        )
    return _topic(topic), name.strip() or None
