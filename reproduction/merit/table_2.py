"""Table II: coherence, similarity count and accuracy of topics in two collections of documents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from reproduction.artifacts import Artifact, Measured, Paragraph, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.merit.topic_draws import (
    ANCHOR_METHODS,
    CORPORA,
    N_DRAWS,
    NUMBERS,
    QUICK,
    cost,
    make_draw,
    run_method,
)
from reproduction.published_values import published_values
from reproduction.registry import TITLES

NAME = "merit/table-2"
GROUPS = {
    "greedy": ("spa", "fast-anchor", "xray"),
    "merit": ("merit",),
    "merit of nonneg": ("merit of nonneg",),
    "nmf": ("nmf",),
    "default": ("default",),
    "merit(0)": ("merit(0)",),
    "lda": ("lda",),
    "gibbs lda": ("gibbs lda",),
    "fast-gradient": ("fast-gradient",),
}
"""What is run together, because it shares its preparation -> the methods."""
SHOWN = {
    **ANCHOR_METHODS,
    "gibbs lda": "LDA (Gibbs)",
    "lda": "LDA (variational)",
    "nmf": "NMF of nonneg",
    "default": "TopicModel",
}
MEASURES = {"coherence": "coherence", "similarity": "similarity_count", "accuracy": "accuracy"}
"""Our measures -> their names in the paper's table."""
DIGITS = {"coherence": 4, "similarity": 4, "accuracy": 3}
TOLERANCES = {"coherence": 0.5, "similarity": 0.1, "accuracy": 0.015}
MERIT_BELOW = {"tdt2": 0.02, "reuters21578": 0.03}
NOT_COMPARABLE = {"fast-gradient": "it was run on the smaller of the first draws only"}
# FastGradient holds five square arrays and needs minutes beyond this many words.
FAST_GRADIENT_WORDS, FAST_GRADIENT_DRAWS = 6000, 10
GIBBS_DRAWS = 5  # each takes as long as MERIT


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per corpus, number of classes, draw and group of methods."""
    if quick:
        return [
            {"corpus": QUICK, "k": 3, "draw": 0, "group": group, "n_clusterings": 2}
            for group in ("greedy", "merit", "merit of nonneg", "nmf")
        ]
    settings = [
        {
            "corpus": corpus,
            "k": k,
            "draw": draw,
            "group": group,
            "n_clusterings": 1 if group == "default" else 10,
        }
        for group in GROUPS
        for corpus in CORPORA
        for k in NUMBERS
        for draw in range(N_DRAWS)
        if group != "fast-gradient" or (corpus == "reuters21578" and draw < FAST_GRADIENT_DRAWS)
        if group != "gibbs lda" or draw < GIBBS_DRAWS
    ]
    # What is to be shown comes first; then draw after draw, so that a part of the trials has all of the rest.
    first = ("greedy", "merit", "merit of nonneg", "nmf", "default")
    return sorted(
        settings,
        key=lambda setting: (
            first.index(setting["group"]) if setting["group"] in first else len(first),
            0 if setting["group"] in first[:4] else setting["draw"],
            -cost(setting),
        ),
    )


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run one trial."""
    draw = make_draw(setting["corpus"], setting["k"], setting["draw"])
    if setting["group"] == "fast-gradient" and draw.counts.shape[1] > FAST_GRADIENT_WORDS:
        return [{"method": "fast-gradient", "left_out": draw.counts.shape[1]}]
    return [
        run_method(draw, method, seed=setting["draw"], n_clusterings=setting["n_clusterings"])
        for method in GROUPS[setting["group"]]
    ]


def published(corpus: str, measure: str, method: str, k: int) -> float | None:
    """Return a number of the paper."""
    table = _published_table()
    name = "LDA" if method == "gibbs lda" else SHOWN[method]
    row = table.get(CORPORA.get(corpus, ""), {}).get(MEASURES[measure], {}).get(name)
    return None if row is None else row[table["K"].index(k)]


@cache
def _published_table() -> dict[str, Any]:
    return dict(published_values("merit")["table_2_topics"])


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the tables and the claims."""
    found = [record for record in records if "accuracy" in record]
    groups = grouped(found, "corpus", "k", "method")
    shown: list[Artifact] = []
    for corpus in dict.fromkeys(record["corpus"] for record in found):
        numbers = sorted({k for name, k, _ in groups if name == corpus})
        methods = [method for method in SHOWN if any((corpus, k, method) in groups for k in numbers)]
        shown += [_table(groups, corpus, measure, numbers, methods) for measure in MEASURES]
        shown.append(_other_scores(groups, corpus, numbers, methods))
    return [*shown, *_ties(groups), *_left_out(records), *_verdicts(groups)]


def _mean(groups: dict[tuple[Any, ...], list[dict[str, Any]]], key: tuple[Any, ...], measure: str) -> Any:
    return mean_and_spread([record[measure] for record in groups.get(key, [])])[0]


def _table(
    groups: dict[tuple[Any, ...], list[dict[str, Any]]],
    corpus: str,
    measure: str,
    numbers: Sequence[int],
    methods: Sequence[str],
) -> Table:
    rows = []
    for k in numbers:
        row: dict[str, Any] = {"k": k}
        for method in methods:
            n = len(groups.get((corpus, k, method), []))
            row[method] = Measured(
                _mean(groups, (corpus, k, method), measure),
                published=published(corpus, measure, method, k),
                remark="" if n in (0, N_DRAWS) else f"({n} draws)",
            )
        rows.append(row)
    words = {"coherence": "Coherence", "similarity": "Similarity count", "accuracy": "Accuracy"}[measure]
    columns = {"k": "K"} | {method: SHOWN[method] for method in methods}
    caption = f"{CORPORA.get(corpus, corpus)}: {words}, mean over draws."
    return Table(caption, columns, rows, DIGITS[measure], NOT_COMPARABLE)


def _other_scores(
    groups: dict[tuple[Any, ...], list[dict[str, Any]]],
    corpus: str,
    numbers: Sequence[int],
    methods: Sequence[str],
) -> Table:
    rows = []
    for method in methods:
        records = [record for k in numbers for record in groups.get((corpus, k, method), [])]
        rows.append(
            {"method": SHOWN[method], "n": len(records)}
            | {
                name: mean_and_spread([record[name] for record in records])[0]
                for name in ("npmi", "argmax accuracy", "n_words", "seconds")
            }
        )
    columns = {
        "method": "method", "n": "trials", "npmi": "NPMI", "argmax accuracy": "argmax accuracy",
        "n_words": "words", "seconds": "anchor selection (s)",
    }  # fmt: skip
    return Table(f"{CORPORA.get(corpus, corpus)}: means over all K and draws.", columns, rows, 3)


def _ties(groups: dict[tuple[Any, ...], list[dict[str, Any]]]) -> list[Table]:
    ours = {key[:2]: found for key, found in groups.items() if key[2] == "merit of nonneg"}
    corpora = list(dict.fromkeys(corpus for corpus, _ in ours))
    rows: list[dict[str, Any]] = []
    for k in sorted({k for _, k in ours}):
        row: dict[str, Any] = {"k": k}
        for corpus in corpora:
            tied = [bool(record["tied"]) for record in ours.get((corpus, k), [])]
            row[corpus] = f"{sum(tied)} of {len(tied)}"
        rows.append(row)
    names = {corpus: CORPORA.get(corpus, corpus) for corpus in corpora}
    caption = "MERIT: draws in which the last anchors are tied in their row maximum."
    return [Table(caption, {"k": "K"} | names, rows, 3)] if rows else []


def _left_out(records: Sequence[Record]) -> list[Paragraph]:
    skipped = [record for record in records if "left_out" in record]
    if not skipped:
        return []
    words = [record["left_out"] for record in skipped]
    return [
        Paragraph(
            f"FastGradient was skipped for {len(skipped)} draws of {min(words)} to {max(words)} words, where "
            f"its five arrays take {40e-9 * min(words) ** 2:.2g} to {40e-9 * max(words) ** 2:.2g} GB."
        )
    ]


def _verdicts(groups: dict[tuple[Any, ...], list[dict[str, Any]]]) -> list[Verdict]:
    verdicts = []
    for corpus, name in CORPORA.items():
        for measure, allowed in TOLERANCES.items():
            verdicts.append(
                _verdict(
                    f"SPA's {MEASURES[measure].replace('_', ' ')} on {name} is the published one within "
                    f"{allowed}, for every K",
                    groups,
                    corpus,
                    "spa",
                    measure,
                    lambda ours, theirs, allowed=allowed: abs(ours - theirs) <= allowed + 1e-9,
                )
            )
        below = MERIT_BELOW[corpus]
        for method, who in (
            ("merit of nonneg", "MERIT of nonneg"),
            ("merit", "MERIT with the authors' rules"),
        ):
            verdicts.append(
                _verdict(
                    f"{who} has at least the published accuracy less {below} on {name}, for every K",
                    groups,
                    corpus,
                    method,
                    "accuracy",
                    lambda ours, theirs, below=below: ours >= theirs - below - 1e-9,
                    against=("merit", "accuracy"),
                )
            )
        verdicts.append(
            _verdict(
                f"TopicModel's `predict` is more accurate on {name} than the published MERIT, for every K",
                groups,
                corpus,
                "default",
                "argmax accuracy",
                lambda ours, theirs: ours > theirs,
                against=("merit", "accuracy"),
            )
        )
    return verdicts


def _verdict(
    claim: str,
    groups: dict[tuple[Any, ...], list[dict[str, Any]]],
    corpus: str,
    method: str,
    measure: str,
    agrees: Any,
    *,
    against: tuple[str, str] | None = None,
) -> Verdict:
    whole, met, detail = True, True, []
    for k in NUMBERS:
        ours = _mean(groups, (corpus, k, method), measure)
        theirs = published(corpus, *((measure, method) if against is None else against[::-1]), k)
        whole &= len(groups.get((corpus, k, method), [])) == N_DRAWS
        if ours is None or theirs is None:
            continue
        met &= bool(agrees(ours, theirs))
        detail.append(f"K = {k}: {ours:.4g} ({theirs:g})")
    return Verdict(claim, met if whole else None, ", ".join(detail) or "not measured")


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=tuple(CORPORA),
    quick_data_sets=(),
    cost=cost,
    supports_device=True,
)
