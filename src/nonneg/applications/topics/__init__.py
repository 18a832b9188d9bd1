"""Topics of documents: anchor words, factorizations and what they say about new documents."""

from nonneg.applications.topics.model import TopicModel
from nonneg.applications.topics.over_time import TopicsOverTime

__all__ = ["TopicModel", "TopicsOverTime"]
