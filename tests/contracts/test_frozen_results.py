"""Results cannot be changed by accident: data classes are frozen, but for those that collect or draw."""

from __future__ import annotations

import ast
from pathlib import Path

import nonneg

# What they hold grows while a fit, a report or a drawing is made.
GROWING = {
    "cli.terminal.Outcome", "cones.streaming.ConeStream", "data.block_tasks.Rows", "data.streamed._Slot",
    "estimators.saving.File", "hyperspectral.abundances.Mixtures", "iteration.checkpoint.Checkpoint",
    "report.record.Record", "separable.merit.Iterate",
}  # fmt: skip


def data_classes():
    for path in Path(nonneg.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body if "dataclass" in text else ():
            for decorator in getattr(node, "decorator_list", []):
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                if getattr(called, "id", getattr(called, "attr", "")) == "dataclass":
                    words = getattr(decorator, "keywords", [])
                    yield (
                        f"{path.parent.name}.{path.stem}.{node.name}",
                        {word.arg: ast.literal_eval(word.value) for word in words},
                    )


def test_data_classes_are_frozen():
    found = list(data_classes())
    assert len(found) > 100
    # Estimators, which have scikit-learn's representation, are changed by a fit.
    open_ = {
        name for name, options in found if not options.get("frozen", False) and options.get("repr", True)
    }
    assert open_ == GROWING
