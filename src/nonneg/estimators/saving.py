"""Saved models: one file of arrays and JSON. Nothing in it can run code."""

from __future__ import annotations

import io
import json
import os
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._version import __version__
from nonneg.certificates.certificate import Certificate
from nonneg.estimators._base import on_host
from nonneg.exceptions import (
    FileFormatError,
    InvalidParameterError,
    NonnegError,
    NonnegWarning,
    OutputError,
    UnsafeFileError,
)
from nonneg.iteration import History
from nonneg.rank_selection import RankResult

FORMAT, FORMAT_VERSION = "nonneg-model", 1
NUMBERS = ("n_components_", "n_iter_", "n_steps_", "reconstruction_err_", "n_features_in_")
# Parameters that belong to a process or a machine rather than to the model.
NOT_STORED = ("callback", "checkpoint")


def _classes() -> dict[str, Any]:
    from nonneg.estimators.cone_nmf import ConeNMF
    from nonneg.estimators.nmf import NMF
    from nonneg.estimators.purification_nmf import PurificationNMF
    from nonneg.estimators.separable_nmf import SeparableNMF
    from nonneg.estimators.transform_nmf import TransformNMF

    return {
        "NMF": NMF,
        "ConeNMF": ConeNMF,
        "PurificationNMF": PurificationNMF,
        "SeparableNMF": SeparableNMF,
        "TransformNMF": TransformNMF,
    }


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator.

    Parameters
    ----------
    model : estimator
        Fitted; not changed.
    path : str or path
        The file.

    Raises
    ------
    OutputError
        If it cannot be written; a file that was there stays.
    """
    params, notes = _stored_params(model)
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "nonneg_version": __version__,
        "class": type(model).__name__,
        "params": params,
        "notes": notes,
        "numbers": {name: getattr(model, name) for name in NUMBERS if hasattr(model, name)},
    }
    if hasattr(model, "feature_names_in_"):
        header["feature_names_in_"] = [str(name) for name in model.feature_names_in_]
    if hasattr(model, "history_"):
        header["history"] = model.history_.as_dict()
    if hasattr(model, "certificate_"):
        header["certificate"] = model.certificate_.as_dict()
    if hasattr(model, "rank_estimate_"):
        header["rank_estimate"] = model.rank_estimate_.as_dict()
    arrays = {"components_": on_host(model.components_)}
    if (online := getattr(model, "_online", None)) is not None:
        header["online"] = {"n_samples": online.n_samples, "decay": online.decay}
        if online.numerator is not None:
            arrays["numerator"], arrays["denominator"] = (
                on_host(online.numerator),
                on_host(online.denominator),
            )
    arrays |= {f"fitted.{name}": array for name, array in model._fitted_arrays().items()}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    _write(Path(path), arrays)
    if notes:
        warnings.warn(" ".join(notes), NonnegWarning, stacklevel=3)


def _stored_params(model: Any) -> tuple[dict[str, Any], list[str]]:
    params, notes = {}, []
    for name, value in model.get_params(deep=False).items():
        value = value.item() if isinstance(value, np.generic) else value
        if name not in NOT_STORED and (value is None or isinstance(value, bool | int | float | str)):
            params[name] = value
        elif value is not None:
            notes.append(f"{name} was not stored: a saved model holds names and numbers only.")
    return params, notes


def _write(path: Path, arrays: dict[str, Any]) -> None:
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as stream:
            np.savez(stream, **arrays)
            stream.flush()
            os.fsync(stream.fileno())
        # Temporary files are for the owner alone; a result may be read like any other file.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise OutputError(
            f"The model could not be written to {path}: {error}. What was there before is still there. Free "
            "some space or name another place."
        ) from error


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : str or path
        The file. It may come from anywhere: no code in it is run.

    Returns
    -------
    estimator
        Fitted, ready for `transform`. `result_` is not stored: `transform` gives W again.

    Raises
    ------
    FileFormatError
        If the file is not a saved model, is damaged, or names a class that nonneg does not have.

    Examples
    --------
    >>> import numpy as np, nonneg, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.npz"
    >>> nonneg.NMF(n_components=2).fit(np.eye(4)[:, :3] + 1).save(path)
    >>> nonneg.load(path).components_.shape
    (2, 3)
    """
    content = Path(path).read_bytes()
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise FileFormatError(
            f"{path} is not a saved model, or it is truncated. Write it again with model.save(path)."
        )
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(bytes(arrays.pop("header")).decode())
        return _restored(header, arrays, path)
    except NonnegError:
        raise
    except Exception as error:  # a damaged archive fails in many ways, and all of them mean the same
        if "allow_pickle" in str(error):
            raise UnsafeFileError(
                f"{path} holds pickled objects, which can run code when they are read: refused. A model is "
                "saved with model.save(path), which writes none."
            ) from error
        raise FileFormatError(
            f"{path} is not a saved model, or it is damaged ({type(error).__name__}: {error}). Write it "
            "again with model.save(path)."
        ) from error


def _restored(header: dict[str, Any], arrays: dict[str, Any], path: Any) -> Any:
    if header["format"] != FORMAT:
        raise FileFormatError(f"{path} is not a saved model: its format is {header['format']!r}.")
    if header["format_version"] > FORMAT_VERSION:
        raise FileFormatError(
            f"{path} was written by a newer nonneg ({header['nonneg_version']}; this is {__version__}). "
            "Upgrade nonneg to read it."
        )
    classes = _classes()
    if header["class"] not in classes:
        raise FileFormatError(
            f"{path} holds a model of class {header['class']!r}, which nonneg {__version__} does not have. "
            f"It has {sorted(classes)}."
        )
    unknown = sorted(set(header["params"]) - set(classes[header["class"]]._get_param_names()))
    if unknown:
        raise FileFormatError(f"{path} sets parameters that {header['class']} does not have: {unknown}.")
    model = classes[header["class"]](**header["params"])
    try:
        model._validate_params()
    except InvalidParameterError as error:
        raise FileFormatError(f"{path}: {error}") from error
    _restore_fit(model, header, arrays, path)
    return model


def _restore_fit(model: Any, header: dict[str, Any], arrays: dict[str, Any], path: Any) -> None:
    components = arrays["components_"]
    numbers = {name: value for name, value in header["numbers"].items() if name in NUMBERS}
    expected = (numbers["n_components_"], numbers["n_features_in_"])
    good = components.dtype in (np.float32, np.float64) and components.shape == expected
    good = good and bool(np.isfinite(components).all())
    if not good or not (model.signed_components or (components >= 0).all()):
        what = "components" if model.signed_components else "nonnegative components"
        raise FileFormatError(
            f"{path}: expected {what} of shape {expected}, got {components.dtype} of shape "
            f"{components.shape}. The file is damaged."
        )
    model.components_ = components
    for name, value in numbers.items():
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise FileFormatError(f"{path}: expected a number for {name}, got {value!r}.")
        setattr(model, name, value)
    if "feature_names_in_" in header:
        names = np.asarray([str(name) for name in header["feature_names_in_"]], dtype=object)
        if len(names) != model.n_features_in_:
            raise FileFormatError(f"{path}: {len(names)} names for {model.n_features_in_} features.")
        model.feature_names_in_ = names
    if "history" in header:
        model.history_ = History(header["history"])
    if "certificate" in header:
        model.certificate_ = Certificate.from_dict(header["certificate"])
    if "rank_estimate" in header:
        model.rank_estimate_ = RankResult.from_dict(header["rank_estimate"])
    fitted = {name.removeprefix("fitted."): arrays[name] for name in arrays if name.startswith("fitted.")}
    model._restore_arrays(fitted, path)
    if "online" in header:
        model._online = _online_state(header["online"], arrays, components.shape, path)


def _online_state(numbers: dict[str, Any], arrays: dict[str, Any], shape: tuple[int, int], path: Any) -> Any:
    from nonneg.estimators.online import OnlineState

    k, n_features = shape
    decay = numbers["decay"]
    state = OnlineState(
        arrays.get("numerator"),
        arrays.get("denominator"),
        float(numbers["n_samples"]),
        None if decay is None else float(decay),
    )
    if state.numerator is not None and (
        state.numerator.shape != (n_features, k) or state.denominator.shape not in ((k, k), (n_features, k))
    ):
        raise FileFormatError(f"{path}: the sums of past batches do not fit the components.")
    return state
