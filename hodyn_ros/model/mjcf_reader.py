"""Reader of robots in MJCF, which the package mujoco compiles.

Springs of joints and compensation of gravity are left out with a remark. Contacts and tendons are
ignored; actuators tell the joints with motors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3
from hodyn_ros.model.assembly import (
    Dynamics,
    Joint,
    Link,
    RobotDescription,
    described_link,
)
from hodyn_ros.model.limits import Limits
from hodyn_ros.model.loops import Coupling, Loop
from hodyn_ros.model.provenance import Provenance
from hodyn_ros.names import listed
from hodyn_ros.resources import optional_import_module
from hodyn_ros.typing import Array


def read_mjcf(given: str | os.PathLike[str]) -> RobotDescription:
    """Robot of an MJCF file or text.

    Parameters
    ----------
    given : str or path-like
        Text that begins with <, or the path of a file.

    Returns
    -------
    RobotDescription
        With gravity and armature. Its independent joints are those with motors.

    Raises
    ------
    ModelError
        If MuJoCo refuses it, it has ball joints, several free bodies or bodies beside a free one
        that move.
    """
    mujoco = optional_import_module(
        'mujoco', 'Models of MuJoCo need the package mujoco', 'simulation', ModelError
    )
    try:
        if isinstance(given, str) and given.lstrip().startswith('<'):
            path, raw = '', given.encode()
            compiled = mujoco.MjModel.from_xml_string(given)
        else:
            path, raw = str(given), Path(given).read_bytes()
            compiled = mujoco.MjModel.from_xml_path(path)
    except (OSError, ValueError) as error:
        raise ModelError(f'The model of MuJoCo cannot be read: {error}') from error
    return _Reader(mujoco, compiled).robot(
        Provenance(file=path, digest=sha256(raw).hexdigest())
    )


class _Reader:
    """Reader of a compiled model."""

    def __init__(self, mujoco: Any, compiled: Any) -> None:
        self.mujoco, self.m = mujoco, compiled
        self.warnings: list[str] = []

    def name(self, kind: str, index: int) -> str:
        """Name of a body, joint, site or equality."""
        enum = getattr(self.mujoco.mjtObj, f'mjOBJ_{kind.upper()}')
        return self.mujoco.mj_id2name(self.m, enum, index) or f'{kind}_{index}'

    def pose(self, position: Array, quaternion: Array) -> Array:
        """Pose (4, 4) of a position and a quaternion (w, x, y, z)."""
        R = np.empty(9)
        self.mujoco.mju_quat2Mat(R, quaternion)
        return se3.pose(R.reshape(3, 3), position)

    def reference(self, joint: int) -> float:
        """Position of a joint in the reference pose, at which equalities are closed."""
        return float(self.m.qpos0[self.m.jnt_qposadr[joint]])

    def robot(self, provenance: Provenance) -> RobotDescription:
        """Description of the whole robot."""
        m, base = self.m, self._base()
        bodies = self._bodies_from(base)
        joints = tuple(joint for body in bodies[1:] for joint in self._joints(body))
        links = {self.name('body', body): self._link(body) for body in bodies}
        between = (joint.child for joint in joints if joint.child not in links)
        self._remark()
        names = [self.name('joint', j) for j in range(m.njnt)]
        on_joints = m.actuator_trntype == int(self.mujoco.mjtTrn.mjTRN_JOINT)
        loops = tuple(self._equalities())
        motors = sorted({*m.actuator_trnid[on_joints, 0].tolist()})
        R = self.pose(np.zeros(3), m.body_quat[base])[:3, :3]
        return RobotDescription(
            m.names.partition(b'\0')[0].decode(),
            (*links.values(), *map(Link, between)),
            joints,
            tuple(self.warnings),
            provenance=provenance,
            loops=loops,
            independent=tuple(names[j] for j in motors if loops),
            start={name: self.reference(j) for j, name in enumerate(names)},
            gravity=R.T @ m.opt.gravity,
        )

    def _base(self) -> int:
        """Base: the world, or the body that moves freely."""
        free = np.flatnonzero(self.m.jnt_type == int(self.mujoco.mjtJoint.mjJNT_FREE))
        bodies = [int(self.m.jnt_bodyid[j]) for j in free]
        names = listed(repr(self.name('body', body)) for body in bodies)
        if len(bodies) > 1:
            raise ModelError(f'The bodies {names} move freely, expected at most one.')
        if bodies:
            self.warnings.append(
                f'The body {names} moves freely in the description: it is the base link, which '
                'is at rest unless its motion is given.'
            )
        return bodies[0] if bodies else 0

    def _bodies_from(self, base: int) -> list[int]:
        """Base and all bodies behind it, parents first; moving ones elsewhere are refused."""
        m = self.m
        bodies = [i for i in range(m.nbody) if base in (0, int(m.body_rootid[i]))]
        outside = [j for j in range(m.njnt) if m.jnt_bodyid[j] not in bodies]
        if outside:
            those = listed(self.name('joint', j) for j in outside)
            raise ModelError(
                f'The joints {those} are not behind the free body {self.name("body", base)!r}; '
                'expected one robot.'
            )
        return bodies

    def _link(self, body: int) -> Link:
        m, name = self.m, self.name('body', body)
        frame = self.pose(m.body_ipos[body], m.body_iquat[body])
        inertia_com = np.diag(m.body_inertia[body])
        return described_link(
            name, float(m.body_mass[body]), frame, inertia_com, self.warnings
        )

    def _joints(self, body: int) -> Iterator[Joint]:
        """Joints of a body, one behind the other, with massless links between them."""
        m, name = self.m, self.name('body', body)
        parent = self.name('body', int(m.body_parentid[body]))
        origin = self.pose(m.body_pos[body], m.body_quat[body])
        first, count = int(m.body_jntadr[body]), int(m.body_jntnum[body])
        if count == 0:
            yield Joint(f'{name}_fixed', 'fixed', parent, name, origin)
        for j in range(first, first + count):
            own = self.name('joint', j)
            child = name if j == first + count - 1 else f'{name}_behind_{own}'
            axis = m.jnt_axis[j]
            turns = m.jnt_type[j] == int(self.mujoco.mjtJoint.mjJNT_HINGE)
            if not turns and m.jnt_type[j] != int(self.mujoco.mjtJoint.mjJNT_SLIDE):
                raise ModelError(
                    f'Joint {own!r} is a ball joint, which is not supported: write it as three '
                    'hinges.'
                )
            limited = bool(m.jnt_limited[j])
            kind = ('revolute' if limited else 'continuous') if turns else 'prismatic'
            halves = (axis, np.cross(m.jnt_pos[j], axis)) if turns else (0.0 * axis, axis)
            screw = np.concatenate(halves)
            dof = int(m.jnt_dofadr[j])
            yield Joint(
                own,
                kind,
                parent,
                child,
                origin @ se3.exp(-self.reference(j) * screw),
                limits=self._limits(j),
                screw=screw,
                dynamics=Dynamics(
                    float(m.dof_damping[dof]), float(m.dof_frictionloss[dof])
                ),
                armature=float(m.dof_armature[dof]),
            )
            parent, origin = child, np.eye(4)

    def _limits(self, j: int) -> Limits:
        m = self.m
        given = {}
        if m.jnt_limited[j]:
            given['lower'], given['upper'] = m.jnt_range[j].tolist()
        if m.jnt_actfrclimited[j]:
            given['effort'] = float(np.abs(m.jnt_actfrcrange[j]).min())
        return Limits(**given)

    def _remark(self) -> None:
        """Remark on forces that are left out."""
        m = self.m
        springs = [self.name('joint', int(j)) for j in np.flatnonzero(m.jnt_stiffness)]
        floating = [self.name('body', int(i)) for i in np.flatnonzero(m.body_gravcomp)]
        for names, what in (
            (springs, 'Springs of joints'),
            (floating, 'gravcomp of bodies'),
        ):
            if names:
                self.warnings.append(f'{what} {listed(names)} are not read.')

    def _equalities(self) -> Iterator[Loop | Coupling | ModelError]:
        """Loops and couplings; those that are not active are left out."""
        m, kinds = self.m, self.mujoco.mjtEq
        for i in map(int, np.flatnonzero(m.eq_active0)):
            name, data = self.name('equality', i), m.eq_data[i]
            ends = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
            if m.eq_type[i] in (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD)):
                kind = 'ball' if m.eq_type[i] == int(kinds.mjEQ_CONNECT) else 'weld'
                of_sites = m.eq_objtype[i] == int(self.mujoco.mjtObj.mjOBJ_SITE)
                (a, pose_a), (b, pose_b) = (
                    map(self._site, ends) if of_sites else self._bodies(kind, ends, data)
                )
                yield Loop(name, kind, a, b, pose_a, pose_b)
            elif m.eq_type[i] == int(kinds.mjEQ_JOINT):
                yield self._coupling(name, ends, data)
            else:
                kind = self.mujoco.mjtEq(int(m.eq_type[i])).name
                yield ModelError(f'The equality {name!r} of type {kind} is not supported.')

    def _site(self, site: int) -> tuple[str, Array]:
        pose = self.pose(self.m.site_pos[site], self.m.site_quat[site])
        return self.name('body', int(self.m.site_bodyid[site])), pose

    def _bodies(
        self, kind: str, ends: tuple[int, int], data: Array
    ) -> list[tuple[str, Array]]:
        """Bodies of an equality and its frames in them.

        The data of a weld begin with the point on the second body, those of a point with that on
        the first one (mjmodel.h and engine_core_constraint.c of MuJoCo).
        """
        unit = np.array([1.0, 0.0, 0.0, 0.0])
        points = (data[:3], data[3:6]) if kind == 'ball' else (data[3:6], data[:3])
        turns = unit if kind == 'ball' else data[6:10], unit
        return [
            (self.name('body', body), self.pose(point, turn))
            for body, point, turn in zip(ends, points, turns)
        ]

    def _coupling(self, name: str, ends: tuple[int, int], data: Array) -> Coupling:
        """Polynomial of differences from the reference; a joint that follows none is constant."""
        joint, follows = ends[0], ends[1] if ends[1] >= 0 else ends[0]
        at, other = self.reference(joint), self.reference(follows)
        shifted = np.polynomial.Polynomial([0.0])
        for coefficient in reversed(data[:5] if ends[1] >= 0 else data[:1]):
            shifted = shifted * np.polynomial.Polynomial([-other, 1.0]) + coefficient
        values = [at + shifted.coef[0], *np.trim_zeros(shifted.coef[1:], 'b')]
        return Coupling(
            name, self.name('joint', joint), self.name('joint', follows), values
        )
