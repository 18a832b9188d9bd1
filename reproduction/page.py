"""The page of an experiment, in Markdown: a hand-written introduction, then the results of the records."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg.report.record import replaced_folder
from reproduction.artifacts import (
    NEAR,
    WHOLE,
    Artifact,
    Figure,
    Measured,
    Paragraph,
    Pictures,
    Table,
    Verdict,
)
from reproduction.curves import curve_panels
from reproduction.experiment import Experiment, flat_records
from reproduction.registry import TITLES

PAGE = "index.md"
MARKER = "<!-- python -m reproduction writes everything below this line -->"
COMMITTED = Path(__file__).parents[1] / "docs" / "reproduced"
RULE = f"within {100 * NEAR:g}%, two standard errors of the mean, or the sampling error of a share"
_WORDS = {True: "holds", False: "fails", None: "not decided"}


def write_page(
    experiment: Experiment, folder: Path, lines: Sequence[Mapping[str, Any]], *, quick: bool
) -> None:
    """Write index.md and its figures beside the records."""
    artifacts = experiment.summarize(flat_records(lines))
    earlier = {path.name for pattern in ("*.svg", "*.png") for path in folder.glob(pattern)}
    with replaced_folder(folder, known=frozenset(earlier)) as fresh:
        parts = [
            f"# {experiment.name}: {experiment.title}",
            introduction(experiment, folder),
            MARKER,
            *(_drawn(artifact, fresh) for artifact in artifacts if not isinstance(artifact, Verdict)),
            _verdicts([artifact for artifact in artifacts if isinstance(artifact, Verdict)]),
            _circumstances(experiment, lines, quick=quick),
        ]
        text = "\n\n".join(part for part in parts if part)
        (fresh / PAGE).write_text(text + "\n", encoding="utf-8")


def write_index(folder: Path) -> None:
    """Write the list of pages below the introduction of a folder's index, each with what it found."""
    rows = []
    for name, title in TITLES.items():
        if not (path := folder / name / PAGE).is_file():
            continue
        text = path.read_text(encoding="utf-8")
        said = re.findall(r"^- \*\*(holds|fails|not decided)\*\*", text, re.MULTILINE)
        met = [int(n) for counts in re.findall(r"^Published values met \(.*?\): (.*?)\.", text, re.MULTILINE)
               for pair in re.findall(r"(\d+) of (\d+)", counts) for n in pair]  # fmt: skip
        published = f"{sum(met[::2])} of {sum(met[1::2])}" if met else ""
        link = f"[{name}]({name}/{PAGE})"
        rows.append(
            {"page": link, "title": title, "holds": f"{said.count('holds')} of {len(said)}", "met": published}
        )
    headings = {"page": "page", "title": "about", "holds": "claims that hold", "met": "published values met"}
    above = (folder / PAGE).read_text(encoding="utf-8").partition(MARKER)[0]
    pages = "\n".join(f"{row['page'].split('](')[1][:-4]}" for row in rows)
    table = markdown_table(rows, headings, right={"holds", "met"})
    listed = f"```{{toctree}}\n:hidden:\n\n{pages}\n```"
    (folder / PAGE).write_text(f"{above}{MARKER}\n\n{table}\n\n{listed}\n", encoding="utf-8")


def introduction(experiment: Experiment, folder: Path) -> str:
    """Return the text between title and marker of the folder's page, or else of the page in the docs."""
    for page in (folder / PAGE, COMMITTED / experiment.name / PAGE):
        if page.is_file():
            above, found, _ = page.read_text(encoding="utf-8").partition(MARKER)
            if found:
                return above.partition("\n")[2].strip()
    return ""


def _drawn(artifact: Artifact, folder: Path) -> str:
    """Return an artifact as Markdown; figures go into files."""
    if isinstance(artifact, Table):
        return "\n\n".join(
            filter(None, (artifact.caption, table_text(artifact), judgment(artifact)))
        ).rstrip()
    if isinstance(artifact, Figure):
        panels = [dataclasses.asdict(panel) for panel in artifact.panels]
        drawing = curve_panels(panels, artifact.caption, n_columns=artifact.n_columns)
        (folder / f"{artifact.name}.svg").write_text(drawing, encoding="utf-8")
        return f"![{artifact.name}]({artifact.name}.svg)\n\n{artifact.caption}"
    if isinstance(artifact, Pictures):
        drawn = picture_grid(artifact.images, row_labels=artifact.row_labels, titles=[artifact.column_labels])
        (folder / f"{artifact.name}.png").write_bytes(drawn)
        return f"![{artifact.name}]({artifact.name}.png)\n\n{artifact.caption}"
    if isinstance(artifact, Paragraph):
        return artifact.text.strip()
    raise TypeError(f"no way to draw a {type(artifact).__name__}")


def table_text(table: Table) -> str:
    """Lay a table out as Markdown, published values in columns of their own."""
    headings: dict[str, str] = {}
    right = set()
    rows: list[dict[str, Any]] = [{} for _ in table.rows]
    for key, heading in table.columns.items():
        cells = [row.get(key) for row in table.rows]
        measured = [cell for cell in cells if isinstance(cell, Measured)]
        headings[key] = heading
        for row, cell in zip(rows, cells, strict=True):
            row[key] = _measured_text(cell, table.digits) if isinstance(cell, Measured) else cell
        if measured:
            right.add(key)
        if any(cell.published is not None for cell in measured):
            beside = f"{key} (published)"
            headings[beside] = f"{heading} (published)"
            right.add(beside)
            for row, cell in zip(rows, cells, strict=True):
                if isinstance(cell, Measured):
                    row[beside] = _with_spread(cell.published, cell.published_spread, table.digits)
    return markdown_table(rows, headings, digits=table.digits, right=right)


def judgment(table: Table) -> str:
    """Say of every published value of a table whether it is met, or why it cannot be compared."""
    counts: list[str] = []
    reasons: dict[str, list[str]] = {}
    for key, heading in table.columns.items():
        cells = [row[key] for row in table.rows if isinstance(row.get(key), Measured)]
        met = [found for cell in cells if (found := cell.is_met()) is not None]
        if not any(cell.published is not None for cell in cells):
            continue
        if key in table.not_comparable:
            reasons.setdefault(table.not_comparable[key], []).append(heading)
        else:
            counts.append(f"{heading} {sum(met)} of {len(met)}")
    if WHOLE in table.not_comparable:
        reasons[table.not_comparable[WHOLE]] = ["these values"]
    parts = []
    if counts:
        parts.append(f"Published values met ({RULE}): {', '.join(counts)}.")
    parts += [f"Not comparable: {', '.join(headings)}, because {why}." for why, headings in reasons.items()]
    return " ".join(parts)


def _measured_text(cell: Measured, digits: int) -> str:
    text = _with_spread(cell.value, cell.spread, digits)
    return " ".join(part for part in (cell.sign, text, cell.remark) if part)


def _with_spread(value: float | None, spread: float | None, digits: int) -> str:
    text = format_cell(value, digits=digits)
    return text if value is None or spread is None else f"{text} ± {format_cell(spread, digits=2)}"


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return ""
    lines = [
        f"- **{_WORDS[verdict.met]}**: {verdict.claim}" + (f" ({verdict.detail})" if verdict.detail else "")
        for verdict in verdicts
    ]
    return "## Claims\n\n" + "\n".join(lines)


def _circumstances(experiment: Experiment, lines: Sequence[Mapping[str, Any]], *, quick: bool) -> str:
    n_wanted = len(experiment.trials(quick))
    command = f"python -m reproduction {experiment.name}" + (" --quick" if quick else "")
    dates = sorted(line["date"] for line in lines)
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    threads = sorted({line["threads"] for line in lines})
    seconds = sum(line["seconds"] for line in lines)
    facts = [
        f"- Trials: {len(lines)} of {n_wanted}"
        + (" (quick setting)" if quick else "")
        + f", {seconds:.0f} s in total",
        f"- Date: {when}",
        *(f"- Machine: {text}" for text in dict.fromkeys(_machine(line["machine"]) for line in lines)),
        f"- Threads: {', '.join(map(str, threads))}",
        *(
            f"- Device: {name}"
            for name in dict.fromkeys(line["device"] for line in lines if "device" in line)
        ),
    ]
    loads = [line["load"] for line in lines if line.get("load") is not None]
    if loads:
        facts.append(f"- Machine load before a trial: {min(loads):g} to {max(loads):g}")
    return f"## How to reproduce\n\n```bash\n{command}\n```\n\n" + "\n".join(facts)


def _machine(about: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    return (
        f"{about['processor']}, {about['cores']} cores, {about['memory_gib']} GiB, {about['system']}, "
        f"Python {about['python']}; {versions}"
    )


def markdown_table(
    records: Sequence[Mapping[str, Any]],
    columns: Sequence[str] | Mapping[str, str] | None = None,
    *,
    digits: int = 4,
    right: Collection[str] = (),
) -> str:
    """Lay records out as a Markdown table, numbers to the right."""
    if columns is None:
        columns = list(dict.fromkeys(key for record in records for key in record))
    headings = dict(columns) if isinstance(columns, Mapping) else {key: key for key in columns}
    if not headings:
        return ""
    body = [[format_cell(record.get(key), digits=digits) for key in headings] for record in records]
    rows = [[_escaped(heading) for heading in headings.values()], *body]
    numeric = [key in right or _is_numeric([record.get(key) for record in records]) for key in headings]
    widths = [max(3, *(len(row[at]) for row in rows)) for at in range(len(headings))]
    lines = [
        "| "
        + " | ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        + " |"
        for row in rows
    ]
    rule = (
        "-" * (width + 1) + ":" if right else "-" * (width + 2)
        for width, right in zip(widths, numeric, strict=True)
    )
    return "\n".join([lines[0], "|" + "|".join(rule) + "|", *lines[1:]]) + "\n"


def format_cell(value: Any, *, digits: int = 4) -> str:
    """Write one value for a person."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return _escaped(str(value))


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _is_numeric(values: Sequence[Any]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in present
    )


def picture_grid(
    images: Sequence[Sequence[Any]],
    *,
    titles: Sequence[Sequence[str]] = (),
    row_labels: Sequence[str] = (),
) -> bytes:
    """Draw a grid of pictures, white for the largest entry of each."""
    module = import_optional("matplotlib.figure", extra="report", purpose="Drawing pictures")
    n_rows, n_columns = len(images), max(len(row) for row in images)
    height, width = np.shape(images[0][0])
    figure = module.Figure(
        figsize=(
            1.2 * n_columns + (1.0 if row_labels else 0.1),
            (1.2 * height / width + 0.1) * n_rows + 0.2 * len(titles) + 0.3,
        ),
        layout="constrained",
        facecolor="white",
    )
    text = {"fontsize": 9, "color": "#222222", "parse_math": False}
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    for i, row in enumerate(grid):
        for j, axes in enumerate(row):
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
            if j < len(images[i]):
                picture = np.asarray(images[i][j])
                largest = float(np.max(picture, where=np.isfinite(picture), initial=0.0)) or 1.0
                axes.imshow(picture, cmap="gray", vmin=0.0, vmax=largest, interpolation="nearest")
            if i < len(titles) and j < len(titles[i]):
                axes.set_title(titles[i][j], **text)
        if i < len(row_labels):
            row[0].set_ylabel(row_labels[i], rotation=0, ha="right", va="center", **text)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=120, metadata={"Software": None})
    return stream.getvalue()
