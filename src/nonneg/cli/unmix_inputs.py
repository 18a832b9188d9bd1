"""Hyperspectral images for `nonneg unmix`: from files, known ones, or generated."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nonneg.applications.hyperspectral import Cube, SpectralLibrary, read_cube, read_library
from nonneg.applications.hyperspectral.library import known_spectra
from nonneg.exceptions import FileFormatError, InvalidParameterError, UnknownNameError
from nonneg.io.wavelengths import in_nanometers

RANGES = {"samson": (401.0, 889.0)}
"""Wavelengths of the first and the last band of a real image, in nanometers, as published."""
_SIZE = (80, 100, 120)


@dataclass(frozen=True)
class Scene:
    """A scene and what is known of it."""

    cube: Cube  # the scene
    title: str  # what it is
    n_endmembers: int | None  # how many endmembers are looked for; None to estimate it
    mask: Any = None  # which pixels count
    library: SpectralLibrary | None = None  # spectra to compare with
    # What the spectra of the library are, as in "degrees from the true ones".
    known_as: str = "those of the library"
    truth_maps: Any = None  # known abundances, in the order of the library


def opened_scene(options: argparse.Namespace, known: Sequence[str]) -> Scene:
    """Open the scene that was asked for."""
    if (options.cube is None) is not options.example:
        raise InvalidParameterError(
            f"Give one of: a file with a cube, the name of a real image ({', '.join(known)}), or --example."
        )
    count, estimated = options.endmembers, options.endmembers == "auto"
    count = None if estimated else count
    if options.example:
        scene = _generated(count or 4, options.seed)
        scene = replace(scene, n_endmembers=None) if estimated else scene
    elif options.cube in known and not Path(options.cube).exists():
        scene = _real(options.cube, count)
        scene = replace(scene, n_endmembers=None) if estimated else scene
    else:
        path = Path(options.cube)
        if not path.suffix and not path.exists():
            raise UnknownNameError.of("CUBE", options.cube, known, other="the path of a cube")
        cube = read_cube(
            path,
            variable=options.variable,
            no_data=options.no_data,
            bands="all" if options.all_bands else None,
        )
        scene = Scene(cube, path.name, count)
    return _completed(scene, options)


def _completed(scene: Scene, options: argparse.Namespace) -> Scene:
    cube = scene.cube
    if options.wavelengths is not None:
        cube = replace(cube, wavelengths=in_nanometers(_numbers(options.wavelengths)))
    mask = scene.mask
    if options.mask is not None:
        mask = _numbers(options.mask)
    if options.library is None:
        return replace(scene, cube=cube, mask=mask)
    library = read_library(options.library).in_bands(cube.kept, cube.wavelengths)
    # A library that does not fit is told before the work, not after it.
    known_spectra(library, cube.kept_wavelengths, int(cube.kept.sum()))
    return Scene(cube, scene.title, scene.n_endmembers, mask, library)


def _numbers(path: Path) -> Any:
    try:
        if path.suffix.lower() == ".npy":
            return np.load(path, allow_pickle=False)
        return np.loadtxt(path, dtype=np.float64, ndmin=1)
    except MemoryError:
        raise
    except Exception as error:  # NumPy's parser of headers raises whatever it stumbles over
        raise FileFormatError(
            f"{path} could not be read: {str(error).rstrip('.')}. Expected .npy, or text with one number per "
            "line."
        ) from error


def _generated(n_materials: int, seed: int) -> Scene:
    from nonneg.datasets import scene_like

    rows, columns, bands = _SIZE
    made = scene_like(rows, columns, bands, n_materials, noise=0.01, rng=seed)
    wavelengths = np.linspace(400.0, 2400.0, bands)
    names = tuple(f"material {at}" for at in range(n_materials))
    weights = np.asarray(made.W)
    shares = weights / weights.sum(axis=1, keepdims=True)
    return Scene(
        Cube(made.X.reshape(rows, columns, bands), wavelengths, source="a generated image"),
        f"a generated image of {n_materials} materials",
        n_materials,
        library=SpectralLibrary(names, made.H, wavelengths),
        known_as="the true ones",
        truth_maps=shares.reshape(rows, columns, -1),
    )


def _real(name: str, count: int | None) -> Scene:
    from nonneg.datasets import load_samson

    found = load_samson()
    rows, columns = found.sample_shape or (1, len(found.y))
    values = np.asarray(found.X).reshape(rows, columns, -1)
    ends = RANGES.get(name)
    wavelengths = None if ends is None else np.linspace(*ends, values.shape[2])
    cube = Cube(values, wavelengths, source=name)
    spectra = found.extras.get("endmembers")
    if spectra is None:
        return Scene(cube, name, count)
    names = found.names or tuple(f"endmember {at}" for at in range(len(spectra)))
    maps = found.extras["abundances"].reshape(rows, columns, -1)
    library = SpectralLibrary(names, spectra, wavelengths)
    return Scene(
        cube, name, count or len(spectra), library=library, known_as="the published ones", truth_maps=maps
    )
