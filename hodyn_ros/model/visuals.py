"""Shapes of links as a URDF has them for display, and the files of meshes that it names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element

import numpy as np

from hodyn_ros.model.elements import (
    child_of,
    needed_child,
    numbers_of,
    origin_of,
    parse_xml,
    read_element,
    text_of,
)
from hodyn_ros.model.sources import find_package, xml_text
from hodyn_ros.typing import Array

_SIZES = {'box': ('size',), 'cylinder': ('radius', 'length'), 'sphere': ('radius',)}
_SIZES['capsule'] = _SIZES['cylinder']


class Visual(NamedTuple):
    """A shape of a link.

    Attributes
    ----------
    link : str
    pose : ndarray, shape (4, 4)
        In the frame of the link.
    kind : {'box', 'cylinder', 'capsule', 'sphere', 'mesh'}
    size : ndarray
        Edges of a box (3,), radius and length of a cylinder or capsule (2,), both along z,
        radius of a sphere (1,) [m]; scale of a mesh (3,).
    mesh : Path or None
        File of a mesh.
    """

    link: str
    pose: Array
    kind: str
    size: Array
    mesh: Path | None = None


def read_visuals(
    given: str | bytes | os.PathLike[str], folder: str | os.PathLike[str] | None = None
) -> list[Visual]:
    """Shapes of all links of a URDF; none of a description that is none.

    Parameters
    ----------
    given : str, bytes or path
        As of `RobotModel.from_urdf`.
    folder : path, optional
        Folder from which files are named; by default that of the description.

    Returns
    -------
    list of Visual
        Meshes whose files are not found are left out.

    Raises
    ------
    ModelError
        If the description cannot be read, or a shape has no size.
    """
    text, path = xml_text(given, None)
    root, _ = parse_xml(text)
    place = Path(path).parent if folder is None else Path(folder)
    found = (
        read_element(_visual, link, visual, place)
        for link in root.findall('link')
        for visual in link.findall('visual')
    )
    return [visual for visual in found if visual is not None]


def _visual(link: Element, visual: Element, folder: Path) -> Visual | None:
    """Shape of an element <visual>; None of a kind that is not known or without its file."""
    name = text_of(link, 'name')
    pose = origin_of(f'Link {name!r}', visual)
    geometry = needed_child(visual, 'geometry')
    if (mesh := child_of(geometry, 'mesh')) is not None:
        file = find_mesh(text_of(mesh, 'filename'), folder)
        scale = numbers_of(mesh, 'scale', [1.0, 1.0, 1.0])
        return None if file is None else Visual(name, pose, 'mesh', scale, file)
    for kind, attributes in _SIZES.items():
        if (shape := child_of(geometry, kind)) is not None:
            count = 3 if kind == 'box' else 1
            sizes = [numbers_of(shape, what, [0.0] * count) for what in attributes]
            return Visual(name, pose, kind, np.concatenate(sizes))
    return None


def find_mesh(name: str, folder: Path) -> Path | None:
    """File that a description names.

    Parameters
    ----------
    name : str
        ``package://package/path``, ``file:///path``, or a path.
    folder : Path
        That of the description, from which paths begin. A package that is not installed is
        looked for in the folders above it.

    Returns
    -------
    Path or None
        None if there is no such file.
    """
    scheme, separator, rest = name.partition('://')
    if separator and scheme == 'package':
        package, _, path = rest.lstrip('/').partition('/')
        folder = folder.absolute()
        above = [parent / package for parent in (folder, *folder.parents)]
        places = [root / path for root in (find_package(package), *above) if root]
    else:
        places = [folder / (unquote(rest) if separator else name)]
    return next((place for place in places if place.is_file()), None)
