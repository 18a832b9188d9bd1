"""The smoothness penalty that users pass to `NMF` and `factorize`: from a graph, after checking it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arguments import checked_nonnegative, typed
from nonneg.data import as_data_matrix
from nonneg.data.door import Request, check_entries
from nonneg.data.graphs import adjacency_matrix, tidy
from nonneg.exceptions import ShapeError
from nonneg.kernels.grams import Laplacian


def laplacian(graph: Any, *, strength: float = 1.0, normalized: bool = False) -> Laplacian:
    r"""Return the penalty that makes a factor smooth along a graph of samples or features.

    It is the `penalty_W` of :class:`nonneg.NMF` and :func:`nonneg.factorize` for a graph of the samples, such
    as neighboring places or times, and the `penalty_H` for one of the features.

    Parameters
    ----------
    graph : sparse matrix, array or networkx graph
        Adjacency matrix of shape (n_nodes, n_nodes) with nonnegative weights, such as scikit-learn's
        ``kneighbors_graph``; of the weights of both directions the mean counts. Node i is row i of X for
        `penalty_W` and column i for `penalty_H`. Loops have no effect.
    strength : float, default 1.0
        Weight of the penalty; 0 switches it off. With 1, a neighbor with an edge of weight 1 counts as much
        as what was measured of a node itself.
    normalized : bool, default False
        Whether to divide every edge by the roots of the degrees of its two nodes, so that the pull on a node
        does not grow with the number of its neighbors.

    Returns
    -------
    Laplacian
        The penalty, an immutable object with `strength`, `normalized` and the weights of the `edges`, a
        sparse matrix, divided already if `normalized`.

    Notes
    -----
    The penalty on W is

    .. math::

        \frac{\text{strength}}{2} \sum_a \|h_a\|^2 \, w_a^\top L w_a, \qquad
        w^\top L w = \sum_{i < j} A_{ij} (w_i - w_j)^2,

    where :math:`w_a` are the columns of W and :math:`h_a` the rows of H: strength / 2 tr(W' L W) for
    components of length one. Without the lengths, W could shrink and H grow until nothing is left of the
    penalty. So `strength` has no unit. The penalty on H is the same with W and H exchanged.

    References
    ----------
    .. [1] Cai, He, Han & Huang (2011), IEEE Transactions on Pattern Analysis and Machine Intelligence 33(8)
       (NMF with a Laplacian penalty).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.feature_extraction.image import grid_to_graph
    >>> from nonneg import NMF, laplacian
    >>> X = np.random.default_rng(0).random((12, 5))
    >>> grid = grid_to_graph(4, 3)
    >>> model = NMF(2, penalty_W=laplacian(grid, strength=0.5), random_state=0)
    >>> model.fit_transform(X).shape
    (12, 2)
    """
    typed(laplacian, locals())
    strength = checked_nonnegative("strength", strength)
    edges, _ = adjacency_matrix(graph)
    if edges.shape[0] != edges.shape[1]:
        raise ShapeError(f"graph needs one row and one column per node, got shape {edges.shape}.")
    edges = tidy(edges - sp.diags_array(edges.diagonal()))  # loops cancel out of L
    advice = "Drop negative edges: A.maximum(0)."
    check_entries(as_data_matrix(edges), Request(who="laplacian", masks=False), advice=advice)
    edges = (edges + edges.T) * 0.5
    if normalized:
        degrees = edges.sum(axis=1)
        scale = sp.diags_array(np.where(degrees > 0, degrees, 1.0) ** -0.5)
        edges = scale @ edges @ scale
    return Laplacian(tidy(edges), strength, bool(normalized))
