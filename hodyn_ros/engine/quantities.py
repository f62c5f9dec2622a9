"""Table of the programs of all quantities, see `requests`."""

from __future__ import annotations

from collections.abc import Callable

from hodyn_ros.engine.efforts import effort_program
from hodyn_ros.engine.forward import forward_program
from hodyn_ros.engine.links import jacobian_program, link_program
from hodyn_ros.engine.loop_program import (
    closed_effort_program,
    closing_program,
    completing_program,
)
from hodyn_ros.engine.partials import partials_program, regressor_program
from hodyn_ros.engine.program import (
    FLOATING,
    FORWARD,
    MOVING,
    PARTIALS,
    REGRESSOR,
    RobotProgram,
)
from hodyn_ros.engine.requests import (
    CLOSING,
    COMPLETING,
    EFFORTS,
    JACOBIAN,
    LINK,
    TERMS,
    VELOCITIES,
    KernelRequest,
)
from hodyn_ros.engine.terms import term_program
from hodyn_ros.model.mechanism import Mechanism


def _efforts(model: Mechanism, request: KernelRequest) -> RobotProgram:
    program = effort_program if model.closure is None else closed_effort_program
    return program(model, request.K - 3, request.wrenches)


def _term(model: Mechanism, request: KernelRequest) -> RobotProgram:
    return term_program(model, request.quantity, request.K)


PROGRAMS: dict[str, Callable[[Mechanism, KernelRequest], RobotProgram]] = {
    EFFORTS: _efforts,
    LINK: lambda model, r: link_program(model, r.link, r.expressed_in, r.K),
    JACOBIAN: lambda model, r: jacobian_program(model, r.link, r.expressed_in, r.K),
    **dict.fromkeys(TERMS, _term),
    REGRESSOR: lambda model, r: regressor_program(model, r.K),
    PARTIALS: lambda model, r: partials_program(model, r.K, r.wrenches),
    FORWARD: lambda model, r: forward_program(
        model, r.K - 2, r.wrenches, prescribed=r.prescribed
    ),
    FLOATING: lambda model, r: forward_program(model, r.K - 2, r.wrenches, floating=True),
    MOVING: lambda model, r: effort_program(
        model, r.K - 3, r.wrenches, friction=False, moving=True
    ),
    CLOSING: lambda model, _: closing_program(model),
    COMPLETING: lambda model, r: completing_program(model, r.K),
    VELOCITIES: lambda model, r: completing_program(model, r.K, velocities=True),
}
