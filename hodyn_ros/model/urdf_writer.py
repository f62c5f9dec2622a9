"""A model as URDF text, so that a robot from screws or from a table can be given to other tools.

URDF wants the axis of a joint to pass through the origin of its child link and knows no helical
joints. Where a body frame lies off its axis, a massless link on the axis comes between; a helical
joint becomes a turning joint and a prismatic one that mimics it, with a massless link between.
"""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.lie import se3
from hodyn_ros.model.inertia import inertia_parts
from hodyn_ros.model.robot import BASE, RobotModel
from hodyn_ros.model.screws import pitches

Array = NDArray[np.float64]

# URDF demands numbers where a model has no limit; simulators read this one as infinite.
_NO_LIMIT = 1e16


def to_urdf(model: RobotModel) -> str:
    """Write a model as a URDF.

    Parameters
    ----------
    model : RobotModel

    Returns
    -------
    str
        XML text. Read again it has the same independent joints in the same directions, the same
        link frames and, to rounding, the same efforts. Each body's inertia belongs to the link
        behind its joint; gravity, friction laws, armature and the inertia of the base have no
        place in it. A helical joint becomes a joint of its name and a mimic joint
        `<name>_advance`: tools that ignore mimic joints see one degree of freedom too many.
    """
    return _Writer(model).text()


class _Writer:
    def __init__(self, model: RobotModel) -> None:
        self.model = model
        self.robot = ElementTree.Element('robot', name=model.name)
        self.taken = {*model.links, *model.body_names}
        # The link of a body is the first one that shares its frame.
        self.main: dict[int, str] = {BASE: model.base_link}
        for name, frame in model.links.items():
            if frame.body not in self.main and np.array_equal(frame.pose, np.eye(4)):
                self.main[frame.body] = name
        for i, joint in enumerate(model.body_names):
            if i not in self.main:
                self.main[i] = self._new_name(f'{joint}_link')

    def text(self) -> str:
        self._link(self.main[BASE])
        for i in range(self.model.n_bodies):
            self._body(i)
        for name, frame in self.model.links.items():
            main = self.main[frame.body]
            if name != main:
                self._link(name)
                self._joint(self._new_name(f'{name}_joint'), 'fixed', main, name, frame.pose)
        ElementTree.indent(self.robot)
        return ElementTree.tostring(self.robot, encoding='unicode') + '\n'

    def _body(self, i: int) -> None:
        model = self.model
        X, name = model.X[i], model.body_names[i]
        parent, child = self.main[int(model.parent[i])], self.main[i]
        follows = model.joint_names[model.coordinate[i]]
        multiplier, offset = float(model.multiplier[i]), float(model.offset[i])
        mimic = (follows, multiplier, offset) if follows != name else None
        if not X[:3].any():
            self._link(child, model.M_body[i])
            self._joint(name, 'prismatic', parent, child, model.B[i], X[3:], mimic, i)
            return
        e, pitch = X[:3], float(pitches(X[None])[0])
        # The point of the axis that is closest to the origin of the body frame.
        point = np.cross(e, X[3:])
        if np.abs(point).max() <= 1e-15:
            point = np.zeros(3)
        on_axis = se3.pose(np.eye(3), point)
        last = child
        if pitch or point.any():
            last = self._new_name(f'{name}_axis')
            self._link(last)
        else:
            self._link(child, model.M_body[i])
        lower, upper = self._range(i)
        kind = 'continuous' if np.isinf(lower) and np.isinf(upper) else 'revolute'
        self._joint(name, kind, parent, last, model.B[i] @ on_axis, e, mimic, i)
        if last == child:
            return
        self._link(child, model.M_body[i])
        to_body = se3.inverse(on_axis)
        if pitch:
            self._joint(
                self._new_name(f'{name}_advance'),
                'prismatic',
                last,
                child,
                to_body,
                e,
                (follows, pitch * multiplier, pitch * offset),
            )
        else:
            self._joint(self._new_name(f'{name}_offset'), 'fixed', last, child, to_body)

    def _range(self, i: int) -> tuple[float, float]:
        """Position limits of a body's joint, none for a mimic joint."""
        limits, j = self.model.limits, self.model.coordinate[i]
        if self.model.joint_names[j] != self.model.body_names[i]:
            return -np.inf, np.inf
        return float(limits.lower[j]), float(limits.upper[j])

    def _link(self, name: str, M_body: Array | None = None) -> None:
        link = ElementTree.SubElement(self.robot, 'link', name=name)
        if M_body is None or not M_body.any():
            return
        inertia = inertia_parts(f'Link {name!r}', M_body)
        tensor = np.asarray(inertia.inertia_com)
        inertial = ElementTree.SubElement(link, 'inertial')
        ElementTree.SubElement(inertial, 'origin', xyz=_numbers(np.asarray(inertia.com)))
        ElementTree.SubElement(inertial, 'mass', value=repr(float(inertia.mass)))
        entries = {
            f'i{"xyz"[a]}{"xyz"[b]}': repr(float(tensor[a, b]))
            for a in range(3)
            for b in range(a, 3)
        }
        ElementTree.SubElement(inertial, 'inertia', entries)

    def _joint(
        self,
        name: str,
        kind: str,
        parent: str,
        child: str,
        origin: Array,
        axis: Array | None = None,
        mimic: tuple[str, float, float] | None = None,
        body: int | None = None,
    ) -> None:
        joint = ElementTree.SubElement(self.robot, 'joint', name=name, type=kind)
        ElementTree.SubElement(
            joint, 'origin', xyz=_numbers(origin[:3, 3]), rpy=_numbers(_rpy(origin[:3, :3]))
        )
        ElementTree.SubElement(joint, 'parent', link=parent)
        ElementTree.SubElement(joint, 'child', link=child)
        if axis is None:
            return
        ElementTree.SubElement(joint, 'axis', xyz=_numbers(axis))
        velocity = effort = upper = np.inf
        lower = -np.inf
        if body is not None:
            lower, upper = self._range(body)
            if mimic is None:
                j = self.model.coordinate[body]
                velocity = float(self.model.limits.velocity[j])
                effort = float(self.model.limits.effort[j])
        limit = {'velocity': _limit(velocity), 'effort': _limit(effort)}
        if kind != 'continuous':
            limit = {'lower': _limit(lower), 'upper': _limit(upper), **limit}
        ElementTree.SubElement(joint, 'limit', limit)
        if mimic is not None:
            followed, multiplier, offset = mimic
            ElementTree.SubElement(
                joint, 'mimic', joint=followed, multiplier=repr(multiplier), offset=repr(offset)
            )

    def _new_name(self, wanted: str) -> str:
        while wanted in self.taken:
            wanted += '_'
        self.taken.add(wanted)
        return wanted


def _numbers(values: Array) -> str:
    # repr keeps every bit.
    return ' '.join(repr(float(value)) for value in values)


def _limit(value: float) -> str:
    return repr(float(np.clip(value, -_NO_LIMIT, _NO_LIMIT)))


def _rpy(R: Array) -> Array:
    """Roll, pitch and yaw of R = Rz(yaw) Ry(pitch) Rx(roll).

    Roll is taken from what is left of R without the yaw, so that R comes out right also where the
    pitch is 90 degrees and only the difference of roll and yaw is determined.
    """
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    pitch = np.arctan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])
