"""The choice between a learned and a fixed transform."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.data import gaussian_composite

from nonneg import TransformNMF, learn_transform, load
from nonneg.transforms.initialization import dct_matrix
from nonneg.transforms.rotations.group import random_orthogonal
from nonneg.transforms.selection import held_out_blocks


@pytest.mark.parametrize(("planted", "chosen"), [(None, "dct"), (3, "learned")])
def test_what_generated_the_data_is_chosen(planted, chosen, tmp_path):
    data = gaussian_composite(20, frame_length=8, n_frames=60, n_components=2, rng=0)
    Y = data.Y if planted is None else data.Y @ data.transform.T @ random_orthogonal(8, planted)
    model = TransformNMF(2, max_iter=60, random_state=0).fit(Y)
    assert model.choice_.name == chosen
    method = "tl" if chosen == "learned" else "dct"
    same = learn_transform(Y, 2, method=method, eps0=model.eps0_, init="dct", max_iter=60, rng=0)
    np.testing.assert_array_equal(model.transform_, same.transform)
    statement = model.certificate_["transform-choice"]
    assert statement.holds
    assert statement.number == min(model.choice_.held_out)
    assert statement.quantities["held_out_dct"] == model.choice_.held_out[0]
    model.save(tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").choice_ == model.choice_


def test_noise_and_few_frames_keep_the_cosine_transform():
    noise = np.random.default_rng(0).standard_normal((240, 8))
    assert TransformNMF(2, max_iter=20, random_state=0).fit(noise).choice_.name == "dct"
    few = TransformNMF(2, max_iter=20, random_state=0).fit(noise[:12])
    np.testing.assert_allclose(few.transform_, dct_matrix(8), atol=1e-14)
    assert str(few.certificate_["transform-choice"].verdict) == "not verifiable"
    assert not hasattr(few.set_params(method="tl").fit(noise[:12]), "choice_")


@pytest.mark.parametrize("n_frames", [23, 24, 35, 36, 96, 97, 400])
def test_a_third_of_the_blocks_is_held_out(n_frames):
    train, blocks = held_out_blocks(n_frames)
    n_blocks = min(n_frames // 4, 24) // 3 * 3
    if n_blocks < 6:
        assert blocks == []
        np.testing.assert_array_equal(train, np.arange(n_frames))
        return
    edges = np.round(np.linspace(0, n_frames, n_blocks + 1)).astype(int)
    expected = [list(range(edges[at], edges[at + 1])) for at in range(2, n_blocks, 3)]
    assert [block.tolist() for block in blocks] == expected
    held = {frame for block in expected for frame in block}
    near = {frame + step for frame in held for step in (-1, 0, 1)}
    np.testing.assert_array_equal(train, [frame for frame in range(n_frames) if frame not in near])
