"""What a saved factorization holds: components, numbers, history, certificate, and the past of batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import to_numpy
from nonneg.certificates.certificate import Certificate
from nonneg.exceptions import FileFormatError
from nonneg.iteration import History
from nonneg.rank_selection import RankResult

NUMBERS = ("n_components_", "n_iter_", "n_steps_", "reconstruction_err_", "n_features_in_")


def factor_parts(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what of a fitted factorization is stored."""
    header: dict[str, Any] = {
        "numbers": {name: getattr(model, name) for name in NUMBERS if hasattr(model, name)}
    }
    if hasattr(model, "feature_names_in_"):
        header["feature_names_in_"] = [str(name) for name in model.feature_names_in_]
    if hasattr(model, "history_"):
        header["history"] = model.history_.as_dict()
    if hasattr(model, "certificate_"):
        header["certificate"] = model.certificate_.as_dict()
    if hasattr(model, "rank_estimate_"):
        header["rank_estimate"] = model.rank_estimate_.as_dict()
    arrays = {"components_": to_numpy(model.components_)}
    if (online := getattr(model, "_online", None)) is not None:
        header["online"] = {"n_samples": online.n_samples, "decay": online.decay}
        if online.numerator is not None:
            arrays["numerator"], arrays["denominator"] = (
                to_numpy(online.numerator),
                to_numpy(online.denominator),
            )
    return header, arrays | {f"fitted.{name}": array for name, array in model._fitted_arrays().items()}


def restore_factors(model: Any, header: dict[str, Any], arrays: dict[str, Any], path: Any) -> None:
    """Set what `factor_parts` gave; the file may come from anywhere."""
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
