"""Estimators on AnnData objects: any matrix of the object in, weights, components and certificate out.

Where things go, as in `scanpy.pp.pca`: ``obsm["X_nmf"]`` the weights W, ``varm["NMF"]`` the components with
one row per variable (zeros for those left out), ``uns["nmf"]`` parameters, certificate and version; with
``key_added`` all three have that name.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._arrays import to_numpy
from nonneg._optional import import_optional
from nonneg._version import __version__
from nonneg.data.annotated import AnnDataMatrix, is_anndata
from nonneg.estimators.documentation import documented
from nonneg.exceptions import DataTypeError, InvalidParameterError, OutputError, ShapeError

__all__ = ["fit", "matrix", "store", "transform", "weights"]


@documented
def matrix(adata: Any, *, layer: str | None = None, use_highly_variable: bool | None = None) -> AnnDataMatrix:
    """Choose a matrix of an AnnData object, to be passed as X to any estimator or function.

    Parameters
    ----------
    adata : AnnData
        Observations in rows, variables in columns; in memory or backed.
    {layer, use_highly_variable}

    Returns
    -------
    AnnDataMatrix
        A reference to the matrix; entries are read when an estimator asks for them. A fitted estimator
        finds its variables by name, whatever `use_highly_variable` says.

    Examples
    --------
    >>> import nonneg
    >>> from nonneg.integrations.anndata import matrix
    >>> model = nonneg.NMF(10).fit(matrix(adata, layer="counts", use_highly_variable=True))  # doctest: +SKIP
    """
    if not is_anndata(adata):
        raise DataTypeError(
            f"Expected an AnnData object, got {type(adata).__name__}. Estimators take arrays, sparse "
            "matrices and data frames as they are."
        )
    return AnnDataMatrix(adata, layer, use_highly_variable)


@documented
def fit(
    model: Any,
    adata: Any,
    *,
    layer: str | None = None,
    use_highly_variable: bool | None = None,
    key_added: str | None = None,
    **fit_params: Any,
) -> Any:
    """Fit an estimator to an AnnData object and store the result in it.

    Parameters
    ----------
    model : estimator
        Any estimator of nonneg with `components_`, such as `NMF` or `SeparableNMF`.
    adata : AnnData
        The data. Its matrices are not modified; the result is added.
    {layer, use_highly_variable, key_added}
    **fit_params : Any
        Passed to `fit_transform` of the estimator.

    Returns
    -------
    estimator
        `model`, fitted.
    """
    chosen = matrix(adata, layer=layer, use_highly_variable=use_highly_variable)
    W = model.fit_transform(chosen, **fit_params)
    params = {"layer": layer, "use_highly_variable": chosen.variables() is not None}
    store(adata, model, W, key_added=key_added, params=params)
    return model


@documented
def transform(model: Any, adata: Any, *, layer: str | None = None, key_added: str | None = None) -> None:
    """Store the weights of new observations for a fitted estimator.

    Parameters
    ----------
    model : estimator
        Fitted to an AnnData object, a data frame or an array.
    adata : AnnData
        New observations. The variables of the fit are found by name; others are ignored.
    {layer, key_added}
    """
    W = model.transform(matrix(adata, layer=layer, use_highly_variable=False))
    store(adata, model, W, key_added=key_added, params={"layer": layer})


@documented
def store(
    adata: Any,
    model: Any,
    W: Any,
    *,
    key_added: str | None = None,
    params: Mapping[str, Any] | None = None,
) -> None:
    """Store weights, components and certificate of a fitted estimator in an AnnData object.

    Parameters
    ----------
    adata : AnnData
        Where they go. ``adata.write_h5ad`` can write all of it.
    model : estimator
        Fitted.
    W : array of shape (n_obs, n_components)
        What `transform` or `fit_transform` returned.
    {key_added}
    params : mapping, optional
        What else to remember besides the parameters of the estimator.
    """
    stored = _result(model, W, adata.n_obs, adata.var_names, key_added, params)
    for slot, (key, value) in stored.items():
        getattr(adata, slot)[key] = value


@documented
def weights(adata: Any, *, key_added: str | None = None) -> Any:
    """Return stored weights as a data frame.

    Parameters
    ----------
    adata : AnnData
        With the result of `fit`, `transform` or `store`. ``obsm`` itself has an array, which scanpy plots.
    {key_added}

    Returns
    -------
    pandas.DataFrame
        One row per observation and one column per component, such as ``nmf0``: what ``adata.obs`` takes.
    """
    pandas = import_optional("pandas", extra="singlecell", purpose="A data frame of weights")
    key = "X_nmf" if key_added is None else key_added
    if key not in adata.obsm:
        raise InvalidParameterError(f"There is no obsm[{key!r}]. Fit first; obsm has {list(adata.obsm)}.")
    W = adata.obsm[key]
    return pandas.DataFrame(W, adata.obs_names, [f"{key_added or 'nmf'}{at}" for at in range(W.shape[1])])


def write_h5ad(
    source: Path,
    target: Path,
    model: Any,
    W: Any,
    *,
    feature_names: Sequence[str] | None = None,
    params: Mapping[str, Any] | None = None,
) -> None:
    """Copy an .h5ad file, whose matrices are not read, and store the result in the copy."""
    check_target(source, target)
    anndata = import_optional("anndata", extra="singlecell", purpose="Writing a .h5ad file")
    h5py = import_optional("h5py", extra="singlecell", purpose="Writing a .h5ad file")
    partial = target.with_name(f"{target.name}.part")
    try:
        shutil.copyfile(source, partial)
        with h5py.File(partial, "r+") as file:
            obs, var = (anndata.io.read_elem(file[side]).index for side in ("obs", "var"))
            for slot, (key, value) in _result(model, W, len(obs), var, None, params, feature_names).items():
                if slot not in file:
                    anndata.io.write_elem(file, slot, {})
                anndata.io.write_elem(file[slot], key, value)
        partial.replace(target)
    except (OSError, RuntimeError) as error:  # RuntimeError: HDF5 found the disk full when it closed the file
        raise OutputError(f"{target} could not be written: {error}. {source} is unchanged.") from error
    finally:
        partial.unlink(missing_ok=True)


def check_target(source: Path, target: Path) -> None:
    """Check that the target is an .h5ad file other than the input."""
    if target.exists() and target.samefile(source):
        raise OutputError(f"{target} is the input, which is never overwritten. Name another file.")
    if source.suffix != ".h5ad" or target.suffix != ".h5ad":
        wrong = source if source.suffix != ".h5ad" else target
        raise InvalidParameterError(
            f"Results are written to a copy of an .h5ad file, but {wrong} does not end in .h5ad."
        )
    if not target.parent.is_dir():
        raise OutputError(f"{target} cannot be written: there is no folder {target.parent}.")


def _result(
    model: Any,
    W: Any,
    n_obs: int,
    var_names: Any,
    key_added: str | None,
    params: Mapping[str, Any] | None,
    feature_names: Sequence[str] | None = None,
) -> dict[str, tuple[str, Any]]:
    """Return what is stored: key and value by the slot of AnnData."""
    W = np.asarray(to_numpy(W))
    if len(W) != n_obs:
        raise ShapeError(f"W has {len(W)} rows, but there are {n_obs} observations.")
    obsm, varm, uns = ("X_nmf", "NMF", "nmf") if key_added is None else (key_added,) * 3
    if "/" in uns:
        raise InvalidParameterError(f"key_added={key_added!r} is not allowed: .h5ad files use / for folders.")
    names = getattr(model, "feature_names_in_", None) if feature_names is None else feature_names
    components = to_numpy(model.components_)
    places: Any = slice(None)
    if names is not None and list(names) != list(var_names):
        places = var_names.get_indexer(list(names))
        if (places < 0).any():
            raise ShapeError("Some variables of the fit are not in the object that should store its results.")
    elif components.shape[1] != len(var_names):
        raise ShapeError(
            f"The components have {components.shape[1]} variables without names, but there are "
            f"{len(var_names)} here. Fit to an AnnData object or a data frame, which have names."
        )
    loadings = np.zeros((len(var_names), components.shape[0]), dtype=components.dtype)
    loadings[places] = components.T
    record = {
        "params": _writable({**model.get_params(deep=False), **(params or {})}),
        "estimator": type(model).__name__,
        "version": __version__,
        "certificate": {one.name: _writable(one.as_dict()) for one in getattr(model, "certificate_", ())},
    }
    for name in ("reconstruction_err", "n_iter"):
        record |= {name: getattr(model, f"{name}_")} if hasattr(model, f"{name}_") else {}
    return {"obsm": (obsm, W), "varm": (varm, loadings), "uns": (uns, record)}


def _writable(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what .h5ad files hold: numbers, words and lists of them; the rest as Python would print it."""
    plain: dict[str, Any] = {}
    for name, value in params.items():
        if value is None:
            continue  # the default, which older readers of .h5ad do not know how to read
        if isinstance(value, list | tuple | range) and all(isinstance(one, int | float) for one in value):
            plain[name] = np.asarray(value)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            plain[name] = value
        elif isinstance(value, Mapping):
            plain[name] = _writable({str(key): one for key, one in value.items()})
        else:
            plain[name] = value if isinstance(value, bool | int | float | str) else str(value)
    return plain
