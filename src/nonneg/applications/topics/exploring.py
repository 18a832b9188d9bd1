"""Labels of topics, a tree over them, and their course over time."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nonneg._typing import FloatArray
from nonneg.applications.topics.dates import read_dates
from nonneg.applications.topics.fitted import FittedTopics
from nonneg.applications.topics.hierarchy import TopicHierarchy, topic_hierarchy
from nonneg.applications.topics.over_time import TopicsOverTime, topics_over_time
from nonneg.exceptions import ShapeError


class ExplorableTopics(FittedTopics):
    """Fitted topics with labels, a tree and a course over time."""

    def topic_labels(self, n_words: int = 3) -> list[str]:
        """Return what to call the topics: their names, or else their top words.

        Parameters
        ----------
        n_words : int, default 3
            Number of words for a topic without a name.

        Returns
        -------
        list of str
            One label per topic.
        """
        words = self.top_words(n_words)
        return [
            name or ", ".join(str(word) for word in top)
            for name, top in zip(self.topic_names_, words, strict=True)
        ]

    def hierarchy(self) -> TopicHierarchy:
        """Return a tree over the topics, in which the nearest ones are joined first.

        Returns
        -------
        TopicHierarchy
            Its `cut` returns groups of topics at any level, which `merge_topics` accepts.

        Notes
        -----
        The distance between two topics is the Euclidean distance between their rows of `components_`, scaled
        to unit length: from 0 (the same) to 1.41 (no word in common). Groups are joined by Ward's criterion.
        """
        check_is_fitted(self, "components_")
        return topic_hierarchy(self.components_, self.topic_labels())

    def over_time(
        self, X: Any, times: Any, *, unit: str | None = None, proportions: FloatArray | None = None
    ) -> TopicsOverTime:
        """Return the mean topic proportions of documents by period.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            The documents.
        times : sequence of date, datetime, datetime64, str, int or float, of length n_documents
            When each was written: dates, texts such as "2021-12-31", "31.12.2021", "December 31, 2021" or the
            date of an e-mail, years, or seconds since 1970. An entry that is empty or not a date is missing:
            its document is left out and counted.
        unit : {"hour", "day", "week", "month", "year"}, optional
            The length of a period. By default the shortest one with a maximum of 120 periods and a mean of
            at least 5 documents per period.
        proportions : array of shape (n_documents, n_topics), optional
            Those of X, if they are known.

        Returns
        -------
        TopicsOverTime
            Proportions by period, as they are and smoothed, and numbers of documents.
        """
        check_is_fitted(self, "components_")
        found = self.transform(X) if proportions is None else np.asarray(proportions)
        n_documents = X.shape[0] if hasattr(X, "shape") else len(X)
        if found.shape != (n_documents, len(self.components_)):
            raise ShapeError(
                f"Expected proportions of shape ({n_documents}, {len(self.components_)}), got {found.shape}."
            )
        return topics_over_time(found, read_dates(times, n_documents), self.topic_labels(), unit)
