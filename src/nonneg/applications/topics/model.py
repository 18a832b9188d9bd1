"""TopicModel: what documents are about, with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import chain
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import pdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from nonneg._arguments import checked_count, is_count
from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import FloatArray, IntArray
from nonneg._warnings import warn_user
from nonneg.applications.method_entries import method_parameters
from nonneg.applications.topics.certificate import WEIGHTED, seed_statement, topic_npmi, topic_statements
from nonneg.applications.topics.documents import (
    Vocabulary,
    are_texts,
    checked_counts,
    counted_texts,
    document_frequencies,
    inverse_frequencies,
    make_vectorizer,
    rows_of_sum_one,
    unit_rows,
    used_words,
)
from nonneg.applications.topics.editing import edited
from nonneg.applications.topics.methods import METHODS, Task, document_weights
from nonneg.applications.topics.number_of_topics import CANDIDATES, compare_numbers
from nonneg.applications.topics.over_time import TopicsOverTime, topics_over_time
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.estimators._base import COUNT, NOT_NEGATIVE, SHARED_VALUES
from nonneg.estimators.saving import Fields, Names, SavableEstimator, Sparse, StoredArray, damaged
from nonneg.exceptions import (
    DataChangedWarning,
    InvalidParameterError,
    ShapeError,
    UnsupportedError,
    as_data_errors,
)
from nonneg.iteration import Progress
from nonneg.metrics.topics import top_words, umass_coherence

N_TOP_WORDS = 20
# The documents of a stream that are kept, and by which part their number has grown when topics are found
# again.
MAX_SAMPLE, GROWTH = 10_000, 0.25


@dataclass(frozen=True)
class Stream:
    """A random sample of the documents of a stream."""

    sample: Any  # counts, CSR
    n_seen: int  # documents so far
    next_fit: int  # number of documents at which topics are found again

    def extended(self, counts: Any) -> Stream:
        """Return the same with another batch; further words are at the end of the vocabulary."""
        # Vitter's reservoir: document t takes a place at random among t, if there is one in the sample. The
        # numbers are fixed: what is kept is not up to the user.
        n_old, numbers = self.sample.shape[0], self.n_seen + np.arange(counts.shape[0])
        drawn = np.random.default_rng([0, self.n_seen]).integers(numbers + 1)
        places = np.where(numbers < MAX_SAMPLE, numbers, drawn)
        rows = np.arange(max(n_old, int(min(numbers[-1] + 1, MAX_SAMPLE))))
        inside = np.flatnonzero(places < MAX_SAMPLE)
        rows[places[inside]] = n_old + inside
        arrays = self.sample.data, self.sample.indices, self.sample.indptr
        known = sp.csr_array(arrays, shape=(n_old, counts.shape[1]))
        sample = sp.csr_array(sp.vstack([known, counts], format="csr")[rows])
        return replace(self, sample=sample, n_seen=int(numbers[-1]) + 1)


@dataclass(eq=False, repr=False)
class TopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SavableEstimator):
    """Topics of documents: distributions over words, and the proportion of each topic in every document.

    Parameters
    ----------
    n_topics : int, "auto", None or sequence of int, default "auto"
        The number of topics. "auto" or None compares numbers from 2 to 50, a sequence those in it, and takes
        the one that divides the documents most clearly: with the largest modularity [4]_ (see `selection_`).
    method : str, default "nmf"
        "nmf" (default): least squares on TF-IDF weights, balanced so that large subjects do not take all
        topics. "kl": Kullback-Leibler divergence on counts. Or anchor words, by a method in
        `nonneg.separable.METHODS` ("merit", "spa", "snpa", "xray", "fast-anchor", "fast-gradient", ...).
    anchors : list of str or int, optional
        Anchor methods: your own anchor words, one per topic, instead of a search.
    seed_words : dict of str to list of str or int, optional
        "nmf": words that guide topics, by the name of the topic, such as ``{"sports": ["game", "team"]}``.
        These topics have these names (see `topic_names_`); there may be more topics than names. A warning
        names the words that are not in the vocabulary or not used.
    min_documents : int, default 10
        A topic that is the main topic of fewer documents rests on few: `few_documents_` and the certificate
        say so. "auto" tries no more topics than leave as many for each.
    min_df : int, default 2
        Words in fewer documents are not used. They stay in the vocabulary, with weight zero.
    max_df : float, default 1.0
        Words in more than this fraction of the documents are not used; words in all documents never are.
    stop_words : None, "english" or list of str
        Texts: words that are not counted.
    vectorizer : scikit-learn vectorizer, optional
        Texts: counts the words, instead of a `CountVectorizer`.
    vocabulary : array-like of str, optional
        Counts: the words, one per column. A data frame brings its own.
    tol, max_iter : float, int, optional
        When the iterations stop; None for the defaults of the method. Methods that pick one anchor word at
        a time have neither.
    method_params : dict, optional
        Further parameters of the method: of `select_anchors`, or of `NMF`, such as `init` and `n_init`.
    random_state : int, RandomState, Generator or None
        The seed of methods that draw random numbers.
    {verbose}
    device : str, optional
        "nmf" and "kl": where the counts are factorized, see `nonneg.NMF`.
    {n_jobs, callback, checkpoint}

    Attributes
    ----------
    topics_ : array of shape (n_topics, n_words)
        The probability of each word in each topic: rows sum to one.
    components_ : array of shape (n_topics, n_words)
        The same in the method's own scale ("nmf": rows of unit length).
    anchor_words_ : list of str (or int where words have no names), or None
        The anchor word of every topic; None for methods without anchor words.
    anchor_indices_ : array of int or None
        Their columns.
    topic_proportions_ : array of shape (n_topics,)
        The proportion of each topic in the documents of the fit. Topics are numbered by it, the largest
        first, except where `anchors` gave their order.
    documents_per_topic_ : array of int of shape (n_topics,)
        Number of documents of the fit in which the topic has the largest proportion.
    few_documents_ : array of bool of shape (n_topics,)
        Topics that rest on fewer than `min_documents` documents.
    npmi_ : array of shape (n_topics,)
        Normalized pointwise mutual information of the 10 top words in these documents, from -1 to 1.
    coherence_ : array of shape (n_topics,)
        UMass coherence of the 20 top words in these documents.
    topic_names_ : list of str or None
        The names of the topics, None for those without (see `rename_topics`).
    edits_ : list of dict
        What was merged, split and renamed after the fit, each with the `mapping` from old to new numbers.
    n_topics_ : int
        The number of topics.
    selection_ : dict or None
        How the number of topics was chosen: `candidates`, and for each of them the `modularity` of the groups
        of documents with the same main topic in the graph of similar documents, its `modularity_error`, the
        standard error of the difference from the largest, and the mean `npmi`; `n_topics`, the `range` of
        numbers within one standard error, and the `reason`. None if the number was given.
    vocabulary_ : array of str or None
        The words by column; None for counts without names.
    word_indices_ : array of int
        The columns of the words that are used.
    n_iter_ : int
        Number of iterations, or of anchor words picked.
    certificate_ : Certificate
        What is known about the result.
    result_ : SelectionResult or NMF
        The result of the method; None if anchors were given.
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
    TF-IDF), normalized and reduced to ``2 n_topics`` dimensions; P is never formed. `transform` solves one
    nonnegative problem per document, so its proportions do not depend on other documents, and
    ``fit_transform(X)`` equals ``fit(X).transform(X)``. There is no `sample_weight`: the method weights the
    documents.

    References
    ----------
    .. [1] Nguyen, Fu & Wu (2022), IEEE Trans. Signal Processing 70, Section V-B (anchor words by MERIT).
    .. [2] Arora et al. (2013), ICML (anchor words).
    .. [3] Xu, Liu & Gong (2003), SIGIR (balanced documents: NMF-NCW).
    .. [4] Newman & Girvan (2004), Physical Review E 69, 026113 (modularity).

    Examples
    --------
    >>> from nonneg.applications import TopicModel
    >>> texts = ["cat dog cat", "dog cat pet", "bond stock", "stock market bond", "pet dog", "market stock"]
    >>> model = TopicModel(2, random_state=0).fit(texts)
    >>> sorted(sorted(words) for words in model.top_words(3))
    [['bond', 'market', 'stock'], ['cat', 'dog', 'pet']]
    """

    n_topics: int | str | Sequence[int] | None = "auto"
    _: KW_ONLY
    method: str = "nmf"
    anchors: Sequence[Any] | None = None
    seed_words: Mapping[str, Sequence[Any]] | None = None
    min_documents: int = 10
    min_df: int = 2
    max_df: float = 1.0
    stop_words: Any = None
    vectorizer: Any = None
    vocabulary: Any = None
    tol: float | None = None
    max_iter: int | None = None
    method_params: dict[str, Any] | None = None
    random_state: Seed = None
    verbose: int = 0
    device: str | None = None
    n_jobs: int | None = None
    callback: Callable[[Progress], bool | None] | None = None
    checkpoint: str | PathLike[str] | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED_VALUES,
        "method": [str],
        "tol": [NOT_NEGATIVE, None],
        "max_iter": [*COUNT, None],
        "n_topics": [*COUNT, StrOptions({"auto"}), "array-like", None],
        "anchors": ["array-like", None],
        "seed_words": [dict, None],
        "min_documents": [Interval(Integral, 0, None, closed="left")],
        "min_df": COUNT,
        "max_df": [Interval(Real, 0, 1, closed="right")],
        "stop_words": [str, list, tuple, set, frozenset, None],
        "vectorizer": [object],
        "vocabulary": ["array-like", None],
    }

    _stored: ClassVar[Fields] = {
        "n_features_in_": int,
        "n_iter_": int,
        "_own_vectorizer": bool,
        "certificate_": Certificate,
        "components_": StoredArray("n_topics_", "n_features_in_"),
        "topic_proportions_": StoredArray("n_topics_"),
        "coherence_": StoredArray("n_topics_"),
        "npmi_": StoredArray("n_topics_"),
        "documents_per_topic_": StoredArray("n_topics_", kind="i"),
        "few_documents_": StoredArray("n_topics_", kind="b"),
        "selection_": dict | None,
        "word_indices_": StoredArray("number of words used", kind="i", below="n_features_in_"),
        "anchor_indices_": StoredArray("n_topics_", kind="i", below="n_features_in_", optional=True),
        "vocabulary_": Names("n_features_in_", optional=True),
        "feature_names_in_": Names("n_features_in_", optional=True),
        "topic_names_": list,
        "edits_": list,
        "_inverse": StoredArray("number of words used", optional=True),
        # The topics of the fit, by which documents are expressed, and after them the parts of split ones.
        "_base": StoredArray("rows of topics", "number of words used", nonnegative=True),
        "_stream": {
            Stream: {
                "sample": Sparse("csr", "documents of the sample", "n_features_in_", nonnegative=True),
                "n_seen": int,
                "next_fit": int,
            }
        },
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> TopicModel:
        """Find the topics.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            Texts, or counts of words; never modified. A sparse tensor is copied to host memory. Entries that
            are not whole numbers are taken for weights, such as TF-IDF, and used as they are.
        y : Any
            Ignored.

        Returns
        -------
        TopicModel
            The fitted estimator.
        """
        self.fit_transform(X)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Find the topics and return the topic proportions of the same documents.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            As for `fit`.
        y : Any
            Ignored.

        Returns
        -------
        array of shape (n_documents, n_topics)
            As `transform` returns it.
        """
        self.__dict__.pop("_stream", None)
        return self._fit_counts(self._read(X, reset=True))

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> TopicModel:
        """Continue with a batch of documents.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            The batch; never modified. New words of texts are added at the end of the vocabulary; counts have
            the same words in every batch. A `vectorizer` of your own keeps the words of the first batch.
        y : Any
            Ignored.

        Returns
        -------
        TopicModel
            Itself, ready for `transform`, `save` and the next batch. Topics keep their numbers and names.

        Notes
        -----
        A random sample of up to 10,000 of the documents so far is kept, and topics are found in it whenever
        the number of documents has grown by a quarter. After `fit`, whose documents are not kept, topics
        change when batches have as many documents as it had.
        """
        if any(edit["merged"] or edit["split"] for edit in getattr(self, "edits_", [])):
            raise UnsupportedError(
                "Topics were merged or split, and the next batch would undo that. Continue with the model "
                "from before the change, and edit its topics afterwards."
            )
        first = not hasattr(self, "components_")
        counts = self._read(X, reset=True) if first else self._read_batch(X)
        past = getattr(self, "_stream", None)
        if past is None:
            past = Stream(counts[:0], 0, 1 if first else int(self.documents_per_topic_.sum()))
        stream = past.extended(counts)
        if stream.n_seen >= stream.next_fit:
            self._fit_counts(stream.sample, again=not first)
            stream = replace(stream, next_fit=stream.n_seen + max(1, round(GROWTH * stream.n_seen)))
            streamed = Statement(
                "topics-streamed",
                f"Topics were found in {stream.sample.shape[0]} of {stream.n_seen} documents of a stream.",
                float(stream.n_seen), None, Verdict.NOT_VERIFIABLE,
            )  # fmt: skip
            self.certificate_: Certificate = self.certificate_.with_statements([streamed])
        self._stream = stream
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the topic proportions of documents, each on its own.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            Texts where the fit had texts, counts of the same words otherwise; never modified.

        Returns
        -------
        array of shape (n_documents, n_topics)
            Rows sum to one. A document without any word that is used, or that is in a topic, has a row of
            zeros; a warning counts such documents.
        """
        check_is_fitted(self, "components_")
        counts = self._read(X, reset=False)
        with threads(self.n_jobs):
            return self._proportions(self._used(counts), counts.dtype)

    def predict(self, X: Any) -> IntArray:
        """Return the topic with the largest proportion in each document.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            As for `transform`.

        Returns
        -------
        array of int of shape (n_documents,)
            -1 for documents whose proportions are zero.
        """
        proportions = self.transform(X)
        return np.where(proportions.sum(axis=1) > 0, np.argmax(proportions, axis=1), -1)

    def top_words(self, n: int = 10) -> list[list[Any]]:
        """Return the most important words of every topic.

        Parameters
        ----------
        n : int, default 10
            Maximum number of words; words of weight zero are left out.

        Returns
        -------
        list of list of str
            Largest weight first; columns (int) if words have no names.
        """
        check_is_fitted(self, "components_")
        best = top_words(self.components_, n)
        return [self._names(row[self.components_[topic, row] > 0]) for topic, row in enumerate(best)]

    def topic_labels(self) -> list[str]:
        """Return what to call the topics.

        Returns
        -------
        list of str
            The names of the topics, and the three top words of those without one.
        """
        words = [", ".join(map(str, top)) for top in self.top_words(3)]
        return [name or top for name, top in zip(self.topic_names_, words, strict=True)]

    def representative_documents(self, X: Any, n: int = 3) -> list[IntArray]:
        """Return the most representative documents of every topic.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            The documents to choose from.
        n : int, default 3
            Maximum number of documents per topic.

        Returns
        -------
        list of array of int
            Rows of X, the best first: by proportion times the square root of how many of the topic's words
            they contain, so that a long document ranks above a line with one of the words.
        """
        proportions, counts = self.transform(X), self._read(X, reset=False)
        strength = proportions * np.sqrt(np.asarray(counts @ self.topics_.T.astype(counts.dtype)))
        order = np.argsort(-strength, axis=0, kind="stable")[: checked_count("n", n)]
        return [order[proportions[order[:, at], at] > 0, at] for at in range(proportions.shape[1])]

    def hierarchy(self) -> FloatArray:
        """Return a tree over the topics, in which the nearest ones are joined first.

        Returns
        -------
        array of shape (n_topics - 1, 4)
            SciPy's linkage matrix, by Ward's criterion on rows of `components_` of unit length: which two are
            joined, at which distance (from 0 to 1.41, no word in common), and how many topics are below.
            `scipy.cluster.hierarchy.dendrogram` draws it.
        """
        check_is_fitted(self, "components_")
        # Distances that differ in their last digits only would depend on the machine.
        distances = np.round(pdist(unit_rows(self.components_.astype(np.float64))), 9)
        return linkage(distances, "ward") if len(distances) else np.empty((0, 4))

    def topic_groups(self, n_groups: int) -> list[list[int]]:
        """Return the groups of topics below a cut through the `hierarchy`.

        Parameters
        ----------
        n_groups : int
            Number of groups.

        Returns
        -------
        list of list of int
            The topics of every group, as `merge_topics` accepts them.
        """
        tree = self.hierarchy()
        if n_groups not in range(1, self.n_topics_ + 1):
            raise InvalidParameterError(
                f"n_groups must be an integer from 1 to the number of topics, {self.n_topics_}; got "
                f"{n_groups!r}."
            )
        groups = cut_tree(tree, n_clusters=n_groups).ravel() if len(tree) else np.zeros(1)
        return sorted(np.flatnonzero(groups == at).tolist() for at in np.unique(groups))

    def over_time(self, X: Any, times: Any, *, unit: str | None = None) -> TopicsOverTime:
        """Return the mean topic proportions of documents by period.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            The documents.
        times : sequence of date, datetime, datetime64, str, int or float, of length n_documents
            When each was written: dates, texts that pandas reads, such as "2021-12-31", "31.12.2021",
            "December 31, 2021" or the date of an e-mail, years, or seconds since 1970. An entry that is empty
            or not a date is missing: its document is left out and counted.
        unit : {"hour", "day", "week", "month", "year"}, optional
            The length of a period. By default the shortest one with a maximum of 120 periods and a mean of
            at least 5 documents per period.

        Returns
        -------
        TopicsOverTime
            Proportions by period, and numbers of documents.
        """
        return topics_over_time(self.transform(X), times, self.topic_labels(), unit)

    def merge_topics(self, topics: Sequence[Any], X: Any) -> TopicModel:
        """Return a model in which several topics are one.

        Parameters
        ----------
        topics : sequence of int or str, or sequence of such sequences
            The topics to merge, by number or name, such as ``[3, 7]``; or several groups, such as
            ``[[3, 7], [0, 5]]``, as `topic_groups` returns them.
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            The documents of the fit, from which proportions, coherence and certificate are recomputed.

        Returns
        -------
        TopicModel
            A new model; this one is unchanged. The proportion of a merged topic in any document is the sum of
            the original proportions, and its words are those of the merged topics, weighted by their
            proportions. Topics are numbered by proportion again; ``edits_[-1]["mapping"]`` has the new number
            of every old one.
        """
        kinds = list | tuple | set | range | np.ndarray
        if not isinstance(topics, kinds):
            raise InvalidParameterError(f"topics must be a list such as [3, 7], got {topics!r}.")
        groups = topics if any(isinstance(one, kinds) for one in topics) else [topics]
        return edited(self, X, merge=[list(one) if isinstance(one, kinds) else [one] for one in groups])

    def split_topic(self, topic: Any, X: Any, into: int = 2) -> TopicModel:
        """Return a model in which one topic is divided into several.

        Parameters
        ----------
        topic : int or str
            The topic, by number or name.
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            The documents of the fit. The method of the model is applied to those of them in which this topic
            has the largest proportion.
        into : int, default 2
            Number of topics that take its place.

        Returns
        -------
        TopicModel
            A new model; this one is unchanged. The proportions of the new topics in a document add up to the
            proportion that the topic had; those of the other topics do not change. Topics are numbered by
            proportion again; ``edits_[-1]["mapping"]`` has the new numbers of every old one.
        """
        return edited(self, X, split=[(topic, into)])

    def rename_topics(self, names: Mapping[Any, str | None]) -> TopicModel:
        """Return a model with other topic names.

        Parameters
        ----------
        names : dict of int or str to str or None
            New names by number or current name, such as ``{0: "sports"}``; None removes a name.

        Returns
        -------
        TopicModel
            A new model with these `topic_names_`; this one is unchanged.
        """
        if not isinstance(names, Mapping):
            raise InvalidParameterError(f"names must be a dict such as {{0: 'sports'}}, got {names!r}.")
        return edited(self, None, rename=names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.positive_only = True
        return tags

    def _fit_counts(self, counts: Any, *, again: bool = False) -> FloatArray:
        """Find topics, `again` as many and in the same order as before; return the proportions."""
        name = METHODS.name_of(self.method)
        if self.anchors is not None and name in ("nmf", "kl"):
            raise UnsupportedError(
                f"method={name!r} does not use anchor words. Choose an anchor method, such as 'spa', or pass "
                "seed_words to 'nmf'."
            )
        if self.seed_words is not None and name != "nmf":
            raise UnsupportedError(f"method={name!r} does not use seed words; 'nmf' does.")
        params = method_parameters(METHODS, name, self, "device")
        candidates = [self.n_topics_] if again else self._candidates()
        least = min(candidates or [2])
        words = used_words(counts, self.min_df, float(self.max_df))
        used = sp.csr_array(counts[:, words]).astype(np.float64)
        if least > min(used.shape):
            raise InvalidParameterError(
                f"n_topics={least} is more than the {used.shape[0]} documents or the {used.shape[1]} "
                "words used. Ask for fewer topics, or lower min_df."
            )
        limits = f"min_df={self.min_df}, max_df={self.max_df:g}; words of all documents are not used"
        vocabulary = Vocabulary(self.vocabulary_, words, document_frequencies(counts), limits)
        places = None if self.anchors is None else vocabulary.anchors(self.anchors, least)
        seeds: dict[str, IntArray] = {}
        if self.seed_words is not None:
            seeds = vocabulary.seeds(self.seed_words, max(candidates or CANDIDATES))
        weighted = bool((counts.data != np.floor(counts.data)).any())
        self._inverse = None if weighted else inverse_frequencies(used)
        task = Task(
            used, self._inverse, least, anchors=places, seeds=tuple(seeds.values()), params=params,
            rng=self.random_state, n_jobs=self.n_jobs, verbose=self.verbose,
        )  # fmt: skip
        self.selection_ = None
        with threads(self.n_jobs):
            if candidates is None or len(candidates) > 1:
                self.selection_ = compare_numbers(
                    task, name, candidates, min_documents=self.min_documents, verbose=int(self.verbose)
                )
                task = replace(task, n_topics=self.selection_["n_topics"])
            topics = METHODS[name].run(task)
            names: list[str | None] = [*seeds, *[None] * (task.n_topics - len(seeds))]
            statements = [WEIGHTED] if weighted else []
            if seeds:
                statements.append(seed_statement(topics.components, seeds, self._names(words)))
            components, anchors = topics.components, topics.anchors
            if again:
                alike = self.components_[:, words] @ unit_rows(components).T
                order = linear_sum_assignment(alike, maximize=True)[1]
                components, names = components[order], self.topic_names_
                anchors = None if anchors is None else anchors[order]
            self.word_indices_ = words
            self._base = components
            self.edits_: list[dict[str, Any]] = self.edits_ if again else []
            proportions = self._proportions(used, counts.dtype)
        self.n_iter_, self.result_ = topics.n_iter, topics.result
        # Topics of given anchors are in the order of these.
        order = self._describe(
            used, proportions, components, anchors, topics.certificate.with_statements(statements),
            names=names, in_order=again or places is not None,
        )  # fmt: skip
        self._base = components[order]
        return proportions[:, order]

    def _candidates(self) -> list[int] | None:
        """Return the numbers of topics to choose from; None for the usual ones."""
        if self.anchors is not None and not isinstance(self.n_topics, Integral):
            return [len(self.anchors)]
        if self.n_topics is None or isinstance(self.n_topics, str):
            return None
        numbers: list[int] = np.ravel(self.n_topics).tolist()
        if not numbers or not all(is_count(k) for k in numbers):
            raise InvalidParameterError(
                "n_topics must be an integer of at least 1, 'auto', or a sequence of such integers to choose "
                f"from; got {self.n_topics!r}."
            )
        return numbers

    def _read(self, X: Any, *, reset: bool) -> Any:
        """Return counts, and set or compare what is known of the words."""
        texts = are_texts(X)
        if reset:
            self.vectorizer_: Any = make_vectorizer(self.vectorizer, self.stop_words) if texts else None
            self._own_vectorizer = texts and self.vectorizer is None
        elif texts != (self.vectorizer_ is not None):
            fitted = "counts of words: pass counts of the same words" if texts else "texts: pass texts"
            raise InvalidParameterError(f"The model was fitted to {fitted}.")
        if texts:
            counts = counted_texts(self.vectorizer_, X, fit=reset)
        else:
            counts = checked_counts(X)
            with as_data_errors():
                validate_data(self, X, reset=reset, skip_check_array=True)  # number and names of the columns
        if reset:
            self.n_features_in_ = counts.shape[1]
            self.vocabulary_ = self._column_names(texts)
        return counts

    def _column_names(self, texts: bool) -> Any:
        if not texts:
            names = getattr(self, "feature_names_in_", None) if self.vocabulary is None else self.vocabulary
        elif self.vocabulary is None:
            self.__dict__.pop("feature_names_in_", None)
            names = self.vectorizer_.get_feature_names_out()
        else:
            raise InvalidParameterError(
                "vocabulary names the columns of counts; texts bring their own words. Leave it out, or give "
                "it to a vectorizer."
            )
        if names is not None and len(names) != self.n_features_in_:
            raise ShapeError(
                f"vocabulary has {len(names)} words for {self.n_features_in_} columns. Pass one for each."
            )
        return None if names is None else np.asarray([str(name) for name in names], dtype=object)

    def _read_batch(self, X: Any) -> Any:
        """Return counts of a further batch; new words of texts are added at the end of the vocabulary."""
        if are_texts(X) and self._own_vectorizer:
            analyze = self.vectorizer_.build_analyzer()
            new = sorted({word for text in X for word in analyze(text)} - set(self.vocabulary_))
            if new:
                self.vocabulary_ = np.concatenate([self.vocabulary_, np.asarray(new, dtype=object)])
                self.n_features_in_ = len(self.vocabulary_)
                self.vectorizer_ = make_vectorizer(None, self.stop_words)
                self.vectorizer_.set_params(vocabulary=list(self.vocabulary_))
                wider = ((0, 0), (0, len(new)))
                self.components_: FloatArray = np.pad(self.components_, wider)
                self.topics_: FloatArray = np.pad(self.topics_, wider)
        return self._read(X, reset=False)

    def _used(self, counts: Any) -> Any:
        return sp.csr_array(counts[:, self.word_indices_]).astype(np.float64)

    def _names(self, columns: IntArray) -> list[Any]:
        if self.vocabulary_ is None:
            return [int(column) for column in columns]
        return [str(self.vocabulary_[column]) for column in columns]

    def _proportions(self, used: Any, dtype: Any) -> FloatArray:
        """Return topic proportions, which sum to one, and warn of documents that have none."""
        proportions = rows_of_sum_one(self._topic_weights(used))
        n_empty = int(np.sum(~(proportions.sum(axis=1) > 0)))
        if n_empty:
            warn_user(
                f"Documents with no word of a topic: {n_empty:,} of {len(proportions):,}. Their topic "
                "proportions are zero.",
                DataChangedWarning,
            )
        return proportions.astype(dtype)

    def _topic_weights(self, used: Any) -> FloatArray:
        """Return how much of each topic is in each document, before normalization."""
        encoding = METHODS[METHODS.name_of(self.method)].encoding

        def weights_of(topics: FloatArray) -> FloatArray:
            return np.maximum(document_weights(used, topics, self._inverse, encoding), 0.0)

        n_rows = len(self.edits_[0]["mapping"]) if self.edits_ else len(self._base)
        weights = weights_of(self._base[:n_rows])
        for edit in self.edits_:
            # The weight of a merged topic is the sum of theirs; that of a split one is divided by its parts.
            after = np.zeros((len(weights), len(self._base)))
            for topic, places in enumerate(edit["mapping"]):
                parts: FloatArray = np.ones((len(weights), 1))
                if len(places) > 1:
                    parts = weights_of(self._base[n_rows : n_rows + len(places)])
                    parts[~(parts.sum(axis=1) > 0)] = 1.0
                    n_rows += len(places)
                after[:, places] += weights[:, [topic]] * rows_of_sum_one(parts)
            weights = after[:, : 1 + max(chain(*edit["mapping"]))]
        return weights

    def _describe(
        self,
        used: Any,
        proportions: FloatArray,
        components: FloatArray,
        anchors: IntArray | None,
        certificate: Certificate,
        *,
        names: Sequence[str | None],
        in_order: bool = False,
    ) -> IntArray:
        """Set what follows from topics and their proportions in documents; return ``order[new] = old``."""
        # Fits and edits end here. Topics are numbered by their share, except where the user chose the order.
        # Shares that differ in their last digits only would depend on the machine.
        shares = proportions.sum(axis=0) / (float(proportions.sum()) or 1.0)
        order = np.arange(len(components)) if in_order else np.argsort(-np.round(shares, 9), kind="stable")
        components, proportions, shares = components[order], proportions[:, order], shares[order]
        anchors = None if anchors is None else anchors[order]
        words = self.word_indices_
        self.components_ = np.zeros((len(components), self.n_features_in_), dtype=proportions.dtype)
        self.components_[:, words] = components
        self.anchor_indices_ = None if anchors is None else words[anchors]
        self.topic_names_: list[str | None] = [names[at] for at in order.tolist()]
        self.topic_proportions_ = shares
        top = top_words(components, N_TOP_WORDS)
        self.coherence_ = umass_coherence(used, top)
        self.npmi_ = topic_npmi(used, components)
        self.documents_per_topic_: IntArray = np.bincount(
            proportions.argmax(axis=1)[proportions.sum(axis=1) > 0], minlength=len(components)
        )
        self._set_derived()
        self.few_documents_ = self.documents_per_topic_ < max(1, self.min_documents)
        statements = topic_statements(
            rows_of_sum_one(components), top, anchors, self.anchor_words_ or [],
            len(proportions) - int(self.documents_per_topic_.sum()), self.documents_per_topic_,
            max(1, self.min_documents),
        )  # fmt: skip
        self.certificate_ = certificate.with_statements(statements)
        return order

    def _set_derived(self) -> None:
        self.n_topics_: int = len(self.components_)
        self._n_features_out = self.n_topics_
        self.topics_ = rows_of_sum_one(self.components_)
        self.anchor_words_: list[Any] | None = (
            None if self.anchor_indices_ is None else self._names(self.anchor_indices_)
        )

    def _complete_loaded(self) -> None:
        good = all(name is None or isinstance(name, str) for name in self.topic_names_)
        try:
            one = self._topic_weights(sp.csr_array((1, len(self.word_indices_))))
            places = [[0] * len(self.edits_[0]["mapping"])] if self.edits_ else [[0] * len(self._base)]
            places += [numbers for edit in self.edits_ for numbers in edit["mapping"] if len(numbers) > 1]
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise damaged("the changes of the topics do not match them") from error
        good = good and one.shape[1] == len(self.topic_names_) == len(self.components_)
        if not good or sum(map(len, places)) != len(self._base):
            raise damaged("the topics do not match their names or their changes")
        self.vectorizer_ = make_vectorizer(None, self.stop_words) if self._own_vectorizer else None
        if self.vectorizer_ is not None:
            self.vectorizer_.set_params(vocabulary=list(self.vocabulary_))
        self._set_derived()
