"""Recordings as users pass them, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications.audio.recordings import Recordings, check_sound, checked_recordings
from nonneg.exceptions import InvalidDataError, NonFiniteDataError, ShapeError

SOUND = np.array([0.0, 1.0, 0.0, -1.0])


@pytest.mark.parametrize(
    ("signals", "kind", "lengths", "listed", "single"),
    [
        (SOUND, "aligned", [4], False, (True,)),
        (SOUND, "consecutive", [4], False, (True,)),
        (list(SOUND), "consecutive", [4], False, (True,)),
        (np.stack([SOUND, SOUND]), "aligned", [4], False, (False,)),
        ([SOUND, SOUND], "aligned", [4], False, (False,)),
        (np.stack([SOUND, SOUND]), "consecutive", [4, 4], False, (False, False)),
        ([SOUND, SOUND[:3]], "consecutive", [4, 3], True, (True, True)),
        ([SOUND], "consecutive", [4], True, (True,)),
        ((SOUND,), "aligned", [4], False, (False,)),
        ([SOUND, np.stack([SOUND, SOUND])[:, :3]], "consecutive", [4, 3], True, (True, False)),
    ],
)
def test_parts_of_recordings(signals, kind, lengths, listed, single):
    found = checked_recordings(signals, kind)
    assert (found.lengths, found.shortest, found.listed, found.single) == (
        lengths,
        min(lengths),
        listed,
        single,
    )
    assert all(part.ndim == 2 for part in found.parts)
    # Sources come back in the form of the input, with one more axis in front.
    back = found.like_given([np.stack([part, part, part]) for part in found.parts])
    if listed:
        assert [one.shape for one in back] == [(3, *np.shape(signal)) for signal in signals]
    else:
        np.testing.assert_array_equal(back, np.stack([np.asarray(signals)] * 3))


def test_what_recordings_may_not_be():
    with pytest.raises(InvalidDataError, match="at least one sample"):
        checked_recordings([], "consecutive")
    with pytest.raises(ShapeError, match=r"have the same length, got \[4, 3\] samples"):
        checked_recordings([SOUND, SOUND[:3]], "aligned")
    with pytest.raises(NonFiniteDataError, match="Sample 2 of recording 1 is inf"):
        checked_recordings([SOUND, [0.0, 1.0, np.inf, np.nan]], "aligned")
    # The fifth root of the largest number still passes.
    largest = float(np.finfo(np.float32).max) ** 0.2
    checked_recordings(np.array([0.0, -0.99 * largest], dtype=np.float32), "aligned")
    with pytest.raises(InvalidDataError, match="overflow in float32"):
        checked_recordings(np.array([0.0, -1.01 * largest], dtype=np.float32), "aligned")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([SOUND[None, :3]], "The recording has 3 samples, less than one frame of 4. Record more"),
        ([SOUND[None], SOUND[None, :2]], "Recording 1 has 2 samples, less than one frame of 4. Record more"),
        ([np.ones((4, 3))], "Recordings are rows: pass signals.T"),
        ([np.ones((3, 3))], "Record more, or use a shorter frame_length"),
        ([np.ones((1, 4)), np.zeros((2, 4))], "The recording is constant"),
        ([np.zeros((1, 4)), np.zeros((2, 4))], "The recording is silent"),
        ([np.zeros((1, 4)), np.ones((1, 4))], "The recording is constant"),
        ([np.array([[1.0] * 4, [2.0] * 4])], "The recording is constant"),
    ],
)
def test_short_and_silent_recordings_are_refused(parts, message):
    with pytest.raises(InvalidDataError, match=message):
        check_sound(Recordings(parts, False, (False,) * len(parts)), 4)


def test_one_sound_among_silent_parts_is_enough():
    check_sound(Recordings([np.zeros((1, 4)), SOUND[None]], False, (True, True)), 4)
    check_sound(Recordings([np.stack([np.zeros(4), SOUND])], False, (True,)), 4)
    with pytest.raises(InvalidDataError, match="The training recording of 'bass' has 4 samples"):
        check_sound(Recordings([SOUND[None]], False, (True,)), 5, "training recording of 'bass'")
