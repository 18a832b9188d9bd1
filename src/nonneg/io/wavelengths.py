"""Wavelengths as files give them, in nanometers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nonneg._typing import FloatArray

NANOMETERS = {
    "nm": 1.0,
    "nanometer": 1.0,
    "nanometers": 1.0,
    "nanometre": 1.0,
    "nanometres": 1.0,
    "um": 1e3,
    "\N{MICRO SIGN}m": 1e3,
    "\N{GREEK SMALL LETTER MU}m": 1e3,
    "micrometer": 1e3,
    "micrometers": 1e3,
    "micrometre": 1e3,
    "micrometres": 1e3,
    "micron": 1e3,
    "microns": 1e3,
    "angstrom": 0.1,
    "angstroms": 0.1,
    "mm": 1e6,
    "millimeters": 1e6,
    "cm": 1e7,
    "centimeters": 1e7,
    "m": 1e9,
    "meters": 1e9,
}
"""How many nanometers a unit of a header is."""
NO_LENGTHS = ("index", "ghz", "mhz")
"""Units of a header under which numbers of bands or frequencies are listed."""
MICROMETERS = (0.1, 100.0)
"""No sensor has bands so near to zero in nanometers: numbers in this range are micrometers."""


def in_nanometers(wavelengths: Any) -> FloatArray:
    """Return wavelengths in nanometers, whichever of the two usual units they are in."""
    places = np.asarray(wavelengths, dtype=np.float64)
    low, high = MICROMETERS
    return 1e3 * places if places.size and ((places >= low) & (places < high)).all() else places


def listed_entries(listed: Any) -> list[Any]:
    """Return the entries of a list in a header."""
    entries = [listed] if isinstance(listed, str) else list(listed)
    return entries[:-1] if entries and entries[-1] == "" else entries


def wavelengths_of(metadata: Mapping[str, Any], n_bands: int) -> FloatArray | None:
    """Return the wavelengths that a header lists."""
    entries = listed_entries(metadata.get("wavelength") or [])
    unit = str(metadata.get("wavelength units", "")).strip().lower()
    if len(entries) != n_bands or unit in NO_LENGTHS:
        return None
    try:
        places = np.asarray(entries, dtype=np.float64)
    except ValueError:
        return None
    if unit == "wavenumber":
        # Waves per centimeter.
        return 1e7 / places if (places > 0).all() else None
    factor = NANOMETERS.get(unit)
    return in_nanometers(places) if factor is None else places * factor
