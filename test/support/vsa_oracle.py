"""Models of variable stiffness actuators as printed, for any library of functions.

Every formula takes the position q of the link and the coordinates y1, y2 of both motors.
"""

import numpy as np

from hodyn_ros.actuators import AwasII, DlrBavs, Qbmove, vsa_model

MODELS = {
    'qbmove': vsa_model('qbmove', 'advanced_datasheet'),
    'qbmove/limited': vsa_model('qbmove', 'nmmi_maker_pro'),
    'dlr_bavs': vsa_model('dlr_bavs', 'nmmi'),
    'awas_ii': vsa_model('awas_ii', 'nmmi'),
    'qbmove/other': Qbmove(7.0, 0.02, 0.7),
    'dlr_bavs/mirrored': DlrBavs(
        a=2.38e-6, b=1.21e-6, k=1.6e5, ke=8.71, max_deflection=0.27
    ),
    'awas_ii/limited': AwasII(
        20.0, 0.1, 0.02, max_deflection=0.4, max_travel=0.06, pitch=0.002
    ),
}
LIMITED = {name: m for name, m in MODELS.items() if np.isfinite(m.effort_range).all()}


def motor_torques(model, lib, q, y1, y2):
    """Torques of the springs on both motors; for antagonistic models, the printed terms."""
    if isinstance(model, Qbmove):
        a, k = model.a, model.k
        return k * lib.sinh(a * (y1 - q)), k * lib.sinh(a * (y2 - q))
    if isinstance(model, DlrBavs):
        a, b, k, ke = model.a, model.b, model.k, model.ke
        d1, d2 = y1 - q, y2 - q
        return (
            -k * (lib.exp(-ke * d1) * (a - b * lib.exp(2 * ke * d1))),
            -k * (lib.exp(-ke * d2) * (b - a * lib.exp(2 * ke * d2))),
        )
    x, d = model.pitch * y2, y1 - q
    lever = (model.L / model.r_t) * x / (model.L - x)
    slope = (model.L / model.r_t) * model.L / (model.L - x) ** 2
    return (
        2 * model.Ks * lever**2 * lib.sin(d) * lib.cos(d),
        2 * model.Ks * lever * slope * model.pitch * lib.sin(d) ** 2,
    )


def torque(model, lib, q, y1, y2):
    """Elastic torque on the link, positive where it accelerates the link positively."""
    if isinstance(model, Qbmove):
        a, k = model.a, model.k
        return -k * lib.sinh(a * (q - y1)) - k * lib.sinh(a * (q - y2))
    if isinstance(model, DlrBavs):
        return sum(motor_torques(model, lib, q, y1, y2))
    x, d = model.pitch * y2, q - y1
    lever = (model.L / model.r_t) * (x / (model.L - x))
    return -2 * model.Ks * lever**2 * lib.sin(d) * lib.cos(d)


def stiffness(model, lib, q, y1, y2):
    """Stiffness that the link feels."""
    if isinstance(model, Qbmove):
        a, k = model.a, model.k
        return a * k * (lib.cosh(a * (q - y1)) + lib.cosh(a * (q - y2)))
    if isinstance(model, DlrBavs):
        a, b, k, ke = model.a, model.b, model.k, model.ke
        t1, t2 = motor_torques(model, lib, q, y1, y2)
        first = -ke * t1 + 2 * ke * k * b * lib.exp(ke * (y1 - q))
        return first - ke * t2 + 2 * ke * k * a * lib.exp(ke * (y2 - q))
    x, d = model.pitch * y2, q - y1
    lever = (model.L / model.r_t) * (x / (model.L - x))
    return 2 * model.Ks * lever**2 * (2 * lib.cos(d) ** 2 - 1)


def limits(model):
    """Largest size of both deflections."""
    if isinstance(model, AwasII):
        travel = model.L if model.max_travel is None else model.max_travel
        return np.array([model.max_deflection, travel / model.pitch])
    return np.broadcast_to(model.max_deflection, 2)
