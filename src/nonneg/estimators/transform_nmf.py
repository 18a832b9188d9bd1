"""TransformNMF: an orthogonal transform learned together with a factorization of its spectrogram."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from nonneg._arrays import is_non_numpy, to_device, to_float64, to_numpy
from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import Array
from nonneg.data.annotated import frame_labels, is_anndata
from nonneg.data.door import Request, refuse_unsupported_types, wrap
from nonneg.estimators._base import Callback, Checkpoint, FactorizingEstimator, check_n_features
from nonneg.estimators.saving import Fields, StoredArray, damaged
from nonneg.exceptions import DataTypeError, ShapeError, as_data_errors
from nonneg.transforms import learn_transform
from nonneg.transforms.covariances import checked_frames
from nonneg.transforms.encoding import (
    automatic_eps0,
    averaged_frames,
    coefficient_variances,
    encode,
    mean_objectives,
)
from nonneg.transforms.options import METHODS
from nonneg.transforms.selection import TransformChoice, learn_frames


@dataclass(eq=False, repr=False)
class TransformNMF(FactorizingEstimator):
    r"""NMF of a spectrogram whose transform is learned: TL-NMF and JD+NMF of Zhang, Soubies and Fevotte.

    Frames y of a signal have coefficients :math:`\Phi y` in an orthogonal transform; their variances are
    modeled as a product of activations and templates. TL-NMF finds the transform and both factors together,
    by minimizing the negative log-likelihood of a Gaussian composite model; JD+NMF first makes the frame
    covariances as diagonal as possible, and then factorizes.

    Parameters
    ----------
    n_components : int, default 2
        The number of templates.
    method : {"auto", "tl", "jd", "dct"}, default "auto"
        "tl" learns all together, "jd" the transform first, "dct" keeps the discrete cosine transform
        (Itakura-Saito NMF). "auto" uses the transform of "tl" if it explains held-out frames better than the
        DCT beyond sampling error (see `choice_`).
    eps0 : float or "auto", default "auto"
        Added to variances and model: power below which differences hardly count. "auto" is a tenth of the
        mean square of the frames.
    {function: n_init}
    init : tuple, array, {"random", "dct", "jd"} or None
        An initialization (transform, components, activations), or a transform; random ones; the discrete
        cosine transform, or a joint diagonalizer of the frames' covariances, with random factors. None is
        "dct" for "auto", and otherwise "random".
    {function: cross_initialize, max_iter, tol}
    average_frames : int, default 1
        Estimate variances by a moving average over this number of neighboring frames, for a single
        realization.
    {function: method_params}
    {random_state, verbose, n_jobs, callback, checkpoint}

    Attributes
    ----------
    transform_ : array of shape (frame_length, frame_length)
        Orthogonal; its rows are atoms.
    components_ : array of shape (n_components, frame_length)
        Templates: variances of the coefficients, each row with sum 1.
    activations_ : array of shape (n_frames, n_components)
        Activations at the end of the fit.
    {n_components_}
    eps0_ : float
        What was added.
    reconstruction_err_ : float
        The root of twice the Itakura-Saito divergence of the variances from the model.
    n_iter_ : int
        Iterations of the best restart.
    {history_, certificate_}
    result_ : TransformResult
        The result of `learn_transform`.
    choice_ : TransformChoice
        Which transform "auto" chose, and C per coefficient of the held-out frames for each candidate.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    nonneg.learn_transform : The function behind it.
    nonneg.applications.SourceSeparation : From recordings to sources.

    Notes
    -----
    X has the shape (n_frames, frame_length), of any sign. Realizations of the same frames, (n_realizations,
    n_frames, frame_length), enter only through the covariances of the frames. `transform` returns the
    activations of each frame on its own (with `average_frames`, together with its neighbors): the minimizer
    of the divergence that is found from equal ones. There may be others, such as `activations_`.
    `inverse_transform` returns the variances that activations represent, the product with `components_`,
    which do not determine a signal: `synthesize` takes the coefficients of `analyze`. `fit` takes no
    `sample_weight`: the objective counts every frame once.

    References
    ----------
    .. [1] Zhang, Soubies & Fevotte, Leveraging joint-diagonalization in transform-learning NMF.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg import TransformNMF
    >>> frames = np.random.default_rng(0).standard_normal((50, 10))
    >>> model = TransformNMF(2, max_iter=20, random_state=0).fit(frames)
    >>> model.transform_.shape, model.activations_.shape
    ((10, 10), (50, 2))
    >>> model.choice_.name  # no transform explains noise better than the cosine transform
    'dct'
    """

    n_components: int = 2
    _: KW_ONLY
    method: str = "auto"
    eps0: float | str = "auto"
    n_init: int = 1
    init: Any = None
    cross_initialize: bool = False
    max_iter: int = 200
    tol: float = 1e-7
    average_frames: int = 1
    method_params: dict[str, Any] | None = None
    random_state: Seed = None
    verbose: int = 0
    n_jobs: int | None = None
    callback: Callback = None
    checkpoint: Checkpoint = None

    _function: ClassVar[Any] = learn_transform
    _stored: ClassVar[Fields] = {
        **FactorizingEstimator._stored,
        "transform_": StoredArray("n_features_in_", "n_features_in_", finite=True),
        "activations_": StoredArray("n_frames", "n_components_", nonnegative=True),
        "eps0_": float,
        "choice_": TransformChoice,
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "method": [StrOptions({"auto", *METHODS})],
        "eps0": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "init": [StrOptions({"random", "jd", "dct"}), "array-like", tuple, None],
    }

    def _accepts_signed(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.three_d_array = True
        return tags

    def _fit(self, X: Any) -> Array:
        Y = input_frames(self, X, reset=True)
        eps0 = automatic_eps0(Y) if isinstance(self.eps0, str) else self.eps0
        params = self.get_params(deep=False) | {"eps0": eps0, "rng": self.random_state}
        del params["random_state"], params["n_jobs"]
        with threads(self.n_jobs):
            result, choice = learn_frames(Y, **params)
        self._name(result, result.H)
        self.result_, self.transform_, self.eps0_ = result, result.transform, eps0
        self.activations_ = result.W
        self.reconstruction_err_ = math.sqrt(2 * max(result.divergence or 0.0, 0.0))
        self.__dict__.pop("choice_", None)
        if choice is not None:
            self.choice_ = choice
        return Y

    def _input(self, X: Any) -> Any:
        return input_frames(self, X, reset=False)

    def _encoded(self, fitted: Array) -> Array:
        with threads(self.n_jobs):
            averaged = averaged_frames(fitted, self.average_frames)
            V = coefficient_variances(averaged, self._like(self.transform_, fitted))
            return encode(V, self._like(self.components_, fitted), self.eps0_)

    def score(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> float:
        """Return how likely frames are under the model: minus the mean of C over the coefficients.

        Parameters
        ----------
        X : array-like or tensor
            The frames, as in `fit`.
        {y}
        sample_weight : array of shape (n_frames,), optional
            Weights of the frames in the mean.

        Returns
        -------
        float
            Twice the mean log-likelihood of a coefficient, up to a constant: larger is better. Models with
            different transforms can be compared, but not models with different `eps0_`. Activations are those
            that `transform` finds.
        """
        check_is_fitted(self)
        Y = self._input(X)
        W = self._encoded(Y)
        with threads(self.n_jobs):
            # The frames' own variances, whatever neighbors the activations were averaged over.
            V = coefficient_variances(Y, self._like(self.transform_, Y))
            rows = to_float64(mean_objectives(V, W, self._like(self.components_, Y), self.eps0_))
        who = type(self).__name__
        return -wrap(rows[:, None], Request(sample_weight=sample_weight, signed=True, who=who)).mean()

    def analyze(self, X: Any) -> Any:
        """Return the coefficients of frames in the transform.

        Parameters
        ----------
        X : array-like or tensor
            The frames, as in `fit`.

        Returns
        -------
        array of the shape of X
            Coefficient m of a frame is its product with atom m.
        """
        check_is_fitted(self)
        Y = self._input(X)
        coefficients = Y @ self._like(self.transform_, Y).T
        return coefficients[0] if (getattr(X, "ndim", None) or np.asarray(X).ndim) == 2 else coefficients

    def synthesize(self, coefficients: Any) -> Any:
        """Return the frames that coefficients represent: the inverse of `analyze`.

        Parameters
        ----------
        coefficients : array of shape (..., frame_length)
            As `analyze` returns them, masked or not.

        Returns
        -------
        array of the same shape
            Frames.
        """
        check_is_fitted(self)
        if not is_non_numpy(coefficients):
            coefficients = np.asarray(coefficients)
        if len(coefficients.shape) < 1 or coefficients.shape[-1] != self.n_features_in_:
            raise ShapeError(
                f"Expected coefficients of shape (..., {self.n_features_in_}), one for each atom, got "
                f"{tuple(coefficients.shape)}."
            )
        return coefficients @ self._like(self.transform_, coefficients)

    def _like(self, array: Array, X: Array) -> Array:
        return to_device(array, X, X.dtype) if is_non_numpy(X) else to_numpy(array)

    def _complete_loaded(self) -> None:
        atoms = to_numpy(self.transform_).astype(np.float64)
        if np.abs(atoms @ atoms.T - np.eye(len(atoms))).max() > 1e-3 or self.eps0_ < 0:
            raise damaged(f"expected an orthogonal transform of {len(atoms)} atoms and eps0 >= 0")


@as_data_errors()
def input_frames(estimator: FactorizingEstimator, X: Any, *, reset: bool) -> Array:
    """Check frames and return them with an axis of realizations."""
    who = type(estimator).__name__
    if is_anndata(X) or sp.issparse(X):
        raise DataTypeError(f"{who} takes dense frames, no sparse or AnnData object; got {type(X).__name__}.")
    refuse_unsupported_types(X, who)
    frame_labels(X, unique=True)
    if not is_non_numpy(X) and (getattr(X, "ndim", None) or np.asarray(X).ndim) < 3:
        # The finite entries are checked below, where a wrong one is named by its place.
        rules: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": False}
        X = validate_data(estimator, X, reset=reset, **rules)
    Y = checked_frames(X, n_frames=2 if reset else 1)
    if reset:
        estimator.n_features_in_ = int(Y.shape[2])
    else:
        check_n_features(estimator, Y[0], reset=False)
    return Y
