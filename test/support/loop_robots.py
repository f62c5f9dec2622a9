"""Robots with closed loops, and what Pinocchio and MuJoCo make of them."""

from pathlib import Path

import numpy as np
from support.oracles import PinOracle

from hodyn_ros import Inertia, RobotModel, to_urdf
from hodyn_ros.lie import se3
from hodyn_ros.model import Loop

URDF = Path(__file__).resolve().parents[2] / 'urdf'
BUNDLED = ('parallel_ankle', 'five_bar', 'delta', 'palletiser')
ROBOTS = (*BUNDLED, 'stewart')


def description(name):
    """URDF with the loops of a robot."""
    if name == 'stewart':
        return to_urdf(stewart_platform())
    return (URDF / f'{name}.urdf').read_text(encoding='utf-8')


def stewart_platform():
    """Six legs of a universal, a prismatic and a ball joint; the platform hangs on the first."""
    turn, slide = np.eye(6)[:3], np.eye(6)[5]
    X, B, parents, inertias, names, links, loops = [], [], [], [], [], [], []

    def add(name, screw, pose, parent, inertia=None):
        for values, value in zip(
            (X, B, parents, inertias, names, links),
            (screw, pose, parent, inertia, name, f'{name}_link'),
        ):
            values.append(value)
        return len(X) - 1

    bodies = {}
    for i in range(6):
        third = 2.0 * np.pi * (i // 2) / 3.0
        side = -1.0 if i % 2 == 0 else 1.0
        foot = 0.5 * direction(third + 0.2 * side)
        head = 0.3 * direction(third + side * (np.pi / 3.0 - 0.2)) + [0.0, 0.0, 0.6]
        length = np.linalg.norm(head - foot)
        R = frame_along((head - foot) / length)
        cross = add(
            f'leg{i}_x',
            turn[0],
            se3.pose(R, foot),
            -1,
            Inertia(0.1, (0, 0, 0), 1e-4 * np.eye(3)),
        )
        tube = add(f'leg{i}_y', turn[1], np.eye(4), cross, rod(1.5, 0.15))
        piston = add(
            f'leg{i}', slide, se3.pose(np.eye(3), [0, 0, length]), tube, rod(0.8, -0.15)
        )
        bodies[i] = piston, R, head
    # Three joints in the head of the first leg, whose axes are those of the platform at zero.
    piston, R, first = bodies[0]
    ball = add('ball_x', turn[0], se3.pose(R.T, np.zeros(3)), piston)
    ball = add('ball_y', turn[1], np.eye(4), ball)
    platform = Inertia(4.0, [0.02, -0.01, 0.65] - first, np.diag([0.1, 0.12, 0.2]))
    add('platform', turn[2], np.eye(4), ball, platform)
    for i in range(1, 6):
        at = se3.pose(np.eye(3), bodies[i][2] - first)
        loops.append(Loop(f'head{i}', 'ball', f'leg{i}_link', 'platform_link', None, at))
    tree = RobotModel.from_body_screws(
        X, B, parents=parents, inertias=inertias, joint_names=names, link_names=links
    )
    return tree.with_loops(loops, [f'leg{i}' for i in range(6)])


def direction(angle):
    return np.array([np.cos(angle), np.sin(angle), 0.0])


def frame_along(z):
    x = np.cross([0.0, 1.0, 0.0], z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


def rod(mass, middle):
    across = 0.3**2 / 12.0 * mass
    return Inertia(mass, (0.0, 0.0, middle), np.diag([across, across, 0.01 * across]))


class PinocchioLoops:
    """A robot with closed loops in Pinocchio: a tree, and points of links that are held together.

    In a planar mechanism a point holds what a hinge does.
    """

    def __init__(self, xml, model):
        import pinocchio

        self.pin = pinocchio
        self.names = model.closure.tree.joint_names
        self.oracle = PinOracle(xml, self.names, model.gravity)
        self.tree, self.data = self.oracle.model, self.oracle.data
        self.motors = self.oracle.G[:, model.closure.independent]
        points = [
            pinocchio.RigidConstraintModel(
                pinocchio.ContactType.CONTACT_3D,
                self.tree,
                *self._place(loop.link_a, loop.poses[0]),
                *self._place(loop.link_b, loop.poses[1]),
                pinocchio.ReferenceFrame.LOCAL,
            )
            for loop in model.closure.loops
        ]
        self.points = pinocchio.StdVec_RigidConstraintModel(points)
        self.kept = pinocchio.StdVec_RigidConstraintData([p.createData() for p in points])
        pinocchio.initConstraintDynamics(self.tree, self.data, self.points, self.kept)

    def _place(self, link, pose):
        frame = self.tree.frames[self.tree.getFrameId(link)]
        return frame.parentJoint, frame.placement * self.pin.SE3(pose)

    def accelerations(self, motion, effort):
        """Of all joints (N,), from positions and velocities of all and efforts of the motors."""
        q, qd = self.oracle.full(motion[:2])
        settings = self.pin.ProximalSettings(1e-14, 1e-12, 20)
        q2d = self.pin.constraintDynamics(
            self.tree,
            self.data,
            self.oracle.configuration(q),
            qd,
            self.motors @ effort,
            self.points,
            self.kept,
            settings,
        )
        return self.oracle.G.T @ q2d

    def efforts(self, motion):
        """Of the motors (n,), from rnea and the Jacobian of the points."""
        q, qd, q2d = self.oracle.full(motion[:3])
        q = self.oracle.configuration(q)
        of_tree = self.pin.rnea(self.tree, self.data, q, qd, q2d)
        self.pin.computeJointJacobians(self.tree, self.data, q)
        for point, data in zip(self.points, self.kept):
            point.calc(self.tree, self.data, data)
        L = self.pin.getConstraintsJacobian(self.tree, self.data, self.points, self.kept)
        unknowns = np.concatenate([self.motors, L.T], axis=1)
        return np.linalg.lstsq(unknowns, of_tree, rcond=1e-10)[0][: self.motors.shape[1]]


class MujocoLoops:
    """A robot with closed loops in MuJoCo: points of links that stiff constraints hold together.

    Its constraints are soft: at its highest impedance d = 0.9999 the points still part with about
    1 - d of the acceleration of the open joints. The error of a softness (1 - d) / d goes
    linearly with it, so that two impedances tell the accelerations without it.
    """

    def __init__(self, xml, model):
        import mujoco

        self.mujoco = mujoco
        spec = mujoco.MjSpec.from_string(
            xml.replace(
                '</robot>',
                '<mujoco><compiler boundmass="1e-9" boundinertia="1e-12" fusestatic="false" '
                'discardvisual="true"/></mujoco></robot>',
            )
        )
        spec.option.gravity = model.gravity
        spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
        spec.option.tolerance = 0.0
        spec.option.iterations = 200
        for loop in model.closure.loops:
            sites = []
            for link, pose in zip((loop.link_a, loop.link_b), loop.poses):
                site = spec.body(link).add_site(name=f'{loop.name} {link}', pos=pose[:3, 3])
                sites.append(site.name)
            spec.add_equality(
                type=mujoco.mjtEq.mjEQ_CONNECT,
                objtype=mujoco.mjtObj.mjOBJ_SITE,
                name1=sites[0],
                name2=sites[1],
                solimp=[0.0, 0.0, 0.001, 0.5, 2.0],
            )
        self.compiled = spec.compile()
        self.data = mujoco.MjData(self.compiled)
        self.joints = [self.compiled.joint(n).id for n in model.closure.tree.joint_names]
        self.independent = model.closure.independent

    def accelerations(self, motion, effort):
        """Of all joints (N,), from positions and velocities of all and efforts of the motors."""
        data, compiled = self.data, self.compiled
        at = compiled.jnt_dofadr[self.joints]
        data.qpos[compiled.jnt_qposadr[self.joints]] = motion[0]
        data.qvel[at], data.qfrc_applied[:] = motion[1], 0.0
        data.qfrc_applied[at[self.independent]] = effort
        found, softness = [], []
        for impedance in (0.9999, 0.9998):
            compiled.eq_solimp[:, :2] = impedance
            self.mujoco.mj_forward(compiled, data)
            found.append(data.qacc[at].copy())
            softness.append((1.0 - impedance) / impedance)
        return (softness[1] * found[0] - softness[0] * found[1]) / (
            softness[1] - softness[0]
        )
