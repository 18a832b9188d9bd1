"""`--device`: handed on to the estimators; a wrong or missing one is an error that says what to do."""

from __future__ import annotations

import numpy as np
import pytest

import nonneg._devices as devices
from nonneg.applications import TopicModel
from nonneg.applications.topics import methods
from nonneg.cli import fit, main
from nonneg.exceptions import UnsupportedError


@pytest.fixture
def file(tmp_path):
    """A table."""
    np.save(tmp_path / "X.npy", np.random.default_rng(0).random((20, 6)))
    return tmp_path / "X.npy"


def test_the_device_reaches_the_model(file, tmp_path, monkeypatch):
    seen = {}

    def stop(X, **parameters):
        seen.update(parameters)
        raise KeyboardInterrupt

    monkeypatch.setattr(fit, "fit_model", stop)
    main(["fit", str(file), "-k", "2", "-q", "-o", str(tmp_path / "out"), "--device", "cuda:1"])
    assert seen["device"] == "cuda:1"


def test_what_is_no_device_or_not_there_is_said(file, tmp_path, capsys, monkeypatch):
    words = ["fit", str(file), "-k", "2", "-q", "-o", str(tmp_path / "out")]
    assert main([*words, "--device", "gpu"]) != 0
    assert "device='gpu' (--device) is not a device" in capsys.readouterr().err
    monkeypatch.setattr(devices, "import_optional", lambda name, **said: pytest.importorskip("torch"))
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main([*words, "--device", "cuda"]) != 0
    assert "leave device (--device) out" in capsys.readouterr().err


def test_topics_hand_it_on_to_the_factorization(monkeypatch):
    texts = ["cat dog cat", "dog cat pet", "bond stock", "stock market bond", "pet dog", "market stock"]
    seen = []
    of = methods.NMF
    monkeypatch.setattr(
        methods, "NMF", lambda *given, device=None, **options: seen.append(device) or of(*given, **options)
    )
    for method in ("nmf", "kl"):
        TopicModel(2, method=method, random_state=0, device="cuda").fit(texts)
    assert set(seen) == {"cuda"}
    with pytest.raises(UnsupportedError, match="device"):
        TopicModel(2, method="spa", device="cuda").fit(texts)
    TopicModel(2, method="spa", device="auto").fit(texts)
