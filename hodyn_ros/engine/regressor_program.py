"""Programs of the regressor: what each inertial parameter adds to the joint efforts.

The parameters are those of `RobotModel.inertial_parameters`, about the origin of a body's frame of
the model. With the acceleration a of this point, gravity included, and B = w w^T - w^2 1 + [dw],
the column (e, u) of the body's Jacobian makes of the moment h x a + I dw + w x I w and the force
m a + B h on the body the effort

    m (u . a) + h . (a x e + B^T u) + e . (I dw + w x I w).

Columns, one for each independent joint, are handed on from body to body; derivatives follow by
Leibniz's rule. Source: Atkeson, An and Hollerbach 1986, see `dynamics.regressor`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hodyn_ros.engine import formulation
from hodyn_ros.engine.frames import frames_of, position, vector, without_rounding
from hodyn_ros.engine.program import NO_ARRAY, Number, Part, Recorder, RobotProgram
from hodyn_ros.engine.taylor import derivatives, joint_motion, screw_of_child
from hodyn_ros.engine.vectors import (
    AXIS,
    ZERO,
    Matrix,
    Vector,
    dot,
    plus_cross,
    plus_product,
    plus_scaled,
    product,
    scaled,
)
from hodyn_ros.lie import se3
from hodyn_ros.model.assembly import BASE

if TYPE_CHECKING:
    from hodyn_ros.model.robot import RobotModel


def regressor_program(model: RobotModel, K: int) -> RobotProgram:
    """Program of the regressor and its derivatives.

    Output: 'term', derivative k of what parameter l of body i adds to the effort of joint j at
    ((k n + j) n_bodies + i) 10 + l.
    """
    recorder, frames = Recorder(), frames_of(model)
    orders, size = K - 2, model.n_joints * 10 * model.n_bodies
    values: list[Number] = [0.0] * (orders * size)
    motions = {BASE: formulation.base_motion(scaled(-1.0, vector(frames.gravity)), 0)}
    jacobians: dict[int, dict[int, tuple[Vector, Vector]]] = {BASE: {}}
    for i, p in enumerate(model.parent.tolist()):
        joint, own = frames.joints[i], int(model.coordinate[i])
        moving = joint_motion(recorder, model, joint, i, i, K)
        q = [moving.q, moving.q.rate(), moving.q.rate().rate()]
        turn = moving.turn._replace(rates=[joint.turn * x for x in q[1:]])
        motions[i] = formulation.forward(joint, turn, q, motions[p])
        moving = moving.first(orders)
        jacobian = {j: screw_of_child(moving, *screw) for j, screw in jacobians[p].items()}
        e, u = jacobian.get(own, (ZERO, ZERO))
        multiplier = float(model.multiplier[i])
        e = plus_scaled(e, multiplier * joint.turn, AXIS)
        jacobian[own] = e, plus_scaled(u, multiplier * joint.slide, AXIS)
        jacobians[i] = jacobian

        # In the axes of the model's frame, about its origin, whose position is d.
        x, y, z = (vector(without_rounding(row, 1.0)) for row in frames.poses[i][:3, :3])
        R, d = (x, y, z), position(se3.inverse(frames.poses[i]))
        (a,), (B,) = motions[i].a, motions[i].B
        a = product(R, plus_product(a, B, d))
        w = [product(R, v) for v in motions[i].w]
        (B,), ((_, products),) = (
            formulation.acceleration_matrices(w),
            formulation.squares(w),
        )
        for j, (e, u) in jacobian.items():
            u = product(R, plus_cross(u, e, d))
            row = _row(a, w[1], products, B, product(R, e), u)
            for place, value in enumerate(row, 10 * (j * model.n_bodies + i)):
                values[place::size] = derivatives(value, orders)
    recorder.outputs('term', values)
    result = Part('term', len(values), True)
    return RobotProgram(recorder.program(), range(model.n_bodies), K, NO_ARRAY, result)


def _row(
    a: Vector, dw: Vector, products: Vector, B: Matrix, e: Vector, u: Vector
) -> list[Number]:
    """Efforts that the parameters of a body make by one column of its Jacobian.

    Parameters
    ----------
    a, dw : Vector
        Acceleration of the origin, gravity included, and angular acceleration.
    products : Vector
        w_y w_z, w_z w_x and w_x w_y of the angular velocity.
    B : Matrix
        w w^T - w^2 1 + [dw].
    e, u : Vector
        Column of the Jacobian, angular part first.

    Returns
    -------
    list of Number
        Ten, in the order of `RobotModel.inertial_parameters`.
    """
    (bxx, bxy, bxz), (byx, byy, byz), (bzx, bzy, bzz) = B
    xx, yy, zz = (x * y for x, y in zip(e, dw))
    yz, zx, xy = (x * y for x, y in zip(e, products))
    to_u = [dot(u, column) for column in zip(*B)]
    return [
        dot(u, a),
        *plus_cross((to_u[0], to_u[1], to_u[2]), a, e),
        xx + zx - xy,
        e[1] * bzy - e[0] * bzx + e[2] * (bxx - byy),
        e[0] * byx - e[2] * byz + e[1] * (bzz - bxx),
        yy + xy - yz,
        e[2] * bxz - e[1] * bxy + e[0] * (byy - bzz),
        zz + yz - zx,
    ]
