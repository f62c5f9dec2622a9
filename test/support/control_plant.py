"""A robot with elastic joints to control, by Pinocchio: Spong's equations, written down plainly.

Links: M(q) q'' + h(q, q') = Q - friction. Elastic joint: Q = f(theta - q) + D (theta' - q'),
B theta'' + Q + friction = tau. Rigid joint: Q = tau - B q'' - friction. With a gear ratio N the
rotors are bodies of their own, on the link in front of their joint, that turn N times as fast.
Dry friction is implicit: in every step of the integration it is the torque within its bounds that
comes closest to stopping the joint, so that joints stick. Shares no code with hodyn_ros.
"""

import numpy as np
import pinocchio
from scipy.integrate import solve_ivp

SWEEPS = 30  # of the search for the friction of links, which are coupled


class Plant:
    """Equations of motion of a robot whose joints are all one-dimensional.

    `springs` holds for each joint its stiffness, a function of the deflection, or None where it
    is rigid. `damping` is parallel to the springs, `backlash` a deflection without torque. Of
    motors: `viscous`, `coulomb`, `breakaway` (dry friction at rest, which falls with the Gaussian
    of the speed over `stribeck_velocity`), `limits` and `rate_limits` of the torque. Links have
    dry friction, `link_coulomb`. `mass` scales all their masses and inertias, then comes the
    `payload` (name of a frame, mass).
    """

    def __init__(
        self,
        xml,
        joint_names,
        springs,
        inertia,
        gravity=(0, 0, -9.81),
        viscous=0.0,
        *,
        coulomb=0.0,
        breakaway=0.0,
        stribeck_velocity=0.01,
        link_coulomb=0.0,
        damping=0.0,
        backlash=0.0,
        mass=1.0,
        payload=None,
        gear_ratio=None,
        limits=np.inf,
        rate_limits=np.inf,
    ):
        self.model = model = pinocchio.buildModelFromXML(xml)
        model.gravity.linear = np.array(gravity, dtype=float)
        assert list(model.names)[1:] == list(joint_names)
        self.n, self.inertia = len(inertia), np.array(inertia, dtype=float)
        for i in range(1, model.njoints):
            body = model.inertias[i]
            heavier = mass * body.mass, body.lever, mass * body.inertia
            model.inertias[i] = pinocchio.Inertia(*heavier)
        if payload is not None:
            frame = model.frames[model.getFrameId(payload[0])]
            point = frame.placement.translation
            model.inertias[frame.parentJoint] += pinocchio.Inertia(
                payload[1], point, np.zeros((3, 3))
            )
        self.gear_ratio = gear_ratio
        self.elastic = np.array([spring is not None for spring in springs])
        self.springs, self.stiffness = springs, None
        if not any(spring is None or callable(spring) for spring in springs):
            self.stiffness = np.array(springs, dtype=float)
        if gear_ratio is not None:
            self._add_rotors(joint_names)
        self.data = model.createData()
        self.viscous, self.coulomb = viscous, coulomb
        self.fall, self.stribeck_velocity = max(breakaway - coulomb, 0.0), stribeck_velocity
        self.link_coulomb = link_coulomb
        self.damping, self.backlash = damping, backlash
        self.limits, self.rate_limits = limits, rate_limits
        self.push = np.zeros(len(inertia))  # torques on the links that nobody knows of
        # In the axes of the base, at the last link's centre of mass.
        self.force = np.zeros(3)
        self.torque = np.zeros(len(inertia))  # of the motors, behind their limits

    def _add_rotors(self, joint_names):
        """Each about the axis of its joint, without the mass that the link already has."""
        model = self.model
        assert self.stiffness is not None
        for name, reflected in zip(joint_names, self.inertia):
            joint = model.getJointId(name)
            parent, placement = model.parents[joint], model.jointPlacements[joint]
            assert model.joints[joint].shortname() == 'JointModelRZ'
            spin = reflected / self.gear_ratio**2
            axis = placement.rotation[:, 2]
            carrier = model.inertias[parent]
            if parent:
                model.inertias[parent] = pinocchio.Inertia(
                    carrier.mass,
                    carrier.lever,
                    carrier.inertia - spin * np.outer(axis, axis),
                )
            rotor = model.addJoint(
                parent, pinocchio.JointModelRZ(), placement, f'rotor of {name}'
            )
            body = pinocchio.Inertia(0.0, np.zeros(3), np.diag([0.0, 0.0, spin]))
            model.appendBodyToJoint(rotor, body, pinocchio.SE3.Identity())

    def spring_torque(self, deflection):
        d = deflection
        if self.backlash:
            d = np.sign(d) * np.maximum(np.abs(d) - 0.5 * self.backlash, 0.0)
        if self.stiffness is not None:
            return self.stiffness * d
        torques = [
            0.0 if f is None else f(x) if callable(f) else f * x
            for f, x in zip(self.springs, d)
        ]
        return np.array(torques)

    def weight(self, q):
        """Joint torques that hold the links at rest."""
        configuration = np.zeros(self.model.nq)
        configuration[: self.n] = q
        return np.array(
            pinocchio.computeGeneralizedGravity(self.model, self.data, configuration)
        )[: self.n]

    def at_rest(self, q):
        """State (4, n) in which springs that are linear carry the weight; torque of the motors."""
        torque = self.weight(q)
        stiffness = np.array(
            [np.inf if k is None else k for k in self.springs], dtype=float
        )
        deflection = torque / stiffness + 0.5 * self.backlash * np.sign(torque)
        self.torque = torque.copy()
        return np.array([q, np.zeros(self.n), q + deflection, np.zeros(self.n)])

    def accelerations(self, q, qd, theta, thetad, tau, dry=0.0, link_dry=0.0):
        pin, model, data, n = pinocchio, self.model, self.data, self.n
        spring = self.spring_torque(theta - q) + self.damping * (thetad - qd) * self.elastic
        speed = np.where(self.elastic, thetad, qd)
        motor = tau - self.viscous * speed - dry
        unknown = self.push - link_dry
        if self.force.any():
            unknown = unknown + self._pushed(q)
        if self.stiffness is None:
            h = pin.nonLinearEffects(model, data, q, qd)
            M = pin.crba(model, data, q)
            M = np.triu(M) + np.triu(M, 1).T
            M_all = M + np.diag(np.where(self.elastic, 0.0, self.inertia))
            q2d = np.linalg.solve(
                M_all, np.where(self.elastic, spring, motor) + unknown - h
            )
            return q2d, np.where(self.elastic, (motor - spring) / self.inertia, q2d)
        if self.gear_ratio is None:
            q2d = pin.aba(model, data, q, qd, spring + unknown)
            return q2d, (motor - spring) / self.inertia
        N = self.gear_ratio
        both = np.concatenate
        found = pin.aba(
            model,
            data,
            both((q, N * theta)),
            both((qd, N * thetad)),
            both((spring + unknown, (motor - spring) / N)),
        )
        return found[:n], found[n:] / N

    def _pushed(self, q):
        pin, model, data, n = pinocchio, self.model, self.data, self.n
        configuration = np.zeros(model.nq)
        configuration[:n] = q
        # The Jacobian leaves oMi as it was.
        pin.forwardKinematics(model, data, configuration)
        # In axes of the link.
        J = pin.computeJointJacobian(model, data, configuration, n)[:, :n]
        force = data.oMi[n].rotation.T @ self.force
        return J[:3].T @ force + J[3:].T @ np.cross(model.inertias[n].lever, force)

    def rate(self, state, tau, dry=0.0, link_dry=0.0):
        """Time derivative of a state (4, n): q, q', theta, theta'."""
        q, qd, theta, thetad = state
        q2d, theta2d = self.accelerations(q, qd, theta, thetad, tau, dry, link_dry)
        return np.array([qd, q2d, thetad, theta2d])

    def _dry(self, state, tau, h):
        """Dry friction of motors and links in a step h that begins at a state."""
        dry = link_dry = 0.0
        rate = None
        if self.coulomb or self.fall:
            rate = self.rate(state, tau)
            speed = state[3]
            level = self.coulomb + self.fall * np.exp(
                -((speed / self.stribeck_velocity) ** 2)
            )
            dry = np.clip(self.inertia * (speed / h + rate[3]), -level, level)
        if self.link_coulomb:
            rate = self.rate(state, tau) if rate is None else rate
            A = pinocchio.computeMinverse(self.model, self.data, state[0])
            A = np.triu(A) + np.triu(A, 1).T
            after, link_dry = state[1] / h + rate[1], np.zeros(self.n)
            for _ in range(SWEEPS):  # projected Gauss-Seidel
                for j in range(self.n):
                    wanted = link_dry[j] + (after[j] - A[j] @ link_dry) / A[j, j]
                    link_dry[j] = np.clip(wanted, -self.link_coulomb, self.link_coulomb)
        return dry, link_dry

    def hold(self, state, torque, period, substeps=8):
        """State a period later, through which the drives are asked for a torque."""
        wanted = np.clip(torque, -self.limits, self.limits)
        h, x = period / substeps, state
        for _ in range(substeps):  # the classical method of Runge and Kutta
            step = self.rate_limits * h
            self.torque = tau = self.torque + np.clip(wanted - self.torque, -step, step)
            dry = self._dry(x, tau, h)
            k1 = self.rate(x, tau, *dry)
            k2 = self.rate(x + 0.5 * h * k1, tau, *dry)
            k3 = self.rate(x + 0.5 * h * k2, tau, *dry)
            k4 = self.rate(x + h * k3, tau, *dry)
            x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return x

    def run_continuously(self, state, law, times, tolerance=1e-11):
        """States (N, 4, n) at some times under a law(t, state) -> tau, without dry friction."""
        assert not (self.coulomb or self.fall or self.link_coulomb)
        shape = np.shape(state)

        def rate(t, y):
            y = y.reshape(shape)
            return self.rate(y, law(t, y)).ravel()

        solution = solve_ivp(
            rate,
            (times[0], times[-1]),
            np.ravel(state),
            'DOP853',
            times,
            rtol=tolerance,
            atol=tolerance,
        )
        assert solution.success, solution.message
        return solution.y.T.reshape(-1, *shape)

    def run_sampled(self, state, law, period, count, substeps=8):
        """States (count + 1, 4, n) and torques (count, n) with the torque held for a period."""
        states, torques = [np.array(state)], []
        for k in range(count):
            torques.append(law(k * period, states[-1]))
            states.append(self.hold(states[-1], torques[-1], period, substeps))
        return np.array(states), np.array(torques)
