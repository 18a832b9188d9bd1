"""`nonneg unmix CUBE`: the endmembers of a hyperspectral image, and abundance maps."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nonneg.cli import arguments, terminal
from nonneg.exceptions import FileFormatError, InvalidParameterError

if TYPE_CHECKING:
    from nonneg.io.cube import Cube

PIXELS = """
--all-bands: also use the bands that an ENVI header flags as bad (bbl)
--mask FILE: .npy, True for pixels to use
--no-data X: value of pixels without data (may be nan)
""".strip()
"""Options that `unmix` and `transform` share."""
OPTIONS = f"""
cube FILE?: .npy, .npz, .mat or ENVI (.hdr), rows x columns x bands
--example: use a generated image of four materials
-k/--endmembers K: number of endmembers, or 'auto' to estimate it (default: auto; 4 for the example)

[search]
--method NAME: auto (default), smoothed-spa, snpa, spa, vca, fast-anchor, xray,
    merit, merit-exact, fast-gradient or min-volume
--constraint NAME: on the abundances of a pixel: normalized (default), sum-to-one (fully constrained least
    squares), at-most-one or nonnegative
--seed
--n-jobs

[image]
--variable NAME: which array of a .npz or .mat file to read
--wavelengths FILE: wavelengths of all bands, in nanometers or micrometers: .npy, or one per line
--negative-tol X: set negative entries to zero down to this fraction of the largest entry (default: 0.05)
--library FILE: spectral library: .csv (wavelength, then one column per material) or an ENVI library
{PIXELS}

[output]
--maps npy|envi [npy]: format of the abundance maps (default: npy)
"""


def run(options: argparse.Namespace) -> None:
    """Read, unmix, write."""
    import numpy as np

    from nonneg.applications import Unmixing
    from nonneg.cli import files
    from nonneg.io.cube import in_nanometers
    from nonneg.report import cubes

    folder = arguments.output_folder(options, options.cube or "example", "unmixed")
    cube, library = _opened(options)
    number = options.endmembers or (len(library.names) if options.example else "auto")
    title = "a generated image" if options.example else options.cube.name
    note_of(title, cube)
    params = arguments.parameters(options, "method", "constraint", "negative_tol")
    model = Unmixing(number, **params)
    _, seconds = terminal.timed(model.fit, cube, mask=read_numbers(options.mask))
    record = cubes.describe(model, cube, title, seconds, library)
    names = cubes.endmember_names(record.details["endmembers"])
    places = np.flatnonzero(model.bands_) if model.wavelengths_ is None else in_nanometers(model.wavelengths_)
    # The format in which `--library` reads spectra.
    spectra = zip(places.tolist(), model.endmembers_.T.tolist(), strict=True)
    heading = ["band" if model.wavelengths_ is None else "wavelength", *names]
    written: dict[str, Any] = maps_file(options, model.abundances_, cube, names) | {
        "residuals.npy": files.array_file(model.residuals_),
        "endmembers.csv": files.table_file(heading, [[band, *row] for band, row in spectra]),
    }
    if not model.mask_.all():
        written["mask.npy"] = files.array_file(model.mask_)
    record.files = written
    terminal.finish(folder, record)


def note_of(title: str, cube: Cube) -> None:
    """Say how large an image is."""
    terminal.progress(f"{title}: {cube.shape[0]} x {cube.shape[1]} pixels, {cube.shape[2]} bands")


def maps_file(
    options: argparse.Namespace, maps: Any, cube: Cube, names: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the file of abundance maps, in the format that was asked for."""
    from nonneg.applications.hyperspectral import write_maps
    from nonneg.cli import files

    if options.maps != "envi":
        return {"abundances.npy": files.array_file(maps)}
    write = partial(write_maps, maps=maps, names=names or None, georeference=cube.georeference)
    return {"abundances.hdr": write}


def read_image(path: Path, options: argparse.Namespace) -> Cube:
    """Open a cube as the options say."""
    from nonneg.applications.hyperspectral import read_cube

    bands = "all" if options.all_bands else None
    wavelengths = read_numbers(getattr(options, "wavelengths", None))
    return read_cube(
        path, variable=options.variable, wavelengths=wavelengths, no_data=options.no_data, bands=bands
    )


def _opened(options: argparse.Namespace) -> tuple[Cube, Any]:
    """Open the image that was asked for, and the library of known spectra, if there is one."""
    from nonneg.applications.hyperspectral import read_library
    from nonneg.io.cube import in_nanometers

    if (options.cube is None) is not options.example:
        raise InvalidParameterError("Give either a file with a cube or --example.")
    cube, library = _example(options.seed) if options.example else (read_image(options.cube, options), None)
    if options.wavelengths is not None:
        cube = replace(cube, wavelengths=in_nanometers(read_numbers(options.wavelengths)))
    if options.library is not None:
        library = read_library(options.library)
        # A library that does not fit is told before the work, not after it.
        library.at(cube.kept_wavelengths, cube.kept)
    return cube, library


def read_numbers(path: Path | None) -> Any:
    """Read a mask of pixels or wavelengths, if there are any."""
    import numpy as np

    if path is None:
        return None
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


def _example(seed: int) -> tuple[Cube, Any]:
    """Generate an image of four materials, and the library of their spectra."""
    import numpy as np

    from nonneg.applications.hyperspectral import Cube, SpectralLibrary
    from nonneg.datasets import scene_like

    scene = scene_like(80, 100, 120, 4, noise=0.01, rng=seed)
    wavelengths = np.linspace(400.0, 2400.0, 120)
    names = tuple(f"material {at}" for at in range(4))
    cube = Cube(np.asarray(scene.X).reshape(80, 100, 120), wavelengths, source="a generated image")
    return cube, SpectralLibrary(names, scene.H, wavelengths)
