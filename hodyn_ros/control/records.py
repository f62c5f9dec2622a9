"""Records of numbers that laws read and write: one block of memory with named arrays in it.

Python sees views of the block, compiled functions get its address, and C has a struct with the
same names. Sizes are those of a robot: n joints, m motors, and a delay of d samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

WHOLE = ('joint', 'calls')
"""Names of arrays of whole numbers."""


class Layout(NamedTuple):
    """Names and shapes of the arrays of a record.

    Attributes
    ----------
    name : str
    shapes : dict of str to tuple of str
        Shapes by names: n, m, d+1, n+m or numbers; none for a number, which only Python writes.
    """

    name: str
    shapes: dict[str, tuple[str, ...]]

    def sizes(self, n: int, m: int, d: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the arrays for the sizes of a robot."""
        known = {'n': n, 'm': m, 'd+1': d + 1, 'n+m': n + m}
        return {
            key: tuple(known[x] if x in known else int(x) for x in shape)
            for key, shape in self.shapes.items()
        }


def layout(name: str, text: str) -> Layout:
    """Layout from ``name: shape`` with commas between them."""
    pairs = (item.split(':') for item in text.split(','))
    return Layout(name, {key.strip(): tuple(shape.split()) for key, shape in pairs})


class Record:
    """Block of memory with named arrays, of zeros at first.

    Parameters
    ----------
    layout : Layout
    n, m, d : int
        Numbers of joints and motors, and samples of delay.

    Attributes
    ----------
    flat : ndarray
        All numbers; the other attributes, by the names of the layout, are parts of it.
    """

    def __init__(self, layout: Layout, n: int, m: int, d: int) -> None:
        self.layout, self.n, self.m, self.d = layout, n, m, d
        sizes, start = layout.sizes(n, m, d), 0
        self.flat = np.zeros(sum(map(prod, sizes.values())))
        self._places = {}
        for key, shape in sizes.items():
            part = self.flat[start : start + prod(shape)]
            part = part.view(np.int64) if key in WHOLE else part
            if shape:
                vars(self)[key] = part.reshape(shape)
            self._places[key] = start
            start += prod(shape)

    def fill(self, values: Mapping[str, Any]) -> None:
        """Write arrays and numbers by their names."""
        for key, value in values.items():
            start = self._places[key]
            target = vars(self).get(key, self.flat[start : start + 1])
            target[...] = value

    def __getattr__(self, key: str) -> Any:
        places = self.__dict__.get('_places', {})
        if key not in places:
            raise AttributeError(key)
        return float(self.flat[places[key]])

    def __deepcopy__(self, memo: Any) -> Record:
        other = Record(self.layout, self.n, self.m, self.d)
        other.flat[:] = self.flat
        return other
