"""Applications: topics, communities, recordings, hyperspectral images, mutational signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nonneg._lazy import lazy_names

if TYPE_CHECKING:
    from nonneg.applications.audio import SourceSeparation as SourceSeparation
    from nonneg.applications.communities import MixedMembership as MixedMembership
    from nonneg.applications.hyperspectral import Unmixing as Unmixing
    from nonneg.applications.signatures import MutationalSignatures as MutationalSignatures
    from nonneg.applications.topics import TopicModel as TopicModel

__all__: list[str] = [
    "MixedMembership",
    "MutationalSignatures",
    "SourceSeparation",
    "TopicModel",
    "Unmixing",
]

__getattr__ = lazy_names(
    __name__,
    {
        "MixedMembership": "nonneg.applications.communities",
        "MutationalSignatures": "nonneg.applications.signatures",
        "SourceSeparation": "nonneg.applications.audio",
        "TopicModel": "nonneg.applications.topics",
        "Unmixing": "nonneg.applications.hyperspectral",
    },
)
