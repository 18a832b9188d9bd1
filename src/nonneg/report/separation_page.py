"""The report of a separation: sources to listen to, spectrograms, atoms, components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.report import figures, sound_figures, wording
from nonneg.report.rendering import drawing, render

MOST_PANELS = 16
"""Components whose activations are drawn one by one."""


@dataclass(frozen=True)
class SeparationShown:
    """All that the page shows."""

    record: Mapping[str, Any]  # the contents of result.json
    mixture: FloatArray  # the first recording, with one row per channel where it has several
    sources: FloatArray  # its sources, likewise
    transform: FloatArray | None  # rows are atoms; None for the Fourier transform
    components: FloatArray  # templates
    activations: FloatArray  # of the first recording
    groups: Any  # the source of each component
    frequencies: FloatArray  # of the columns of the components, in hertz
    # Addresses (``data:audio/...``) of the mixture and the sources; empty for none.
    players: Sequence[str] = ()
    player_note: str = ""  # what to know about them


def separation_sentence(record: Mapping[str, Any]) -> str:
    """Describe the result in one sentence."""
    shares = [wording.percent(entry["energy_share"]) for entry in record["sources"]]
    files, names = record["data"]["files"], [entry["name"] for entry in record["sources"]]
    name = files[0] if len(files) == 1 else f"{len(files)} recordings"
    if len(shares) == 1:
        return f"1 source: all of {name}."
    if any(name != f"source {at + 1}" for at, name in enumerate(names)):
        shares = [f"{one} with {share}" for one, share in zip(names, shares, strict=True)]
        listed = ", ".join(shares[:-1]) + f" and {shares[-1]}"
        return f"{len(shares)} sources of {name}: {listed} of the energy."
    listed = ", ".join(shares[:-1]) + f" and {shares[-1]}"
    return f"{len(shares)} sources with {listed} of the energy of {name}."


def build_separation_page(shown: SeparationShown) -> str:
    """Write the report of a separation."""
    record = shown.record
    history, rate = record.get("history", {}), record["data"]["rate"]
    losses = history.get("loss", [])
    result = record["result"]
    context = {
        "title": record["title"],
        "answer": separation_sentence(record),
        "outcome": _outcome(record),
        "tiles": _tiles(record),
        "sources": _source_rows(shown),
        "players": bool(shown.players),
        "player_note": shown.player_note,
        "decibels": wording.number(int(sound_figures.DECIBELS)),
        "spectrograms": _spectrograms(shown),
        "atoms_heading": "The atoms" if _is_fixed(result) else "What the transform has learned",
        "atoms_text": _atoms_text(record),
        "atoms": [_atom_row(entry) for entry in record["atoms"]],
        "atom_drawing": drawing(_atom_drawing(shown)) if record["atoms"] else None,
        "templates": drawing(
            sound_figures.templates(shown.components, shown.frequencies, rate, _component_names(record))
        ),
        "activations": drawing(_activation_drawing(shown)),
        "by_source": len(shown.components) > MOST_PANELS,
        "curves": [
            drawing(figures.convergence(losses, history[key], label))
            for key, label in (("n_iter", "iteration"), ("seconds", "seconds"))
            if losses and key in history
        ],
        "certificate": [wording.statement(entry) for entry in record.get("certificate", [])],
        "facts": _facts(record),
        "versions": record.get("versions", {}),
    }
    return render("separation.html", context)


def _outcome(record: Mapping[str, Any]) -> str:
    result, data = record["result"], record["data"]
    reason = result["stop_reason"]["sentence"].strip().rstrip(".").replace("`", "")
    learned = {
        "stft": "the short-time Fourier transform",
        "transform": _chosen_transform(result),
        "tl": "a transform learned together with the components (TL-NMF)",
        "jd": "a transform learned before the components (JD+NMF)",
        "dct": "the discrete cosine transform (Itakura-Saito NMF)",
    }[result["method"]]
    if data.get("training"):
        learned += ", with templates learned from training recordings"
    return (
        f"{wording.seconds(data['seconds'])} of sound sampled at {wording.number(data['rate'])} Hz "
        f"from {', '.join(data['files'])}, in {wording.number(result['n_frames'])} frames of "
        f"{wording.number(result['frame_length'])} samples. Separated in {learned}. The fit took "
        f"{wording.counted(result['n_iter'], 'iteration')} and {wording.seconds(result['seconds'])}, and "
        f"stopped because {reason}."
    )


def _is_fixed(result: Mapping[str, Any]) -> bool:
    """Tell whether the transform is a cosine transform."""
    choice = result.get("transform_choice")
    return result["method"] == "dct" or (choice is not None and choice["name"] != "learned")


def _chosen_transform(result: Mapping[str, Any]) -> str:
    choice = result.get("transform_choice")
    if choice is None:
        return "a chosen transform"
    by = "which explains held-out frames best"
    if choice["name"] != "learned":
        return f"the cosine transform, {by} (a learned one does not pay off)"
    return f"a learned transform, {by}"


def _tiles(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    result = record["result"]
    return [
        ("sources", wording.number(result["n_sources"])),
        ("components", wording.number(result["n_components"])),
        ("divergence per coefficient", wording.number(result["divergence_per_entry"], digits=3)),
        ("time", wording.seconds(result["seconds"])),
    ]


def _source_rows(shown: SeparationShown) -> list[dict[str, Any]]:
    rows = [
        {
            "name": entry["name"],
            "share": wording.percent(entry["energy_share"]),
            "components": wording.ranges(entry["components"]),
            "frequencies": ", ".join(f"{value:.0f} Hz" for value in entry["frequencies"]),
            "player": shown.players[at + 1] if shown.players else None,
        }
        for at, entry in enumerate(shown.record["sources"])
    ]
    if shown.players:
        mixture = {"name": "recording", "share": "", "components": "", "frequencies": ""}
        rows.insert(0, mixture | {"player": shown.players[0]})
    return rows


def _spectrograms(shown: SeparationShown) -> list[tuple[str, Any]]:
    rate = shown.record["data"]["rate"]
    signals = [("The recording", shown.mixture)]
    signals += [
        (_heading(entry["name"]), source)
        for entry, source in zip(shown.record["sources"], shown.sources, strict=True)
    ]
    powers = [(name, *sound_figures.power_spectrogram(signal, rate)) for name, signal in signals]
    # One scale for all: where sources cancel each other, they are louder than the recording.
    loudest = max(float(power.max()) for _, power, _ in powers)
    return [
        (
            name,
            drawing(sound_figures.spectrogram(power, duration, rate, loudest, f"Spectrogram: {name}")),
        )
        for name, power, duration in powers
    ]


def _atoms_text(record: Mapping[str, Any]) -> str:
    if _is_fixed(record["result"]):
        return "The cosines that carry most of the power. Their frequencies lie on a fixed grid."
    return (
        "The atoms that carry most of the power, with the frequency of the sinusoid that fits each best, and "
        "the share of the atom that is not that sinusoid. A learned transform is not bound to a grid: two "
        "atoms at the same frequency are one partial in two phases."
    )


def _atom_row(entry: Mapping[str, Any]) -> dict[str, str]:
    frequency = entry["frequency"]
    return {
        "atom": wording.number(entry["atom"]),
        "power": wording.percent(entry["power_share"]),
        "frequency": wording.number(None) if frequency is None else f"{frequency:.1f}",
        "residual": wording.percent(entry["residual_share"]),
        "source": entry["source"],
    }


def _atom_drawing(shown: SeparationShown) -> str:
    entries = shown.record["atoms"]
    chosen = [entry["atom"] for entry in entries]
    found = np.array([np.nan if entry["frequency"] is None else entry["frequency"] for entry in entries])
    labels = [f"{entry['atom']}" for entry in entries]
    assert shown.transform is not None
    return sound_figures.atoms(shown.transform[chosen], labels, shown.record["data"]["rate"], found)


def _heading(name: str) -> str:
    """Begin a name with a capital letter, and leave the rest as it is."""
    return name[:1].upper() + name[1:]


def _activation_drawing(shown: SeparationShown) -> str:
    """Draw the activations of components, or of whole sources where there are many components."""
    seconds = shown.mixture.shape[-1] / shown.record["data"]["rate"]
    if len(shown.components) <= MOST_PANELS:
        return sound_figures.activations(shown.activations, seconds, _component_names(shown.record))
    names = [entry["name"] for entry in shown.record["sources"]]
    weighted = shown.activations * shown.components.sum(axis=1)
    sums = np.stack([weighted[:, shown.groups == at].sum(axis=1) for at in range(len(names))], axis=1)
    return sound_figures.activations(sums, seconds, names)


def _component_names(record: Mapping[str, Any]) -> list[str]:
    """Name components by number, from 1, and source; by the source alone where each has one component."""
    names = {at: entry["name"] for entry in record["sources"] for at in entry["components"]}
    n_components = record["result"]["n_components"]
    alone = n_components == record["result"]["n_sources"]
    return [names[at] if alone else f"{at} ({names[at]})" for at in range(1, n_components + 1)]


def _facts(record: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    data, result = record["data"], record["result"]
    about_data = [
        ("files", ", ".join(data["files"])),
        ("sampling rate (Hz)", wording.number(data["rate"])),
        ("length", wording.seconds(data["seconds"])),
        ("channels", ", ".join(str(number) for number in data["n_channels"])),
    ]
    if training := data.get("training"):
        listed = [f"{name} ({', '.join(files)})" for name, files in training.items()]
        about_data.append(("training recordings", ", ".join(listed)))
    shown = ("method", "objective", "likelihood", "divergence", "eps0", "n_frames", "frame_length", "hop")
    about_result = [
        wording.fact(name, result[name], digits=4 if name == "eps0" else 8)
        for name in (*shown, "n_iter")
        if result[name] is not None
    ]
    if choice := result.get("transform_choice"):
        about_result += [
            ("transform chosen", choice["name"]),
            (
                "C per coefficient of held-out frames",
                ", ".join(
                    f"{name}: {wording.number(value, digits=6)}"
                    for name, value in zip(choice["candidates"], choice["held_out"], strict=False)
                ),
            ),
        ]
    if result["restarts"]:
        about_result.append(
            (
                "objective of each initialization",
                ", ".join(wording.number(value, digits=8) for value in result["restarts"]),
            )
        )
    parameters = [(name, wording.number(value)) for name, value in record.get("parameters", {}).items()]
    return [("Sound", about_data), ("Result", about_result), ("Parameters", parameters)]
