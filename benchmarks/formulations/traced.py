"""The reference formulations of `hodyn_ros.dynamics`, recorded as they are written.

They are run on arrays of the recorder's scalars instead of numbers. For that time the modules that
they consist of see a `numpy` whose new arrays hold objects, and poses of the bodies come from the
sines and cosines that are inputs of the program. So their 6x6 matrices and the order of their
products remain, which a program for one robot has to pay for; what is folded and shared is decided
by the recorder as for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.formulations import screws
from benchmarks.formulations.robots import BASE, Robot, in_own_frames
from hodyn_ros import RobotModel
from hodyn_ros.dynamics import body_fixed, closed_form, hybrid, nth_order, spatial
from hodyn_ros.engine.program import Number
from hodyn_ros.kinematics import joints
from hodyn_ros.lie import leibniz, se3, so3

MODULES = (
    body_fixed,
    closed_form,
    hybrid,
    nth_order,
    spatial,
    joints,
    leibniz,
    se3,
    so3,
)
FORMULATIONS: dict[str, Callable[..., Any]] = {
    'body_fixed': body_fixed.body_efforts,
    'nth_order': nth_order.body_efforts,
    'spatial': spatial.body_efforts_with_base_acceleration,
    'hybrid': hybrid.body_efforts,
    'closed_form': closed_form.body_efforts,
}


class Objects(np.ndarray):
    """Array of numbers and scalars; products of matrices skip zeros."""

    def __matmul__(self, other: Any) -> Any:
        return _product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _product(other, self)

    def __pow__(self, exponent: Any) -> Any:  # type: ignore[override]
        assert exponent == 2
        return self * self


class ObjectNumPy:
    """NumPy whose new arrays hold objects."""

    def __init__(self, sine: Sequence[Number], cosine: Sequence[Number]) -> None:
        self.sine, self.cosine = sine, cosine

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def zeros(self, shape: Any) -> Objects:
        """Zeros as objects."""
        return np.zeros(shape).astype(object).view(Objects)

    empty = zeros

    def zeros_like(self, array: Any) -> Objects:
        """Zeros as objects."""
        return self.zeros(array.shape)

    empty_like = zeros_like

    def eye(self, n: int) -> Objects:
        """Identity as objects."""
        return np.eye(n).astype(object).view(Objects)

    def asarray(self, array: Any, dtype: Any = None) -> Any:
        """Do not convert."""
        return array

    def sin(self, q: Any) -> Objects:
        """Return the sines of all joints."""
        return self._all(self.sine, q)

    def cos(self, q: Any) -> Objects:
        """Return the cosines of all joints."""
        return self._all(self.cosine, q)

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        """Choose between objects."""
        return np.where(condition, a, b).view(Objects)

    def _all(self, values: Sequence[Number], q: Any) -> Objects:
        assert q.size == len(values)
        array: Objects = _objects(values).reshape(q.shape)
        return array


def efforts(
    name: str,
    model: RobotModel,
    sine: Sequence[Number],
    cosine: Sequence[Number],
    q: Sequence[Sequence[Number]],
    order: int,
) -> list[list[Number]]:
    """Efforts of all joints and their derivatives.

    Parameters
    ----------
    name : str
        One of `FORMULATIONS`.
    model : RobotModel
    sine, cosine, q, order
        See `body_fixed.efforts`.
    """
    robot = in_own_frames(model)
    coordinates = _objects([[row[k] for row in q] for k in range(order + 3)])[None]
    joints._constants.cache_clear()
    with _objects_in_numpy(robot, sine, cosine):
        result = FORMULATIONS[name](_cleaned(model, robot), coordinates, {})
    return [list(row) for row in result[0]]


@contextmanager
def _objects_in_numpy(
    robot: Robot, sine: Sequence[Number], cosine: Sequence[Number]
) -> Iterator[None]:
    """Let the reference modules see `ObjectNumPy`, and the poses that it can hold."""
    numpy = ObjectNumPy(sine, cosine)

    def body_poses(model: RobotModel, positions: Any) -> list[Objects]:
        poses: list[Any] = []
        for i, constants in enumerate(robot.bodies):
            passage = screws.Passage(constants, sine[i], cosine[i], positions[0, i])
            relative = np.eye(4).astype(object).view(Objects)[None]
            for row in range(3):
                relative[0, row, :3] = passage.R[row]
                relative[0, row, 3] = passage.p[row]
            parent = constants.parent
            poses.append(relative if parent == BASE else poses[parent] @ relative)
        return poses

    with ExitStack() as stack:
        for module in MODULES:
            stack.enter_context(mock.patch.object(module, 'np', numpy))
            if hasattr(module, 'body_poses'):
                stack.enter_context(mock.patch.object(module, 'body_poses', body_poses))
        yield


def _objects(values: Any) -> Objects:
    array: Objects = np.array(values, dtype=object).view(Objects)
    return array


def _product(a: Any, b: Any) -> Any:
    """Matrix product that skips zeros."""
    a, b = np.asarray(a, dtype=object), np.asarray(b, dtype=object)
    if b.ndim == 1:
        return _product(a, b[:, None])[..., 0]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = np.broadcast_to(a, (*batch, *a.shape[-2:]))
    b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    result = np.zeros((*batch, a.shape[-2], b.shape[-1])).astype(object)
    for index in np.ndindex(*batch):
        rows = [[(k, x) for k, x in enumerate(row) if not _is_zero(x)] for row in b[index]]
        for i, row in enumerate(a[index]):
            out = result[index][i]
            for k, x in enumerate(row):
                if not _is_zero(x):
                    for j, y in rows[k]:
                        out[j] = out[j] + x * y
    return result.view(Objects)


def _is_zero(value: Any) -> bool:
    return isinstance(value, float) and value == 0.0


def _cleaned(model: RobotModel, robot: Robot) -> RobotModel:
    """Model with the same zeros as the numbers of the other contestants."""
    B = np.tile(np.eye(4), (model.n_bodies, 1, 1))
    for i, constants in enumerate(robot.bodies):
        B[i, :3, :3], B[i, :3, 3] = constants.R, constants.p
    return replace(model, B=B)
