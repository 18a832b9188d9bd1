"""What figures of scenes and sounds show."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from nonneg.report import hyperspectral_figures, sound_figures


def labels_of(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def test_spectra_are_sorted_by_wavelength_with_a_gap_where_bands_are_missing(draw):
    wavelengths = np.array([900.0, 400.0, 410.0, 420.0, 430.0, 910.0, 920.0])
    spectra = np.stack([wavelengths / 100, 10 - wavelengths / 100])
    (axes,) = draw(
        hyperspectral_figures.spectrum_lines, spectra, wavelengths, ["a", "b"], ["#111111", "#222222"]
    )
    for line, values in zip(axes.lines, (lambda x: x / 100, lambda x: 10 - x / 100), strict=True):
        x, y = line.get_data()
        places = [400, 410, 420, 430, np.nan, 900, 910, 920]
        np.testing.assert_array_equal(x, places)
        np.testing.assert_allclose(y, values(np.array(places)))
    assert [line.get_color() for line in axes.lines] == ["#111111", "#222222"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    assert axes.get_xlabel() == "wavelength, nm"
    assert axes.get_ylim()[0] == 0


def test_spectra_without_wavelengths_are_drawn_by_band(draw):
    spectra = np.array([[1.0, 5.0, 2.0, 4.0]])
    (axes,) = draw(hyperspectral_figures.spectrum_lines, spectra, None, ["a"], ["#111111"])
    np.testing.assert_array_equal(axes.lines[0].get_xydata(), list(enumerate(spectra[0])))
    assert axes.get_xlabel() == "band"


def test_known_spectra_have_the_brightness_of_those_found(draw):
    wavelengths = np.array([420.0, 400.0, 410.0])
    found = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 1.0], [1.0, 2.0, 3.0]])
    known = np.array([[0.3, 0.1, np.nan], [np.nan] * 3, [0.0] * 3])
    colors = ["#111111", "#222222", "#333333"]
    (axes,) = draw(hyperspectral_figures.spectrum_lines, found, wavelengths, ["a", "b", "c"], colors, known)
    first, beside, second, third, zero = axes.lines
    np.testing.assert_allclose(beside.get_xydata(), [[400, 1], [410, np.nan], [420, 3]])
    assert (first.get_linestyle(), beside.get_linestyle()) == ("-", "--")
    assert beside.get_color() == first.get_color() != second.get_color()
    np.testing.assert_array_equal(zero.get_ydata(), 0)
    assert zero.get_color() == third.get_color()


def test_a_tone_is_brightest_in_its_band_while_it_sounds():
    rate = 8000
    time = np.arange(2 * rate) / rate
    signal = np.sin(2 * np.pi * 1000 * time) * (time < 1)
    power, seconds = sound_figures.power_spectrogram(signal, rate)
    assert seconds == 2.0
    edges = sound_figures.frequency_bands(rate)
    assert (edges[0], edges[-1]) == (40, pytest.approx(4000))
    assert len(edges) == len(power) + 1
    np.testing.assert_allclose(edges[1:] / edges[:-1], edges[1] / edges[0])
    loudest = int(power[:, power.shape[1] // 4].argmax())
    assert edges[loudest - 1] < 1000 < edges[loudest + 2]
    by_time = power.sum(axis=0) / power.sum(axis=0).max()
    half = len(by_time) // 2
    assert by_time[5 : half - 10].min() > 0.9
    assert by_time[half + 10 :].max() < 1e-6
    stereo, seconds = sound_figures.power_spectrogram(np.stack([signal, 0 * signal]), rate)
    np.testing.assert_allclose(stereo, power / 2)
    assert seconds == 2.0
    assert sound_figures.frequency_bands(200.0)[0] == 2


@pytest.mark.parametrize("n_samples", [1, 5, 40])
def test_very_short_sounds_have_a_spectrogram(n_samples):
    power, seconds = sound_figures.power_spectrogram(np.ones(n_samples), 8000)
    assert np.isfinite(power).all()
    assert seconds == n_samples / 8000


def test_bands_hold_the_mean_of_their_columns_and_are_interpolated_between():
    frequencies = np.array([30.0, 10.0, 20.0, 40.0])
    values = np.array([[3.0, 1.0, 2.0, 4.0]])
    edges = np.array([5.0, 15.0, 16.0, 35.0, 50.0])
    found = sound_figures.in_bands(values, frequencies, edges)
    np.testing.assert_allclose(found, [[1, np.sqrt(15 * 16) / 10, 2.5, 4]])
    np.testing.assert_array_equal(sound_figures.in_bands(-values, frequencies, edges), 0)


def test_a_spectrogram_shows_sixty_decibels_below_the_loudest(draw):
    power = np.array([[1.0, 0.1], [1e-3, 1e-9]])
    (axes,) = draw(sound_figures.spectrogram, power, 3.0, 16000, 1.0, "title")
    picture = axes.images[0]
    np.testing.assert_allclose(picture.get_array(), [[0, -10], [-30, -60]])
    np.testing.assert_allclose(picture.get_extent(), [0, 3, np.log10(40), np.log10(8000)])
    assert picture.get_clim() == (-60, 0)
    assert picture.origin == "lower"
    (axes,) = draw(sound_figures.spectrogram, 0 * power, 3.0, 16000, 0.0, "silence")
    np.testing.assert_allclose(axes.images[0].get_array(), -60)


@pytest.mark.parametrize(
    ("rate", "labels"),
    [
        (44100, ["100", "1k", "10k"]),
        (8000, ["50", "100", "200", "500", "1k", "2k"]),
        (200, ["2", "5", "10", "20", "50", "100"]),
    ],
)
def test_frequencies_are_labeled_at_powers_of_ten_and_between_where_there_are_few(rate, labels, draw):
    (axes,) = draw(sound_figures.spectrogram, np.ones((2, 2)), 1.0, rate, 1.0, "title")
    assert labels_of(axes.yaxis) == labels
    numbers = [float(label.replace("k", "e3")) for label in labels]
    np.testing.assert_allclose(axes.get_yticks(), np.log10(numbers))
    marked = np.round([*numbers, *10 ** axes.get_yticks(minor=True)], 6)
    low, high = sound_figures.frequency_bands(rate)[[0, -1]]
    steps = [digit * 10.0**decade for decade in range(6) for digit in range(1, 10)]
    assert set(marked) == {step for step in steps if low * (1 - 1e-9) <= step <= high}


def test_components_are_drawn_in_order_with_some_of_the_names(draw):
    components = np.eye(3)[:, :2]
    components[1] *= 5.0
    (axes,) = draw(sound_figures.templates, components, np.array([100.0, 1000.0]), 8000, ["a", "b", "c"])
    cells, extent = axes.images[0].get_array(), axes.images[0].get_extent()
    assert cells.max(axis=1).tolist() == [1, 1, 0]
    assert np.argmax(cells[0]) < np.argmax(cells[1])
    np.testing.assert_allclose(extent, [np.log10(40), np.log10(4000), 2.5, -0.5])
    assert labels_of(axes.yaxis) == ["a", "b", "c"]
    (axes,) = draw(
        sound_figures.templates, np.ones((45, 2)), np.array([100.0, 1000.0]), 8000, list(map(str, range(45)))
    )
    assert labels_of(axes.yaxis) == [str(at) for at in range(0, 45, 3)]


def test_an_atom_stands_beside_its_spectrum(draw):
    rate, length = 1000, 50
    time = np.arange(length) / rate
    atoms = np.stack([np.sin(2 * np.pi * f * time) for f in (100, 250)])
    wave, spectrum, other_wave, other = draw(
        sound_figures.atoms, atoms, ["one", "two"], rate, np.array([100.0, 250.0])
    )
    np.testing.assert_allclose(wave.lines[0].get_xdata(), np.arange(length))  # milliseconds
    np.testing.assert_array_equal(wave.lines[0].get_ydata(), atoms[0])
    np.testing.assert_array_equal(other_wave.lines[0].get_ydata(), atoms[1])
    for axes, frequency in ((spectrum, 100), (other, 250)):
        mark, line = axes.lines
        np.testing.assert_array_equal(mark.get_xdata(), frequency)
        x, y = line.get_data()
        assert x[y.argmax()] == pytest.approx(frequency, abs=3)
        assert (x[0], x[-1]) == (0, rate / 2)
        assert axes.get_xlim() == (0, rate / 2)
    assert [axes.get_ylabel() for axes in (wave, other_wave)] == ["one", "two"]
    assert [axes.get_xlabel() for axes in (wave, spectrum, other_wave, other)] == [
        "",
        "",
        "milliseconds",
        "Hz",
    ]
    assert set(labels_of(wave.xaxis) + labels_of(spectrum.xaxis)) == {""}


@pytest.mark.parametrize("seconds", [0.5, 3.0])
def test_activations_last_as_long_as_the_sound(seconds, draw):
    W = np.array([[1.0, 0.0], [1e-3, 2.0], [1e-7, 2.0]])
    panels = draw(sound_figures.activations, W, seconds, ["low", "high"])
    assert [axes.get_ylabel() for axes in panels] == ["low", "high"]
    assert [axes.get_xlabel() for axes in panels] == ["", "seconds"]
    for axes, decibels in zip(panels, ([60, 30, 0], [0, 60, 60]), strict=True):
        assert axes.get_xlim() == (0, seconds)
        assert axes.get_ylim()[0] == 0
        assert axes.get_ylim()[1] > 60
        drawn = axes.collections[0].get_paths()[0].vertices
        expected = zip(np.linspace(0, seconds, 3), decibels, strict=True)
        assert {(round(x, 6), round(y, 6)) for x, y in expected} <= {
            (round(x, 6), round(y, 6)) for x, y in drawn
        }
    assert set(labels_of(panels[0].xaxis)) == {""}
    assert draw(sound_figures.activations, W[:1], 0.0, ["low", "high"])[0].get_xlim() == (0, 1)


@pytest.mark.parametrize(
    ("center", "columns", "rows", "place"),
    [
        ((10, 30), 27, 60, (19, 33.5)),  # to the right, as far as the edge
        ((10, 30), 26, 60, (6, 20.5)),  # above, where neither side has room
        ((17, 30), 33, 60, (0, 33.5)),  # to the left, as far as the edge
        ((17.5, 30), 34, 60, (0.5, 33.5)),
        ((10, 19), 26, 60, (6, 9.5)),  # above, as far as the edge
        ((10, 15), 26, 34, (6, 34)),  # below, as far as the edge
        ((2, 15), 18, 60, (0, 34)),  # moved inwards
        ((16, 15), 18, 60, (10, 34)),
        ((10, 1), 60, 60, (19, 9.5)),  # beside, moved inwards
        ((10, 59), 60, 60, (19, 60)),
        ((5, 5), 10, 10, (14, 9.5)),  # nowhere
    ],
)
def test_the_number_of_a_ring_stands_where_there_is_room(center, columns, rows, place):
    # A ring of size 5 reaches 7 from its center; its number is 8 wide and 9.5 high.
    assert hyperspectral_figures._label_places([center], 5.0, columns, rows) == [place]


def test_numbers_do_not_cover_rings_and_numbers():
    # The place to the right of the first is taken by the second, so that it goes to the left.
    first, second = hyperspectral_figures._label_places([(50, 50), (66, 50)], 5.0, 200, 200)
    assert first == (33, 53.5)
    assert second == (75, 53.5)
    overlap = hyperspectral_figures._overlap
    box = (0, 0, 10, 10)
    for shift in ((10, 0), (-10, 0), (0, 10), (0, -10)):
        moved = (shift[0], shift[1], 10 + shift[0], 10 + shift[1])
        assert not overlap(box, moved)
        nearer = [value - np.sign(shift[at % 2]) for at, value in enumerate(moved)]
        assert overlap(box, nearer)


def test_names_of_panels_stand_upright(draw):
    atoms = np.random.default_rng(0).random((2, 16))
    waves = draw(sound_figures.atoms, atoms, ["one", "two"], 1000, np.array([1.0, 2.0]))[::2]
    panels = draw(sound_figures.activations, np.ones((4, 2)), 1.0, ["low", "high"])
    for axes in (*waves, *panels):
        label = axes.yaxis.label
        assert (label.get_rotation(), label.get_ha(), label.get_va()) == (0.0, "right", "center")
