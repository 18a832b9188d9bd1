"""What the report of a separation says of its sources and transform."""

from __future__ import annotations

from nonneg.report.separation_page import separation_sentence


def record(*shares, names=None, files=("song.wav",)):
    names = names or [f"source {at + 1}" for at in range(len(shares))]
    sources = [{"energy_share": share, "name": name} for share, name in zip(shares, names, strict=True)]
    return {"sources": sources, "data": {"files": list(files)}}


def test_sources_are_named_where_they_have_names():
    assert separation_sentence(record(1.0)) == "1 source: all of song.wav."
    two = separation_sentence(record(0.75, 0.25))
    assert two == "2 sources with 75.0% and 25.0% of the energy of song.wav."
    named = separation_sentence(record(0.75, 0.2, 0.05, names=["drums", "bass", "voice"]))
    assert (
        named == "3 sources of song.wav: drums with 75.0%, bass with 20.0% and voice with 5.0% of the energy."
    )
    turned = separation_sentence(record(0.75, 0.25, names=["source 2", "source 1"]))
    assert turned == "2 sources of song.wav: source 2 with 75.0% and source 1 with 25.0% of the energy."
    several = separation_sentence(record(0.5, 0.5, files=["a.wav", "b.wav"]))
    assert several.endswith("of the energy of 2 recordings.")
