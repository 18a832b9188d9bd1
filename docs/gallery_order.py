"""Order of the examples in the gallery: by what a reader wants, applications first."""

from __future__ import annotations

NAMES = (
    *("digits", "topics", "topic_changes", "gene_programs", "signatures", "unmixing", "communities"),
    *("solo_recordings", "rank", "losses", "missing", "penalties", "frozen", "pipeline", "certificates"),
    *("initializations", "anchors", "min_volume", "cones", "purification", "separation", "online"),
    *("larger_than_memory", "gpu", "cluster"),
)


class Order:
    """Place of an example; Sphinx-Gallery makes one per folder."""

    def __init__(self, src_dir: str) -> None:
        self.folder = src_dir

    def __call__(self, filename: str) -> int:
        """Return the place of a file; one that is not listed is an error."""
        return NAMES.index(filename.removeprefix("plot_").removesuffix(".py"))
