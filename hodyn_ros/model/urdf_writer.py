"""Writer of robots in URDF.

URDF wants the axis of a joint to pass through the origin of its child link and knows no helical
joints. Where a body frame lies off its axis, a massless link on the axis comes between; a helical
joint becomes a turning joint and a prismatic one that mimics it, with a massless link between.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3
from hodyn_ros.model.assembly import Joint, Mimic
from hodyn_ros.model.dialects import VERSIONS
from hodyn_ros.model.elements import (
    FALLING,
    FALLING_LIMITS,
    INERTIA,
    LIMITS,
    NO_LIMIT,
    needed_child,
)
from hodyn_ros.model.inertia import Inertia, inertia_parts
from hodyn_ros.model.limits import Limits
from hodyn_ros.model.loops import Coupling
from hodyn_ros.model.loops_in_xml import ENDS, TYPES
from hodyn_ros.model.mechanism import BASE, Closure, Mechanism
from hodyn_ros.names import listed
from hodyn_ros.typing import Array


def to_urdf(model: Mechanism) -> str:
    """XML text of a URDF of a model.

    Read again it has the same independent joints in the same directions, the same link frames and,
    to rounding, the same efforts. Each body's inertia belongs to the link behind its joint;
    gravity, friction laws, armature, limits of torque rates and the inertia of the base have no
    place in it. A helical joint becomes a joint of its name and a mimic joint `<name>_advance`:
    tools that ignore mimic joints see one degree of freedom too many.

    Closed loops are written as URDF+ has them, balls as the type spherical, and where joints are
    when the loops are closed, unless it is zero, as `start` of <joint>: both are not of URDF+.

    Parameters
    ----------
    model : RobotModel

    Returns
    -------
    str
        Numbers are written with all their digits.

    Raises
    ------
    ModelError
        If a coupling is no ratio of two joints side by side, which is all that URDF+ can say.

    Examples
    --------
    >>> from hodyn_ros import RobotModel, to_urdf
    >>> heavy = RobotModel.from_urdf('two_link').with_payload('tool', 1.0)
    >>> text = to_urdf(heavy)
    >>> RobotModel.from_urdf(text).joint_names, '<mass value="3.0"' in text
    (('shoulder', 'elbow'), True)
    """
    return _Writer(model).text()


class _Writer:
    """Writer of a model as a URDF; names that it adds differ from those of the model."""

    def __init__(self, model: Mechanism) -> None:
        self.closure = model.closure
        model = self.model = model.tree
        self.robot = Element('robot', name=model.name)
        self.taken = {*model.links, *model.body_names}
        # The link of a body is the first one that shares its frame.
        self.main: dict[int, str] = {BASE: model.base_link}
        for name, frame in model.links.items():
            if np.array_equal(frame.pose, np.eye(4)):
                self.main.setdefault(frame.body, name)
        for i, joint in enumerate(model.body_names):
            if i not in self.main:
                self.main[i] = self._new_name(f'{joint}_link')

    def text(self) -> str:
        """XML text of the whole model, indented."""
        self._link(self.main[BASE])
        for i in range(self.model.n_bodies):
            self._body(i)
        for name, frame in self.model.links.items():
            main = self.main[frame.body]
            if name != main:
                self._link(name)
                self._joint(
                    Joint(self._new_name(f'{name}_joint'), 'fixed', main, name, frame.pose)
                )
        if self.closure is not None:
            self._close(self.closure)
        indent(self.robot)
        return tostring(self.robot, encoding='unicode') + '\n'

    def _body(self, i: int) -> None:
        """Write the joint and the link of a body, with a link on the axis where one is needed."""
        model, j = self.model, self.model.coordinate[i]
        X, name, follows = model.X[i], model.body_names[i], model.joint_names[j]
        child, mimic = self.main[i], None
        limits = Limits(
            *(getattr(model.limits, quantity)[j] for quantity in Limits._fields)
        )
        if follows != name:
            mimic = Mimic(follows, float(model.multiplier[i]), float(model.offset[i]))
            limits = model.follower_limits.get(name, Limits())
        axis, kind, pitch = X[:3], 'revolute', float(se3.pitches(X[None])[0])
        if np.isinf(limits[:2]).all():
            kind = 'continuous'
        # The point of the axis that is closest to the origin of the body frame.
        point = np.cross(axis, X[3:])
        if np.abs(point).max() <= 1e-15:
            point = np.zeros(3)
        if not axis.any():
            kind, axis = 'prismatic', X[3:]
        on_axis = se3.pose(np.eye(3), point)
        between = child
        if pitch or point.any():
            between = self._new_name(f'{name}_axis')
            self._link(between)
        else:
            self._link(child, model.M_body[i])
        ends = self.main[int(model.parent[i])], between
        self._joint(Joint(name, kind, *ends, model.B[i] @ on_axis, axis, mimic, limits))
        if between == child:
            return
        self._link(child, model.M_body[i])
        ends, to_body = (between, child), se3.inverse(on_axis)
        if pitch:
            factors = pitch * float(model.multiplier[i]), pitch * float(model.offset[i])
            advance = self._new_name(f'{name}_advance')
            mimic = Mimic(follows, *factors)
            self._joint(Joint(advance, 'prismatic', *ends, to_body, axis, mimic))
        else:
            self._joint(Joint(self._new_name(f'{name}_offset'), 'fixed', *ends, to_body))

    def _close(self, closure: Closure) -> None:
        """Write loops and couplings, and the role of the joints in them."""
        joints = {joint.get('name'): joint for joint in self.robot.iterfind('joint')}
        for j, name in enumerate(self.model.joint_names):
            joints[name].set('independent', str(j in closure.independent).lower())
            if closure.start[j]:
                joints[name].set('start', repr(float(closure.start[j])))
        for loop in closure.loops:
            attributes = {'name': loop.name, 'type': TYPES[loop.kind]}
            element = SubElement(self.robot, 'loop', attributes)
            for side, link, pose in zip(ENDS, (loop.link_a, loop.link_b), loop.poses):
                end = SubElement(element, side, {'link': link})
                _write_origin(end, pose)
            SubElement(element, 'axis', xyz=_numbers(loop.direction))
        # The reader holds these joints again.
        for coupling in (x for x in closure.couplings if x.joint not in closure.held):
            element = SubElement(self.robot, 'coupling', name=coupling.name)
            ratio = repr(self._ratio(coupling))
            for side, name in zip(ENDS, (coupling.followed[0], coupling.joint)):
                ends = needed_child(joints[name], 'child').attrib
                SubElement(element, side, ends)
            SubElement(element, 'ratio', value=ratio)

    def _ratio(self, coupling: Coupling) -> float:
        """Ratio of a coupling of two joints on the same body; others are refused."""
        joints = coupling.joint, *coupling.followed
        carriers = {int(self.model.parent[self.model.body_names.index(j)]) for j in joints}
        offset, ratio, *others = *coupling.coefficients, 0.0
        if offset or any(others) or len(joints) > 2 or len(carriers) > 1:
            raise ModelError(
                f'Coupling {coupling.name!r} of {joints[0]!r} to '
                f'{listed(map(repr, joints[1:]))} with the coefficients '
                f'{coupling.coefficients} cannot be written as URDF: expected a ratio alone, of '
                'two joints on the same link.'
            )
        return ratio

    def _link(self, name: str, M_body: Array | None = None) -> None:
        """Element of a link, with an inertia (6, 6) about its origin if it is not zero."""
        link = SubElement(self.robot, 'link', name=name)
        if M_body is None or not M_body.any():
            return
        link.append(inertial_element(inertia_parts(f'Link {name!r}', M_body)))

    def _joint(self, joint: Joint) -> None:
        """Element of a joint; a fixed one has no axis. Acceleration and jerk need URDF 1.2."""
        element = SubElement(self.robot, 'joint', name=joint.name, type=joint.type)
        _write_origin(element, joint.origin)
        SubElement(element, 'parent', link=joint.parent)
        SubElement(element, 'child', link=joint.child)
        if joint.type == 'fixed':
            return
        SubElement(element, 'axis', xyz=_numbers(joint.axis))
        limits = joint.limits
        unwritten = {
            what for what in ('acceleration', 'jerk') if np.isinf(getattr(limits, what))
        }
        if len(unwritten) < 2:
            self.robot.set('version', VERSIONS[2])
        if joint.type == 'continuous':
            unwritten |= {'lower', 'upper'}
        numbers = map(repr, np.clip(limits, -NO_LIMIT, NO_LIMIT).tolist())
        texts = dict(zip(Limits._fields, numbers))
        written = {what: texts[what] for what in LIMITS if what not in unwritten}
        SubElement(element, 'limit', written)
        if np.isfinite(limits.deceleration_limit):
            SubElement(element, FALLING, {what: texts[what] for what in FALLING_LIMITS})
        if joint.mimic is not None:
            name, *factors = joint.mimic
            followed = zip(Mimic._fields, (name, *map(repr, factors)))
            SubElement(element, 'mimic', dict(followed))

    def _new_name(self, wanted: str) -> str:
        """Unused name, made by adding underscores; it is used from now on."""
        while wanted in self.taken:
            wanted += '_'
        self.taken.add(wanted)
        return wanted


def inertial_element(inertia: Inertia) -> Element:
    """Element <inertial> of a link, its origin at the centre of mass in link axes."""
    inertial = Element('inertial')
    SubElement(inertial, 'origin', xyz=_numbers(inertia.com))
    SubElement(inertial, 'mass', value=_numbers([inertia.mass]))
    entries = np.asarray(inertia.inertia_com)[np.triu_indices(3)].tolist()
    SubElement(inertial, 'inertia', dict(zip(INERTIA, map(repr, entries))))
    return inertial


def _write_origin(owner: Element, pose: Array) -> None:
    """Write a pose (4, 4) as the origin of an element."""
    rpy = _numbers(_rpy(pose[:3, :3]))
    SubElement(owner, 'origin', xyz=_numbers(pose[:3, 3]), rpy=rpy)


def _numbers(values: ArrayLike) -> str:
    """Numbers as the text of an attribute, with every bit."""
    # repr keeps every bit.
    return ' '.join(map(repr, np.asarray(values).tolist()))


def _rpy(R: Array) -> Array:
    """Roll, pitch and yaw of Rz(yaw) Ry(pitch) Rx(roll), also for a pitch of 90 degrees."""
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    pitch = np.arctan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])
