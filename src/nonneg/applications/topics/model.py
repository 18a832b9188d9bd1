"""TopicModel: what documents are about, with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.method_entries import iteration_params
from nonneg.applications.topics.documents import used_words
from nonneg.applications.topics.duplicates import first_copies
from nonneg.applications.topics.given_anchors import anchor_places
from nonneg.applications.topics.methods import METHODS, Task
from nonneg.applications.topics.number_of_topics import CANDIDATES, compare_numbers
from nonneg.applications.topics.seeds import seed_places, seed_statement
from nonneg.applications.topics.streaming import StreamedTopics
from nonneg.applications.topics.term_weights import inverse_frequencies
from nonneg.exceptions import InvalidParameterError, UnsupportedError
from nonneg.iteration import Progress


class TopicModel(StreamedTopics):
    """Topics of documents: distributions over words, and the proportion of each topic in every document.

    Parameters
    ----------
    n_topics : int, "auto" or sequence of int, default 10
        The number of topics. "auto" compares numbers from 2 to 50, a sequence those in it, and selects the
        one that divides the documents most clearly: with the largest modularity [5]_ (see `selection_`).
    method : str, default "nmf"
        "nmf" (default): least squares on TF-IDF weights, balanced so that large subjects do not take all
        topics. "kl": Kullback-Leibler divergence on counts. "lda": scikit-learn's variational latent
        Dirichlet allocation. Or anchor words, by a method in `nonneg.separable.METHODS` ("merit", "spa",
        "snpa", "xray", "fast-anchor", "fast-gradient", ...) or by "merit-0", MERIT without its row sparsity.
    anchors : list of str or int, optional
        Your own anchor words, one per topic. Anchor methods use them instead of searching, "nmf" uses them
        as its initialization.
    seed_words : dict of str to list of str or int, optional
        "nmf": words that guide topics, by the name of the topic, such as ``{"sports": ["game", "team"]}``.
        These topics have these names (see `topic_names_`); there may be more topics than names. A warning
        names the words that are not in the vocabulary or not used.
    balance : bool, default True
        "nmf": whether documents are balanced: each is divided by the root of the sum of its similarities to
        all others; otherwise each has unit length.
    min_documents : float, optional
        "nmf" with `balance`: the minimum number of documents of a topic. Smaller groups get less weight, a
        group of g copies ``g / (g + min_documents)``; if fewer documents have a topic as their main topic,
        they are set aside, and topics are found without them. None is a tenth of an average topic,
        ``n_documents / (10 n_topics)``; 0 for the published weights [3]_, where a group of any size is a
        topic.
    duplicates : {"merge", "keep"}, default "merge"
        "merge": of documents that share 90% of their words (among those used, ten or more) only the first is
        used in the search for topics, and the certificate counts the others. All get topic proportions.
    min_df : int, optional
        Words in fewer documents are not used. They stay in the vocabulary, with weight zero. None for a tenth
        of the root of the number of documents, and at least 2.
    max_df : float, default 1.0
        Words in more than this fraction of the documents are not used; words in all documents never are.
    stop_words : None, "english" or list of str
        Texts: words that are not counted.
    vectorizer : scikit-learn vectorizer, optional
        Texts: counts the words, instead of a `CountVectorizer`.
    vocabulary : array-like of str, optional
        Counts: the words, one per column. A data frame brings its own.
    tol, max_iter : float, int, optional
        When the iterations stop; None for the defaults of the method. "lda" has no `tol`; methods that pick
        one anchor word at a time have neither.
    method_params : dict, optional
        Further parameters of the method: of `select_anchors`, `NMF` (such as `init` and `n_init`) or
        `LatentDirichletAllocation`.
    random_state : int, RandomState, Generator or None
        The seed of methods that draw random numbers.
    verbose : int, default 0
        1 shows progress.
    half_life : float, optional
        `partial_fit`: the number of documents after which the past counts half. None (default) never forgets.
    device : {None, "cpu", "auto", "cuda", "cuda:1", ...}, default None
        "nmf" and "kl": where the counts are factorized, see `nonneg.NMF`.
    n_jobs : int or None
        Number of threads; None uses all cores.
    callback : callable, optional
        Called with a `Progress` after each iteration ("nmf", "kl" and convex anchor methods); True stops.
    checkpoint : str or path, optional
        A folder from which an interrupted run ("nmf", "kl", "merit") resumes.

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
        Topics that rest on few documents: on fewer than a fifth of an average topic, copies not counted.
    set_aside_ : array of int
        Documents of the fit without which topics were found, because their groups are too small (see
        `min_documents`).
    duplicate_of_ : array of int of shape (n_documents,)
        The first document that each document of the fit is a copy of; itself for most.
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
        of documents with the same main topic in the graph of similar documents, `stability`, the agreement of
        the top words with those found in four fifths of the documents [4]_, its `stability_spread` over
        samples, and the mean `npmi`; `n_topics`, the `range` of numbers that are nearly as good, and the
        `reason`. None if the number was given.
    vocabulary_ : array of str or None
        The words by column; None for counts without names.
    word_indices_ : array of int
        The columns of the words that are used.
    n_iter_ : int
        Number of iterations, or of anchor words picked.
    certificate_ : Certificate
        What is known about the result.
    result_ : SelectionResult, NMF or LatentDirichletAllocation
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
    documents (see `balance`).

    References
    ----------
    .. [1] Nguyen, Fu & Wu (2022), IEEE Trans. Signal Processing 70, Section V-B (anchor words by MERIT).
    .. [2] Arora et al. (2013), ICML (anchor words).
    .. [3] Xu, Liu & Gong (2003), SIGIR (balanced documents: NMF-NCW).
    .. [4] Greene, O'Callaghan & Cunningham (2014), ECML PKDD (stability of topics).
    .. [5] Newman & Girvan (2004), Physical Review E 69, 026113 (modularity).

    Examples
    --------
    >>> from nonneg.applications import TopicModel
    >>> texts = ["cat dog cat", "dog cat pet", "bond stock", "stock market bond", "pet dog", "market stock"]
    >>> model = TopicModel(2, random_state=0).fit(texts)
    >>> sorted(sorted(words) for words in model.top_words(3))
    [['bond', 'market', 'stock'], ['cat', 'dog', 'pet']]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_topics": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), "array-like"],
        # Names are looked up in the registries, which know the near ones.
        "method": [str],
        "anchors": ["array-like", None],
        "seed_words": [dict, None],
        "balance": ["boolean"],
        "min_documents": [Interval(Real, 0, None, closed="left"), None],
        "duplicates": [StrOptions({"merge", "keep"})],
        "min_df": [Interval(Integral, 1, None, closed="left"), None],
        "max_df": [Interval(Real, 0, 1, closed="right")],
        "stop_words": [str, list, tuple, set, frozenset, None],
        "vectorizer": [object],
        "vocabulary": ["array-like", None],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "method_params": [dict, None],
        "random_state": ["random_state", np.random.Generator, np.random.SeedSequence],
        "verbose": ["verbose"],
        "half_life": [Interval(Real, 0, None, closed="neither"), None],
        "device": [str, None],
        "n_jobs": [Integral, None],
        "callback": [callable, None],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        n_topics: int | str | Sequence[int] = 10,
        *,
        method: str = "nmf",
        anchors: Sequence[Any] | None = None,
        seed_words: Mapping[str, Sequence[Any]] | None = None,
        balance: bool = True,
        min_documents: float | None = None,
        duplicates: str = "merge",
        min_df: int | None = None,
        max_df: float = 1.0,
        stop_words: Any = None,
        vectorizer: Any = None,
        vocabulary: Any = None,
        tol: float | None = None,
        max_iter: int | None = None,
        method_params: dict[str, Any] | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        half_life: float | None = None,
        device: str | None = None,
        n_jobs: int | None = None,
        callback: Callable[[Progress], bool | None] | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.n_topics = n_topics
        self.method = method
        self.anchors = anchors
        self.seed_words = seed_words
        self.balance = balance
        self.min_documents = min_documents
        self.duplicates = duplicates
        self.min_df = min_df
        self.max_df = max_df
        self.stop_words = stop_words
        self.vectorizer = vectorizer
        self.vocabulary = vocabulary
        self.tol = tol
        self.max_iter = max_iter
        self.method_params = method_params
        self.random_state = random_state
        self.verbose = verbose
        self.half_life = half_life
        self.device = device
        self.n_jobs = n_jobs
        self.callback = callback
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> TopicModel:
        """Find the topics.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            Texts, or counts of words; never modified. A sparse tensor is copied to host memory.
        y : Any
            Ignored.

        Returns
        -------
        TopicModel
            The fitted estimator.
        """
        self._fit(X)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Find the topics and return the topic proportions of the same documents.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            Texts, or counts of words; never modified. A sparse tensor is copied to host memory.
        y : Any
            Ignored.

        Returns
        -------
        array of shape (n_documents, n_topics)
            As `transform` returns it.
        """
        return self._fit(X)

    def _fit(self, X: Any) -> FloatArray:
        self.__dict__.pop("_stream", None)
        return self._fit_counts(self._read(X, reset=True))

    def _fit_counts(self, counts: Any) -> FloatArray:
        method = METHODS.name_of(self.method)
        params = dict(self.method_params or {})
        METHODS.check_options(method, params)
        params |= iteration_params(
            METHODS,
            method,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=self.callback,
            checkpoint=self.checkpoint,
            device=None if self.device == "auto" and "device" not in METHODS[method].shared else self.device,
        )
        if self.anchors is not None and not METHODS[method].takes_anchors:
            raise UnsupportedError(f"method={method!r} does not use anchor words. Choose 'nmf' or 'spa'.")
        if self.seed_words is not None and not METHODS[method].takes_seeds:
            raise UnsupportedError(f"method={method!r} does not use seed words; 'nmf' does.")
        if self.seed_words is not None and self.anchors is not None:
            raise InvalidParameterError("Give either anchors or seed_words.")
        candidates = self._candidates()
        n_topics = min(candidates or [2])
        words, distinct = self._words_and_documents(counts, n_topics)
        used = sp.csr_array(counts[:, words]).astype(np.float64)
        if n_topics > min(used.shape):
            raise InvalidParameterError(
                f"n_topics={n_topics} is more than the {used.shape[0]} documents or the {used.shape[1]} "
                "words used. Ask for fewer topics, or lower min_df."
            )
        places = None
        if self.anchors is not None:
            places = anchor_places(self.anchors, n_topics, self.vocabulary_, words, counts)
        seeds: dict[str, IntArray] = {}
        if self.seed_words is not None:
            most = max(candidates or CANDIDATES)
            seeds = seed_places(self.seed_words, most, self.vocabulary_, words, counts)
        once = used if len(distinct) == used.shape[0] else sp.csr_array(used[distinct])
        self._inverse = inverse_frequencies(once)
        task = Task(
            once, self._inverse, n_topics, anchors=places, seeds=tuple(seeds.values()), balance=self.balance,
            min_documents=self.min_documents, params=params, rng=self.random_state, n_jobs=self.n_jobs,
            verbose=self.verbose,
        )  # fmt: skip
        self.selection_ = None
        with threads(self.n_jobs):
            if candidates is None or len(candidates) > 1:
                compared = compare_numbers(
                    task, method, METHODS[method].run, candidates, verbose=int(self.verbose)
                )
                task, self.selection_ = replace(task, n_topics=compared.n_topics), compared.as_dict()
            found = METHODS[method].run(task)
            self.word_indices_ = words
            self._encode = found.encode
            proportions = self._proportions(used, counts.dtype)
        self.n_iter_, self.result_, self.edits_ = found.n_iter, found.result, []
        self.set_aside_ = distinct[[] if found.set_aside is None else found.set_aside]
        certificate, names = found.certificate, [*seeds, *[None] * (task.n_topics - len(seeds))]
        if seeds:
            certificate = certificate.with_statements([seed_statement(found.components, seeds)])
        # Topics of given anchors are in the order of these.
        order = self._describe(
            used, proportions, found.components, found.anchors, certificate, names=names,
            in_order=places is not None,
        )  # fmt: skip
        return proportions[:, order]

    def _candidates(self) -> list[int] | None:
        """Return the numbers of topics to choose from; None for the usual ones."""
        if isinstance(self.n_topics, Integral):
            return [int(self.n_topics)]
        if self.anchors is not None:
            return [len(self.anchors)]
        if isinstance(self.n_topics, str):
            return None
        found = [int(k) for k in np.ravel(self.n_topics)]
        if not found or min(found) < 1 or found != np.ravel(self.n_topics).tolist():
            raise InvalidParameterError(
                "n_topics must be an integer of at least 1, 'auto', or a sequence of such integers to choose "
                f"from; got {self.n_topics!r}."
            )
        return found

    def _words_and_documents(self, counts: Any, n_topics: int) -> tuple[IntArray, IntArray]:
        """Return the words that are used, and the documents without copies of others."""
        everything = np.arange(counts.shape[0])
        words = used_words(counts, self.min_df, float(self.max_df))
        self.duplicate_of_ = everything
        if self.duplicates == "keep":
            return words, everything
        first = first_copies(counts[:, words])
        distinct = np.flatnonzero(first == everything)
        if len(distinct) < max(2, n_topics) or len(distinct) == len(everything):
            return words, everything
        self.duplicate_of_ = first
        # Words of the copies alone are rare words.
        return used_words(counts[distinct], self.min_df, float(self.max_df)), distinct
