"""TopicModel: what documents are about, with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.topics.certify import topic_statements
from nonneg.applications.topics.documents import make_vectorizer, spread_out, used_words
from nonneg.applications.topics.given_anchors import anchor_places
from nonneg.applications.topics.memberships import ENCODER, NMFEncoder, shares_of, telling_documents
from nonneg.applications.topics.methods import Task, run_method, topic_method
from nonneg.applications.topics.reading import read_documents
from nonneg.applications.topics.term_weights import inverse_frequencies
from nonneg.applications.topics.topic_recovery import rows_of_sum_one
from nonneg.certificates.certificate import Certificate
from nonneg.estimators.saving import SavableEstimator
from nonneg.estimators.stored_fields import Fields, Names, Record, StoredArray, Value
from nonneg.exceptions import FileFormatError, InvalidParameterError, ShapeError, UnknownNameError
from nonneg.metrics.topics import npmi_coherence, top_words, umass_coherence

N_TOP_WORDS = 20
MEASURES = {"umass": umass_coherence, "npmi": npmi_coherence}


class TopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SavableEstimator):
    """Topics of documents: distributions over words, and how much of each is in every document.

    Parameters
    ----------
    n_topics : int
        How many topics.
    method : str
        "nmf" (default): least squares on TF-IDF weights, balanced so that large subjects do not take all
        topics. "kl": Kullback-Leibler divergence on counts. "lda": scikit-learn's variational
        latent Dirichlet allocation. Or a search for anchor words, a name in `nonneg.separable.METHODS`
        ("merit", "spa", "snpa", "xray", "fast-anchor", "fast-gradient", ...) or "merit(0)", MERIT without
        its row sparsity.
    anchors : list of str or int, optional
        Anchor words that you choose, one a topic. Anchor methods take them in place of their search, "nmf" as
        its start.
    balance : bool
        "nmf": whether documents are balanced, each divided by the root of the sum of its similarities to all;
        otherwise each has unit length.
    min_documents : int
        Words in fewer documents are not used. They stay in the vocabulary, with weight zero.
    max_share : float
        Words in more than this share of the documents are not used, and words in all documents never.
    stop_words : None, "english" or list of str
        Texts: words that are not counted.
    vectorizer : scikit-learn vectorizer, optional
        Texts: what counts the words, in place of a `CountVectorizer`.
    vocabulary : array-like of str, optional
        Counts: what the words are called, one name a column. A data frame brings them along.
    method_options : dict, optional
        Further options of the method: of `select_anchors`, of `NMF`, or of `LatentDirichletAllocation`.
    random_state : int, RandomState, Generator or None
        For methods that draw.
    verbose : int
        1 shows progress.
    n_jobs : int or None
        Threads of the kernels; None takes all cores.

    Attributes
    ----------
    topics_ : array of shape (n_topics, n_words)
        The share of each word in each topic: rows sum to one.
    components_ : array of shape (n_topics, n_words)
        The same in the method's own unit ("nmf": rows of unit length).
    anchor_words_ : list of str (or int where words have no names), or None
        The anchor word of every topic; None for methods without.
    anchor_indices_ : array of int or None
        Their columns.
    topic_shares_ : array of shape (n_topics,)
        The share of each topic in the documents of the fit.
    coherence_ : array of shape (n_topics,)
        UMass coherence of the 20 top words in these documents.
    vocabulary_ : array of str or None
        The words by column; None for counts without names.
    word_indices_ : array of int
        The columns that are used.
    n_iter_ : int
        Iterations of the method, or picks.
    certificate_ : Certificate
        What is known about the answer.
    result_ : SelectionResult, NMF or LatentDirichletAllocation
        The method's own result; None where anchors were given.
    vectorizer_ : vectorizer or None
        The fitted vectorizer, for texts.
    n_features_in_ : int
        The number of words.
    feature_names_in_ : array of str
        Names of the columns of a data frame.

    See Also
    --------
    nonneg.metrics.umass_coherence : How well the words of topics go together.

    Notes
    -----
    Anchor words are searched among the rows of the word-word correlation ``P = F'F / n_documents`` (F:
    TF-IDF), normalised and reduced to ``2 n_topics`` dimensions; P is never formed. `transform` solves each
    document's own nonnegative problem, so that a document's membership does not depend on others, and
    ``fit_transform(X)`` equals ``fit(X).transform(X)``.

    References
    ----------
    .. [1] Nguyen, Fu & Wu (2022), IEEE Trans. Signal Processing 70, Section V-B (anchor words by MERIT).
    .. [2] Arora et al. (2013), ICML (anchor words).
    .. [3] Xu, Liu & Gong (2003), SIGIR (balanced documents: NMF-NCW).

    Examples
    --------
    >>> from nonneg.applications import TopicModel
    >>> texts = ["cat dog cat", "dog cat pet", "bond stock", "stock market bond", "pet dog", "market stock"]
    >>> model = TopicModel(2, random_state=0).fit(texts)
    >>> sorted(sorted(words) for words in model.top_words(3))
    [['bond', 'market', 'stock'], ['cat', 'dog', 'pet']]
    """

    _stored: ClassVar[Fields] = {
        "n_features_in_": Value(int),
        "n_iter_": Value(int),
        "_own_vectorizer": Value(bool),
        "certificate_": Record(Certificate.from_dict),
        "components_": StoredArray("n_topics", "n_features_in_"),
        "topic_shares_": StoredArray("n_topics"),
        "coherence_": StoredArray("n_topics"),
        "word_indices_": StoredArray("number of words used", kind="i", below="n_features_in_"),
        "_inverse": StoredArray("number of words used"),
        "anchor_indices_": StoredArray("n_topics", kind="i", below="n_features_in_", optional=True),
        "vocabulary_": Names("n_features_in_", optional=True),
        "feature_names_in_": Names("n_features_in_", optional=True),
        "_encode": ENCODER,
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_topics": [Interval(Integral, 1, None, closed="left")],
        # Names are looked up in the registries, which know the near ones.
        "method": [str],
        "anchors": ["array-like", None],
        "balance": ["boolean"],
        "min_documents": [Interval(Integral, 1, None, closed="left")],
        "max_share": [Interval(Real, 0, 1, closed="right")],
        "stop_words": [str, list, tuple, set, frozenset, None],
        "vectorizer": [object],
        "vocabulary": ["array-like", None],
        "method_options": [dict, None],
        "random_state": ["random_state", np.random.Generator, np.random.SeedSequence],
        "verbose": ["verbose"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_topics: int = 10,
        *,
        method: str = "nmf",
        anchors: Sequence[Any] | None = None,
        balance: bool = True,
        min_documents: int = 2,
        max_share: float = 1.0,
        stop_words: Any = None,
        vectorizer: Any = None,
        vocabulary: Any = None,
        method_options: Mapping[str, Any] | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_topics = n_topics
        self.method = method
        self.anchors = anchors
        self.balance = balance
        self.min_documents = min_documents
        self.max_share = max_share
        self.stop_words = stop_words
        self.vectorizer = vectorizer
        self.vocabulary = vocabulary
        self.method_options = method_options
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.positive_only = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> TopicModel:
        """Find the topics.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            Texts, or counts of words; never changed.
        y : Any
            Ignored.

        Returns
        -------
        TopicModel
            Itself.
        """
        self._fit(X)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Find the topics and return the memberships of the same documents.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            Texts, or counts of words; never changed.
        y : Any
            Ignored.

        Returns
        -------
        array of shape (n_documents, n_topics)
            As `transform` returns it.
        """
        return self._fit(X)

    def _fit(self, X: Any) -> FloatArray:
        method = topic_method(self.method)
        counts = self._read(X, reset=True)
        words = used_words(counts, self.min_documents, float(self.max_share))
        n_topics, used = int(self.n_topics), sp.csr_array(counts[:, words]).astype(np.float64)
        if n_topics > min(used.shape):
            raise InvalidParameterError(
                f"n_topics={n_topics} is more than the {used.shape[0]} documents or the {used.shape[1]} "
                "used words. Ask for fewer topics, or lower min_documents."
            )
        places = None
        if self.anchors is not None:
            places = anchor_places(self.anchors, n_topics, self.vocabulary_, words, counts)
        self._inverse = inverse_frequencies(used)
        task = Task(
            used, self._inverse, n_topics, anchors=places, balance=self.balance,
            options=dict(self.method_options or {}), rng=self.random_state, n_jobs=self.n_jobs,
            verbose=self.verbose,
        )  # fmt: skip
        with threads(self.n_jobs):
            found = run_method(method, task)
            self.word_indices_ = words
            self._encode = found.encode
            memberships = self._memberships(used, counts.dtype)
        self.components_ = spread_out(found.components.astype(counts.dtype), words, counts.shape[1])
        self.topics_ = rows_of_sum_one(self.components_)
        self.anchor_indices_ = None if found.anchors is None else words[found.anchors]
        self.anchor_words_ = None if self.anchor_indices_ is None else self._names(self.anchor_indices_)
        total = float(memberships.sum())
        self.topic_shares_ = memberships.sum(axis=0) / (total or 1.0)
        top = top_words(found.components, N_TOP_WORDS)
        self.coherence_ = umass_coherence(used, top)
        self.n_iter_, self.result_ = found.n_iter, found.result
        n_empty = int(np.sum(~(memberships.sum(axis=1) > 0)))
        self.certificate_ = found.certificate.with_statements(
            topic_statements(
                rows_of_sum_one(found.components), top, found.anchors,
                [] if self.anchor_words_ is None else self.anchor_words_, n_empty, counts.shape[0],
            )
        )  # fmt: skip
        return memberships

    def transform(self, X: Any) -> FloatArray:
        """Return how much of each topic is in documents, each on its own.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            Texts where the fit had texts, counts of the same words otherwise; never changed.

        Returns
        -------
        array of shape (n_documents, n_topics)
            Rows sum to one. A document without any used word, or with none that is in a topic, has a row of
            zeros, and a warning counts such documents.
        """
        check_is_fitted(self, "components_")
        counts = self._read(X, reset=False)
        with threads(self.n_jobs):
            return self._memberships(
                sp.csr_array(counts[:, self.word_indices_]).astype(np.float64), counts.dtype
            )

    def predict(self, X: Any) -> IntArray:
        """Return the topic of which each document holds most.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            As for `transform`.

        Returns
        -------
        array of int of shape (n_documents,)
            -1 for documents without a membership.
        """
        memberships = self.transform(X)
        return np.where(memberships.sum(axis=1) > 0, np.argmax(memberships, axis=1), -1)

    def top_words(self, n: int = 10) -> list[list[Any]]:
        """Return the most important words of every topic.

        Parameters
        ----------
        n : int
            At most so many; words of weight zero are left out.

        Returns
        -------
        list of list of str
            The heaviest first; columns (int) where words have no names.
        """
        check_is_fitted(self, "components_")
        best = top_words(self.components_, n)
        return [self._names(row[self.components_[topic, row] > 0]) for topic, row in enumerate(best)]

    def example_documents(
        self, X: Any, n: int = 3, *, memberships: FloatArray | None = None
    ) -> list[IntArray]:
        """Return the documents that show every topic best.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            The documents to choose from.
        n : int
            At most so many a topic.
        memberships : array of shape (n_documents, n_topics), optional
            Those of X, where they are known.

        Returns
        -------
        list of array of int
            Rows of X, the best first: by membership times the root of how much of the topic's words they
            hold, so that a long document goes before a line with one of the words.
        """
        check_is_fitted(self, "components_")
        counts = self._read(X, reset=False)
        found = self.transform(X) if memberships is None else np.asarray(memberships)
        if found.shape != (counts.shape[0], len(self.components_)):
            raise ShapeError(
                f"Expected memberships of shape ({counts.shape[0]}, {len(self.components_)}), got "
                f"{found.shape}."
            )
        said = np.asarray(counts @ self.topics_.T.astype(counts.dtype))
        return telling_documents(found, said, n)

    def coherence(self, X: Any, *, measure: str = "umass", n_words: int = N_TOP_WORDS) -> FloatArray:
        """Return how well the top words of every topic go together in documents.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            Documents in which every top word occurs, as those of the fit.
        measure : {"umass", "npmi"}
            See `nonneg.metrics.umass_coherence` and `nonneg.metrics.npmi_coherence`.
        n_words : int
            How many words a topic.

        Returns
        -------
        array of shape (n_topics,)
            Larger is better.
        """
        check_is_fitted(self, "components_")
        if measure not in MEASURES:
            raise UnknownNameError.of("measure", measure, MEASURES)
        counts = self._read(X, reset=False)[:, self.word_indices_]
        return MEASURES[measure](counts, top_words(self.components_[:, self.word_indices_], n_words))

    @property
    def _own_vectorizer(self) -> bool:
        """Whether the words of texts are counted by a vectorizer that is not the user's."""
        return self.vectorizer_ is not None and self.vectorizer is None

    @_own_vectorizer.setter
    def _own_vectorizer(self, own: bool) -> None:
        self.vectorizer_ = make_vectorizer(None, self.stop_words) if own else None

    def _complete_loaded(self) -> None:
        encoder = self._encode
        if isinstance(encoder, NMFEncoder):
            expected = (int(self.n_topics), len(self.word_indices_))
            if encoder.model.components_.shape != expected:
                raise FileFormatError("the encoder is for other words or topics. The file is damaged.")
        if self.vectorizer_ is not None:
            self.vectorizer_.set_params(vocabulary=list(self.vocabulary_))
        self.topics_ = rows_of_sum_one(self.components_)
        self.anchor_words_ = None if self.anchor_indices_ is None else self._names(self.anchor_indices_)

    def _names(self, columns: IntArray) -> list[Any]:
        if self.vocabulary_ is None:
            return [int(column) for column in columns]
        return [str(self.vocabulary_[column]) for column in columns]

    def _read(self, X: Any, *, reset: bool) -> Any:
        return read_documents(self, X, reset=reset)

    def _memberships(self, used: Any, dtype: Any) -> FloatArray:
        return shares_of(self._encode(used), used, dtype)
