"""Topics of documents: anchor words, factorizations and what they say about new documents."""

from nonneg.applications.topics.model import TopicModel

__all__ = ["TopicModel"]
