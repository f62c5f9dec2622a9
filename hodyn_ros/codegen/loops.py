"""C of what closes the loops of a robot, beside its dynamics."""

from __future__ import annotations

import inspect
from string import Template
from typing import TYPE_CHECKING

from hodyn_ros.codegen.translation import HELPERS, Environment, translated
from hodyn_ros.engine import following
from hodyn_ros.model.loops import LARGEST_STEP, TOLERANCE

if TYPE_CHECKING:
    from hodyn_ros.model.mechanism import Closure

_CLOSE = Template("""
$helpers
static const double TOLERANCE = $tolerance, LARGEST_STEP = $largest;
static const double CORRECTIONS = $corrections, SHORT = $short, FARTHEST = $farthest;
static const double LARGEST_LEAP = $leap, AHEAD = $ahead;

$kernels
int ${name}_close(const double wanted[$n], double closed[$N])
{
    static const int u[$n] = {$u}, d[$m] = {$d};
    static const double per_unit[$N] = {$per_unit};
    double q[$N], good[$N], tangent[$m] = {0.0}, change[2 * $m + 1], way[$n];
    double state[$states] = {0.0, 0.0, LARGEST_STEP, 0.0, 1.0}, outcome = 0.0;
    int i;
    for (i = 0; i < $N; ++i) {
        q[i] = good[i] = closed[i];
    }
    for (i = 0; i < $n; ++i) {
        way[i] = wanted[i] - closed[u[i]];
    }
    for (i = 0; i < $most && outcome == 0.0; ++i) {
        closing(q, way, change);
        outcome = advance(
            $n, $m, u, d, per_unit, closed, wanted, change, good, tangent, state, q);
    }
    if (!(outcome > 0.0)) {
        return 0;
    }
    for (i = 0; i < $N; ++i) {
        closed[i] = q[i];
    }
    return 1;
}
""")

# Evaluations after which the way is given up: more than a turn of all joints takes.
_MOST = 1000


def closing_code(name: str, closure: Closure) -> str:
    """Function that closes the loops, and those that it calls, but `closing`.

    Parameters
    ----------
    name : str
        Begins its name.
    closure : Closure
    """
    source = inspect.getsource(following)
    helpers = [line for line in HELPERS.splitlines() if 'pi =' not in line]
    return _CLOSE.substitute(
        name=name,
        helpers='\n'.join(helpers).strip(),
        kernels=translated(source, ['predict', 'advance'], Environment({})),
        tolerance=TOLERANCE,
        largest=LARGEST_STEP,
        corrections=float(following.CORRECTIONS),
        farthest=following.FARTHEST,
        leap=following.LARGEST_LEAP,
        ahead=following.AHEAD,
        short=following.SHORT,
        states=following.STATES,
        per_unit=', '.join(repr(float(value)) for value in 1.0 / closure.unit),
        n=len(closure.independent),
        m=len(closure.dependent),
        N=closure.tree.n_joints,
        u=', '.join(map(str, closure.independent)),
        d=', '.join(map(str, closure.dependent)),
        most=_MOST,
    )


def closing_declaration(name: str, closure: Closure) -> str:
    """Declarations of what closes the loops."""
    n, N = len(closure.independent), closure.tree.n_joints
    return f"""
/* Where the loops start: positions of all joints at which they are closed. */
extern const double {name}_start[{N}];
/* Positions of all joints for wanted ones of the independent joints, followed from closed
 * ones, which begin as the start. Returns 1; 0, with `closed` as it was, where there is no way. */
int {name}_close(const double wanted[{n}], double closed[{N}]);
"""
