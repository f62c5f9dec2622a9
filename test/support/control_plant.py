"""A robot with elastic joints to control, by Pinocchio: Spong's equations, written down plainly.

Links: M(q) q'' + h(q, q') = Q. Elastic joint: Q = f(theta - q), B theta'' + Q + friction = tau.
Rigid joint: Q = tau - B q'' - friction. Shares no code with hodyn_ros.
"""

import numpy as np
import pinocchio
from scipy.integrate import solve_ivp


class Plant:
    """Equations of motion of a robot whose joints are all one-dimensional.

    `springs` holds for each joint a function of the deflection, or None where it is rigid.
    """

    def __init__(self, xml, joint_names, springs, inertia, gravity=(0, 0, -9.81), viscous=0.0):
        self.model = pinocchio.buildModelFromXML(xml)
        self.model.gravity.linear = np.array(gravity, dtype=float)
        assert list(self.model.names)[1:] == list(joint_names)
        self.data = self.model.createData()
        self.springs = springs
        self.elastic = np.array([spring is not None for spring in springs])
        self.inertia = np.array(inertia, dtype=float)
        self.viscous = viscous  # of the motors
        self.push = np.zeros(len(inertia))  # torques on the links that nobody knows of

    def spring_torque(self, deflection):
        return np.array(
            [0.0 if f is None else f(d) for f, d in zip(self.springs, deflection)]
        )

    def accelerations(self, q, qd, theta, thetad, tau):
        pin, model, data = pinocchio, self.model, self.data
        h = pin.nonLinearEffects(model, data, q, qd)
        M = pin.crba(model, data, q)
        M = np.triu(M) + np.triu(M, 1).T
        speed = np.where(self.elastic, thetad, qd)
        motor = tau - self.viscous * speed
        spring = self.spring_torque(theta - q)
        M_all = M + np.diag(np.where(self.elastic, 0.0, self.inertia))
        q2d = np.linalg.solve(M_all, np.where(self.elastic, spring, motor) + self.push - h)
        theta2d = np.where(self.elastic, (motor - spring) / self.inertia, q2d)
        return q2d, theta2d

    def rate(self, state, tau):
        """Time derivative of a state (4, n): q, q', theta, theta'."""
        q, qd, theta, thetad = state
        q2d, theta2d = self.accelerations(q, qd, theta, thetad, tau)
        return np.array([qd, q2d, thetad, theta2d])

    def run_continuously(self, state, law, times, tolerance=1e-11):
        """States (N, 4, n) at some times under a law(t, state) -> tau."""
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
        h = period / substeps
        for k in range(count):
            tau = law(k * period, states[-1])
            x = states[-1]
            for _ in range(substeps):  # the classical method of Runge and Kutta
                k1 = self.rate(x, tau)
                k2 = self.rate(x + 0.5 * h * k1, tau)
                k3 = self.rate(x + 0.5 * h * k2, tau)
                k4 = self.rate(x + h * k3, tau)
                x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
            states.append(x)
            torques.append(tau)
        return np.array(states), np.array(torques)
