"""NMF in the style of scanpy: a function that adds its result to an AnnData object. scanpy is not needed."""

from __future__ import annotations

from typing import Any

from nonneg.estimators.documentation import documented
from nonneg.estimators.nmf import NMF
from nonneg.integrations import anndata as annotated

__all__ = ["nmf"]


@documented
def nmf(
    adata: Any,
    n_components: int | str = "auto",
    *,
    layer: str | None = None,
    use_highly_variable: bool | None = None,
    beta_loss: str | float = "frobenius",
    random_state: Any = 0,
    key_added: str | None = None,
    copy: bool = False,
    **nmf_params: Any,
) -> Any:
    """Factorize a matrix of an AnnData object, as ``scanpy.pp.pca`` decomposes it.

    Parameters
    ----------
    adata : AnnData
        Nonnegative data, such as counts or log-normalized counts before ``scanpy.pp.scale``. In memory or
        backed.
    n_components : int or "auto", default "auto"
        Number of components; "auto" estimates it with `nonneg.compare_ranks`.
    {layer, use_highly_variable, beta_loss}
    random_state : int, RandomState, Generator or None, default 0
        Random numbers, where the initialization draws any.
    {key_added}
    copy : bool, default False
        Whether to return a copy of `adata` with the result, and leave `adata` as it is.
    **nmf_params : Any
        Other parameters of `nonneg.NMF`.

    Returns
    -------
    AnnData or None
        The copy if ``copy=True``; otherwise None, and the result is added to `adata`.

    Examples
    --------
    >>> import scanpy as sc, nonneg  # doctest: +SKIP
    >>> nonneg.integrations.scanpy.nmf(adata, 10, layer="counts")  # doctest: +SKIP
    >>> sc.pl.embedding(adata, "X_nmf")  # doctest: +SKIP
    >>> sc.pl.ranking(adata, "varm", "NMF", indices=[0, 1], include_lowest=False)  # doctest: +SKIP
    >>> sc.pp.neighbors(adata, use_rep="X_nmf")  # doctest: +SKIP
    """
    annotated.matrix(adata)  # refuse other objects before any copy
    target = adata.copy() if copy else adata
    model = NMF(n_components, beta_loss=beta_loss, random_state=random_state, **nmf_params)
    annotated.fit(model, target, layer=layer, use_highly_variable=use_highly_variable, key_added=key_added)
    return target if copy else None
