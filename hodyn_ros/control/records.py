"""Records of numbers that laws read and write: one block of memory with named arrays in it.

Python sees views of the block, compiled functions get its address, and C has a struct with the
same names for each part. Sizes are those of a robot: n joints, m motors, and a delay of d samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.engine.plain_python import Shapes
from hodyn_ros.typing import Array

WHOLE = ('joint', 'calls')
"""Names of arrays of whole numbers."""


class Layout(NamedTuple):
    """Names and shapes of the arrays of a record.

    Attributes
    ----------
    name : str
    parts : dict of str to dict of str to tuple of str
        Shapes of what is constant, of what is remembered from step to step, and of what is not.
    """

    name: str
    parts: Mapping[str, Shapes]

    @property
    def shapes(self) -> Shapes:
        """Shapes of all parts."""
        return {key: shape for part in self.parts.values() for key, shape in part.items()}


def shapes_of(text: str) -> Shapes:
    """Shapes from ``name: shape`` with commas between them."""
    pairs = (item.split(':') for item in text.split(','))
    return {key.strip(): tuple(shape.split()) for key, shape in pairs}


def sized(shape: tuple[str, ...], n: int, m: int, d: int) -> tuple[int, ...]:
    """Shape in numbers for the sizes of a robot."""
    known = {'n': n, 'm': m, 'd+1': d + 1, 'n+m': n + m}
    return tuple(known[x] if x in known else int(x) for x in shape)


class Record:
    """Block of memory with named arrays and numbers, of zeros at first.

    Parameters
    ----------
    layout : Layout
    n, m, d : int
        Numbers of joints and motors, and samples of delay.

    Attributes
    ----------
    flat : ndarray
        All numbers; the other attributes, by the names of the layout, are parts of it.
    kept : ndarray
        Those of the second part.
    address : int
        Of the first number.
    """

    n: int
    m: int
    d: int
    flat: Array
    kept: Array
    address: int
    _places: Mapping[str, int] = MappingProxyType({})

    def __init__(self, layout: Layout, n: int, m: int, d: int) -> None:
        sizes = {key: sized(shape, n, m, d) for key, shape in layout.shapes.items()}
        flat, places, start = np.zeros(sum(map(prod, sizes.values()))), {}, 0
        own = vars(self)
        for key, shape in sizes.items():
            part = flat[start : start + prod(shape)]
            part = part.view(np.int64) if key in WHOLE else part
            if shape:
                own[key] = part.reshape(shape)
            places[key] = start
            start += prod(shape)
        ends = np.cumsum([sum(prod(sizes[x]) for x in y) for y in layout.parts.values()])
        own |= {'layout': layout, 'n': n, 'm': m, 'd': d, 'flat': flat, '_places': places}
        own |= {'kept': flat[ends[0] : ends[1]], 'address': flat.ctypes.data}

    def fill(self, values: Mapping[str, Any]) -> None:
        """Write arrays and numbers by their names."""
        for key, value in values.items():
            start = self._places[key]
            target = vars(self).get(key, self.flat[start : start + 1])
            target[...] = value

    def __getattr__(self, key: str) -> Any:
        try:
            return self.flat.item(self._places[key])
        except KeyError:
            raise AttributeError(key) from None

    def __setattr__(self, key: str, value: float) -> None:
        self.flat[self._places[key]] = value

    def __deepcopy__(self, memo: Any) -> Record:
        return _restored(self.layout, self.n, self.m, self.d, self.flat)

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.layout, self.n, self.m, self.d, self.flat)


def _restored(layout: Layout, n: int, m: int, d: int, flat: Array) -> Record:
    """Record of its own memory with the numbers of another one."""
    record = Record(layout, n, m, d)
    record.flat[:] = flat
    return record
