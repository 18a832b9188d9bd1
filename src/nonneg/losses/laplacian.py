"""Smoothness along a graph: the Laplacian penalty on the samples of W or the features of H."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arguments import checked_nonnegative
from nonneg._arrays import to_float64
from nonneg._lazy import cached_property
from nonneg._typing import FloatArray, IntArray, SparseMatrix
from nonneg.data import as_data_matrix
from nonneg.data.door import Request, check_entries
from nonneg.data.graphs import adjacency_matrix, is_symmetric, tidy
from nonneg.exceptions import InvalidDataError, InvalidParameterError, ShapeError


@dataclass(frozen=True, eq=False, repr=False)
class Laplacian:
    """A smoothness penalty, as `nonneg.laplacian` returns it; it never changes.

    Attributes
    ----------
    adjacency : sparse array of shape (n_nodes, n_nodes)
        The weights of the edges: symmetric, without loops.
    strength : float
        Weight of the penalty.
    normalized : bool
        Whether edges are divided by the roots of the degrees of their nodes.
    """

    adjacency: SparseMatrix
    strength: float
    normalized: bool

    def __repr__(self) -> str:
        graph = f"<{self.adjacency.shape[0]} nodes, {self.adjacency.nnz // 2} edges>"
        return f"laplacian({graph}, strength={self.strength:g}, normalized={self.normalized})"

    @cached_property
    def edges(self) -> SparseMatrix:
        """The matrix B of L = diag(degrees) - B."""
        if not self.normalized:
            return self.adjacency
        degrees = self.adjacency.sum(axis=1)
        scale = sp.diags_array(np.where(degrees > 0, degrees, 1.0) ** -0.5)
        return sp.csr_array(scale @ self.adjacency @ scale)

    @cached_property
    def degrees(self) -> FloatArray:
        """The diagonal of L."""
        degrees = to_float64(self.adjacency.sum(axis=1))
        return (degrees > 0).astype(np.float64) if self.normalized else degrees

    @cached_property
    def colors(self) -> list[tuple[IntArray, SparseMatrix]]:
        """Nodes without edges among them, and their edges: a greedy coloring."""
        starts, others = self.edges.indptr.tolist(), self.edges.indices.tolist()
        colors: list[int] = []
        for node in range(len(starts) - 1):
            taken = {colors[other] for other in others[starts[node] : starts[node + 1]] if other < node}
            colors.append(next(color for color in range(len(taken) + 1) if color not in taken))
        classes = [np.flatnonzero(np.equal(colors, color)) for color in range(max(colors) + 1)]
        return [(nodes, self.edges[nodes]) for nodes in classes]

    def of_columns(self, factor: Any) -> FloatArray:
        """Return f' L f of every column f of a factor: the sum of B_ij (f_i - f_j)^2 over its edges."""
        factor = to_float64(factor)
        squares = self.degrees @ (factor * factor) - np.sum(factor * (self.edges @ factor), axis=0)
        return np.maximum(squares, 0.0)

    def as_dict(self) -> dict[str, Any]:
        """Return it as arrays and numbers, for files."""
        arrays = {name: getattr(self.adjacency, name) for name in ("data", "indices", "indptr")}
        return {**arrays, "strength": self.strength, "normalized": self.normalized}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Laplacian:
        """Return the penalty that `as_dict` described, after checking it."""
        arrays = stored["data"], stored["indices"], stored["indptr"]
        adjacency = sp.csr_array(arrays, shape=(len(arrays[2]) - 1,) * 2)
        return laplacian(adjacency, strength=stored["strength"], normalized=stored["normalized"])


def laplacian(graph: Any, *, strength: float = 1.0, normalized: bool = False) -> Laplacian:
    r"""Return the penalty that makes a factor smooth along a graph of samples or features.

    Pass it to :class:`nonneg.NMF` or :func:`nonneg.factorize` as `penalty_W`, with a graph of the samples, or
    as `penalty_H`, with a graph of the features: neighboring places of a tissue or an image, consecutive
    times.

    Parameters
    ----------
    graph : sparse matrix, array or networkx graph
        Adjacency matrix of shape (n_nodes, n_nodes): symmetric, with nonnegative weights. Node i is row i of
        X for `penalty_W` and column i for `penalty_H`. Loops have no effect.
    strength : float, default 1.0
        Weight of the penalty; 0 switches it off. With 1, a neighbor with an edge of weight 1 counts as much
        as what was measured of a node itself.
    normalized : bool, default False
        Whether to divide every edge by the roots of the degrees of its two nodes, so that nodes with many
        neighbors are not smoothed more than others.

    Returns
    -------
    Laplacian
        The penalty, an immutable object with the attributes `adjacency`, `strength` and `normalized`.

    Raises
    ------
    ShapeError, NegativeDataError, NonFiniteDataError, DataTypeError, InvalidDataError
        If the graph is not square, or not symmetric, or has weights that are not nonnegative numbers.

    Notes
    -----
    The penalty on W is

    .. math::

        \frac{\text{strength}}{2} \sum_a \|h_a\|^2 \, w_a^\top L w_a, \qquad
        w^\top L w = \sum_{i < j} A_{ij} (w_i - w_j)^2,

    where :math:`w_a` are the columns of W and :math:`h_a` the rows of H. For components of length one it is
    strength / 2 tr(W' L W). The lengths are there because W D and :math:`D^{-1}` H are the same model for
    every positive diagonal D: without them W could shrink and H grow until nothing is left of the penalty.
    So the result does not depend on the units of X, and `strength` is a number without a unit. The penalty on
    H is the same with W and H exchanged.

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
    strength = checked_nonnegative("strength", strength)
    if not isinstance(normalized, bool | np.bool_):
        raise InvalidParameterError(f"normalized must be True or False, got {normalized!r}.")
    adjacency, _ = adjacency_matrix(graph)
    if adjacency.shape[0] != adjacency.shape[1]:
        raise ShapeError(f"graph needs one row and one column per node, got shape {adjacency.shape}.")
    # Loops cancel out of L.
    adjacency = tidy(adjacency - sp.diags_array(adjacency.diagonal()))
    check_entries(
        as_data_matrix(adjacency),
        Request(who="laplacian", masks=False),
        advice="Drop negative edges: A.maximum(0).",
    )
    if not is_symmetric(adjacency):
        raise InvalidDataError(
            "graph is not symmetric: some edges have another weight in the other direction. Pass "
            "A.maximum(A.T), as for nearest neighbors, or (A + A.T) / 2."
        )
    return Laplacian(tidy((adjacency + adjacency.T) * 0.5), strength, bool(normalized))
