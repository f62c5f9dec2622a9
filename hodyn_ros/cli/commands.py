"""The subcommands of `hodyn` with their arguments and options; each is imported when it runs.

`COMMANDS` has them in the order of the help, `ELSEWHERE` options and commands that one may look
for and what to write instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from hodyn_ros.names import BUNDLED_ROBOTS, DERIVATIVES, GROUPS, INTERPOLATIONS, TARGETS

COMMANDS: list[click.Command] = []

_CONFIG = 'write --config FILE'
ELSEWHERE = {
    '--limits': f'{_CONFIG}, or --config limits:=description for those of the description alone',
    '--friction': _CONFIG,
    '--actuators': _CONFIG,
    '--joint-friction': 'write --config friction:=description',
    '--base-link': 'write --config base_link:=LINK',
    '--open-loops': 'write --config loops:=open',
    '--allow-impossible-inertia': 'write --config allow_impossible_inertia:=true',
    '--index': 'write --topic NAME:N',
    '--order': 'leave it out; torques have all derivatives up to the second, and up to the '
    'fourth where MOTION gives what they need',
    '--wrench-expressed-in': 'write it into MOTION, behind the unit in the titles of the columns: '
    '"tool.wrench.force.x [N] hybrid on_robot"',
    '--wrench-acting': 'write it into MOTION, behind the unit in the titles of the columns: '
    '"tool.wrench.force.x [N] body on_robot"',
    '--scheduler': 'write --workers ADDRESS',
    '--suffix': "write -o 'FOLDER/*.csv'",
    '--measured-topic': 'write --measured TOPIC',
    '--window': 'leave it out; the timing is averaged over 8 ms',
    '--rise-time': 'write limits of effort_ddot into the file of --config',
    '--drop-standstills': 'write keep_standstills=False in Python, see hodyn_ros.retiming.retime',
    '--intervals': 'leave it out; their number is chosen',
    '--seed': 'leave it out; another --duration finds another motion',
    '--bandwidth': 'leave it out; it is found from noise and motion',
    '--motor-topic': 'write --topic a second time, for the motors',
    '--smoothing': 'write it into the file of parameters that identify makes',
    '--dpi': 'write -o FILE.svg or FILE.pdf, which are sharp at any size',
    '--title': 'leave it out',
    '--open': 'open the file of -o',
    'report': 'write hodyn plot ROBOT MOTION -o FILE.html',
}
"""Options and commands that do not exist, and what to write instead."""


def complete_robot(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Bundled robots that begin so; the shell adds files.

    Parameters
    ----------
    ctx, param
        Of click; not used.
    incomplete : str
        What has been typed.

    Returns
    -------
    list of click.shell_completion.CompletionItem
    """
    names = [name for name in BUNDLED_ROBOTS if name.startswith(incomplete)]
    return [*map(CompletionItem, names), CompletionItem(incomplete, type='file')]


def xacro_argument(text: str) -> tuple[str, str]:
    """Divide an argument of a xacro file, name:=value.

    Parameters
    ----------
    text : str
        Such as 'hand:=true'.

    Returns
    -------
    (str, str)
        Name and value, which may be empty.

    Raises
    ------
    click.BadParameter
        If it is not of this form.
    """
    name, separator, value = text.partition(':=')
    if not (name and separator):
        raise click.BadParameter(f'{text!r} is not of the form name:=value')
    return name, value


class _Number(click.FloatRange):
    """Number in a range."""

    name = 'number'


_PICTURES = ('efforts', 'motion', 'portraits', 'motors', 'energy')
_PATH = click.Path(path_type=Path)
_POSITIVE = _Number(0.0, min_open=True)


def _option(*names: str, **settings: Any) -> click.Option:
    return click.Option(names, **settings)


def _choice(
    name: str, choices: Sequence[str], default: str | None = None, **settings: Any
) -> click.Option:
    settings = {'metavar': 'KIND', 'help': f'{", ".join(choices)}.', **settings}
    return _option(name, type=click.Choice(choices), default=default, **settings)


def _output(text: str, metavar: str = 'FILE', **settings: Any) -> click.Option:
    return _option('-o', '--output', metavar=metavar, type=_PATH, help=text, **settings)


# `hodyn_ros.cli.main.run` looks for it before anything is parsed.
debug_option: click.Option = _option(
    '--debug', is_flag=True, expose_value=False, help='Trace errors.'
)
_JSON = _option('--json', 'as_json', is_flag=True, help='Print JSON, for programs.')
_OF_ROBOT = (
    _option(
        '--config',
        multiple=True,
        metavar='FILE',
        help='Limits, friction, actuators; or NAME:=VALUE.',
    ),
    _option('--tip-link', metavar='LINK', help='A chain instead of the whole tree.'),
    _option(
        '--gravity',
        nargs=3,
        type=float,
        default=None,
        metavar='X Y Z',
        help='In base link axes [m/s^2].',
    ),
    _option(
        '--xacro-arg',
        'xacro_arguments',
        type=xacro_argument,
        multiple=True,
        metavar='NAME:=VALUE',
        help='Of a xacro file.',
    ),
)
_ROBOT = (click.Argument(['robot'], shell_complete=complete_robot), *_OF_ROBOT)
_OF_MOTION = (
    _option('--topic', metavar='NAME', help='Of a bag; NAME:2: its third trajectory.'),
    _choice('--derivatives', DERIVATIVES, 'auto'),
    _option(
        '--rate',
        type=_POSITIVE,
        metavar='HZ',
        help='Of the samples of a spline.',
    ),
    _choice('--interpolation', INTERPOLATIONS, 'spline'),
)
_MOTION = (click.Argument(['motion'], type=_PATH), *_OF_MOTION)
_MARGIN = _option(
    '--margin',
    'margins',
    multiple=True,
    metavar='QUANTITY=SHARE',
    help='Of a limit, left to feedback: torque_rate=20%.',
)
_RECORDINGS = (
    click.Argument(
        ['recordings'], nargs=-1, required=True, metavar='RECORDING...', type=_PATH
    ),
    _option(
        '--topic',
        'topics',
        multiple=True,
        metavar='NAME',
        help='Of a bag: joint states; a second one: motors.',
    ),
    _option('--link', metavar='LINK', help='Of a payload.'),
)
_GIVEN = {str(parameter.name) for parameter in (*_ROBOT, *_MOTION, _MARGIN)}


def verbatim_blocks(text: str) -> str:
    """Mark paragraphs with indented lines, such as examples, so that click does not fill them.

    Parameters
    ----------
    text : str
        A docstring.

    Returns
    -------
    str
        The help as click takes it.
    """
    paragraphs = inspect.cleandoc(text).split('\n\n')
    return '\n\n'.join(
        f'\b\n{part}' if '\n  ' in f'\n{part}' and not part.startswith('\b') else part
        for part in paragraphs
    )


def _command(
    short_help: str, *parameters: click.Parameter
) -> Callable[[Callable[[], Callable[..., Any]]], click.Command]:
    """Make a subcommand of a function that has its name and its help, and imports what it does.

    Options are keywords of what is imported; those of robot and motion are fields of `Given`.
    """

    def declared(function: Callable[[], Callable[..., Any]]) -> click.Command:
        def run(**options: Any) -> Any:
            if 'robot' in options:
                from hodyn_ros.cli.problem import Given

                given = Given(
                    **{name: options.pop(name) for name in _GIVEN & options.keys()}
                )
                options['given'] = given
            return function()(**options)

        command = click.Command(
            function.__name__,
            callback=run,
            params=[*parameters, debug_option],
            help=verbatim_blocks(function.__doc__ or ''),
            short_help=short_help,
        )
        COMMANDS.append(command)
        return command

    return declared


@_command(
    'Show what is known of a robot, or which robots there are.',
    click.Argument(['robot'], required=False, default='', shell_complete=complete_robot),
    *_OF_ROBOT,
    _JSON,
)
def info() -> Callable[..., Any]:
    """Show joints, limits, friction and masses of ROBOT, and what is doubtful in its description.

    Without ROBOT, list the robots that need no file. ROBOT is one of

      robot.urdf, .urdf.xacro, .sdf    a file; xacro files need the package xacro
      robot.xml                        an MJCF, with the package mujoco
      panda, ur5e, ...                 robots that come with hodyn_ros
      ur5, talos_left_arm, ...         of the package example-robot-data
      gen3, xarm7, ...                 of the package robot_descriptions
      my_package/urdf/robot.urdf       of a ROS package; my_package if it has one only

    If several packages have a robot of the same name, put the package in front:
    example-robot-data:panda, robot_descriptions:panda or ros:panda_description.

    For example
      hodyn info                              # which robots are there?
      hodyn info panda --config panda_sea
      hodyn info robot.urdf --tip-link tool0 --config loops:=open
    """
    from hodyn_ros.cli.info import info

    return info


@_command(
    'Compute joint torques of a motion with their time derivatives.',
    *_ROBOT,
    *_MOTION,
    _option(
        '--workers',
        metavar='N',
        help='Of a folder: processes, or a Dask scheduler.',
    ),
    _option('--resume', is_flag=True, help='Of a folder: go on with an existing OUT.'),
    _output('File, or folder if MOTION is one.', 'OUT'),
    _JSON,
)
def compute() -> Callable[..., Any]:
    """Compute the joint torques of ROBOT along MOTION, with their time derivatives.

    MOTION and OUT are files of these kinds, by their suffix:

      .csv .npz .parquet    tables: time, <joint>.position, <joint>.velocity, ...
      .yaml                 a trajectory, as trajectory_msgs/JointTrajectory
      .mcap .db3, a folder  a bag of ROS 2

    Of a folder of such files, or a pattern in quotes, all are computed; what is done is kept if
    the command is interrupted, and --resume goes on. OUT is then a folder, of .parquet files;
    'OUT/*.csv' chooses others.

    For example
      hodyn compute panda motion.csv -o efforts.csv
      hodyn compute panda waypoints.yaml -o efforts.mcap --config panda_sea
      hodyn compute robot.urdf recording/ --topic /joint_states -o efforts.parquet
      hodyn compute panda 'recordings/*.csv' -o results/ --workers 8 --resume
    """
    from hodyn_ros.cli.compute import compute

    return compute


@_command(
    'Compare a motion with the limits of a robot.',
    *_ROBOT,
    *_MOTION,
    _MARGIN,
    _choice(
        '--recorded',
        ('commanded', 'measured'),
        help='Why did it stop? commanded or measured.',
    ),
    _option(
        '--measured',
        metavar='FILE',
        help='Measured beside MOTION; or a topic of its bag.',
    ),
    _output('Picture of where it stopped: .png, .pdf, .svg.'),
    _JSON,
)
def check() -> Callable[..., Any]:
    """Compare MOTION with the limits of ROBOT: where is which exceeded, and by how much.

    Position to jerk, torque and torque rate of joints, and with actuators in --config velocity,
    torque and torque rate of motors and deflections, at the samples; --rate makes them denser
    where the motion is a spline. A motion whose velocity or acceleration jumps, as with
    --interpolation jtc, counts as one that exceeds a limit.

    Why did my robot stop? With --recorded, MOTION is what it was sent or what was measured: a
    table with <joint>.position and maybe <joint>.effort, or a bag.

    The exit code is 0 if all limits are kept, 1 if one is exceeded, 2 if something is wrong.

    For example
      hodyn check panda motion.csv && echo "may be executed"
      hodyn check robot.urdf waypoints.yaml --config limits.yaml --json
      hodyn check panda sent.csv --recorded commanded -o stop.png
      hodyn check panda bag/ --topic /desired_joint_states --measured /joint_states
    """
    from hodyn_ros.cli.check import check

    return check


@_command(
    'Make a motion keep its limits, or as fast as they allow.',
    *_ROBOT,
    *_MOTION,
    _MARGIN,
    _option('--uniform', is_flag=True, help='Stretch the motion as a whole.'),
    _option(
        '--slower-only',
        is_flag=True,
        help='What keeps its limits stays as it is.',
    ),
    _output('New motion with its torques.', 'OUT'),
    _JSON,
)
def retime() -> Callable[..., Any]:
    """Find a fast timing of MOTION with which ROBOT keeps its limits.

    The path stays, and so does the time for which MOTION rests. The new motion begins and ends
    at rest, is four times continuously differentiable, and keeps the limits of velocity to jerk,
    torque, torque rate and the rate of that; with actuators in --config those of the motors too.
    With --uniform the motion is stretched by the smallest factor that does; this needs no path
    at rest and takes wrenches into account.

    The limits hold when joint_trajectory_controller executes OUT, which it does between samples
    from their positions, velocities and accelerations.

    For example
      hodyn retime panda fast.csv -o retimed.csv
      hodyn retime panda fast.csv -o slower.csv --slower-only
      hodyn retime panda waypoints.yaml --uniform
    """
    from hodyn_ros.cli.retime import retime

    return retime


@_command(
    'Find a motion that shows parameters of a robot.',
    *_ROBOT,
    _choice('--target', TARGETS, 'bodies', metavar='WHAT'),
    _option('--link', metavar='LINK', help='Of the payload; by default the tip.'),
    _option(
        '--joint',
        'joints',
        multiple=True,
        help='That moves, repeatable; by default all.',
        metavar='NAME',
    ),
    _option(
        '--box',
        nargs=6,
        type=float,
        metavar='X Y Z X Y Z',
        help='Corners of a box for the links [m].',
    ),
    _option(
        '--duration', type=_POSITIVE, default=20.0, metavar='S', help='By default 20 s.'
    ),
    _option(
        '--rate',
        type=_POSITIVE,
        default=1000.0,
        metavar='HZ',
        help='Of OUT and measurements; by default 1000 Hz.',
    ),
    _option(
        '--effort-noise',
        type=_POSITIVE,
        default=0.1,
        metavar='NM',
        help='Of measured torques; by default 0.1 N m.',
    ),
    _output('Motion with its torques.', 'OUT', required=True),
    _JSON,
)
def excite() -> Callable[..., Any]:
    """Find a motion along which measured torques of ROBOT show its parameters.

    It begins and ends at rest, is four times continuously differentiable, and uses 80 % of the
    limits at most. Expected standard deviations tell how well it shows the parameters. Collisions
    are not checked, but for --box.

    For example
      hodyn excite panda -o motion.csv --box -0.3 -0.7 0.1  0.8 0.7 1.3
      hodyn excite panda -o motion.csv --target payload --link panda_link8 --duration 10
      hodyn excite panda -o motion.csv --target friction --joint panda_joint4
      hodyn excite panda -o motion.csv --target springs --config panda_sea
    """
    from hodyn_ros.cli.excite import excite

    return excite


@_command(
    'Compare measured torques with computed ones.',
    *_ROBOT,
    *_RECORDINGS,
    _output('Report (.html) or picture (.png, .pdf, .svg).'),
    _JSON,
)
def compare() -> Callable[..., Any]:
    """Compare torques that were measured on ROBOT with those of its model.

    RECORDING is a table with columns <joint>.position and <joint>.effort, or a bag with
    sensor_msgs/JointState. Shown is how far the torques are apart, at which frequencies, and what
    part of that friction, a payload, another direction of gravity, a delay or other masses would
    explain, each by itself.

    For example
      hodyn compare panda recording.mcap
      hodyn compare panda recording.csv --link panda_link8 -o comparison.html
      hodyn compare identified.urdf recording.csv --config identified.yaml
    """
    from hodyn_ros.cli.identification import compare

    return compare


@_command(
    'Identify parameters of a robot from recordings.',
    *_ROBOT,
    *_RECORDINGS,
    _option(
        '--estimate',
        'groups',
        multiple=True,
        type=click.Choice(GROUPS),
        help='Repeatable: ' + ', '.join(GROUPS) + '.',
        metavar='WHAT',
    ),
    _option(
        '--validate',
        'validation',
        multiple=True,
        type=_PATH,
        metavar='RECORDING',
        help='Held out, repeatable; by default a fifth.',
    ),
    _output('Robot (.urdf), beside it all else.'),
    _JSON,
)
def identify() -> Callable[..., Any]:
    """Identify parameters of ROBOT from recordings of its motion and torques.

    RECORDING is a file as for `hodyn compare`; of elastic joints (--config says which) with
    <joint>.motor_position and <joint>.motor_torque. Written are a robot description in which only
    masses and inertias change, such that bodies can have them, one file of limits, friction and
    actuators for --config and nodes, a report, and an archive of the run.

    Residuals are compared with the noise; what would explain larger ones is listed. A result that
    meets held-out recordings worse than ROBOT does is refused.

    For example
      hodyn identify panda recording.mcap -o identified.urdf --validate another.mcap
      hodyn identify panda recording.csv -o loaded.urdf --link panda_link8
      hodyn identify panda recording.csv -o elastic.urdf --config panda_sea
    """
    from hodyn_ros.cli.identification import identify

    return identify


@_command(
    'Draw torques, their derivatives and limits, or write a report.',
    *_ROBOT,
    *_MOTION,
    _choice('--kind', _PICTURES, 'efforts'),
    _option(
        '--joint',
        'joints',
        multiple=True,
        help='Repeatable; by default all, or 12 near limits.',
        metavar='NAME',
    ),
    _output('.png, .pdf or .svg; .html: a report.'),
)
def plot() -> Callable[..., Any]:
    """Draw torques of ROBOT along MOTION, with limits and where they are exceeded.

    With -o FILE.html it is a report: the robot, the limits, and interactive plots of all orders,
    in one file that opens in any browser and can be printed.

    For example
      hodyn plot panda motion.csv
      hodyn plot panda motion.csv -o report.html
      hodyn plot panda motion.csv --kind portraits -o portraits.pdf
      hodyn plot panda motion.csv --kind motors --config panda_sea
      hodyn plot panda motion.csv --kind motion --joint panda_joint4
    """
    from hodyn_ros.cli.pictures import plot

    return plot


@_command(
    'See robots move, with their torques and limits on a time line.',
    *_ROBOT,
    click.Argument(['motions'], nargs=-1, metavar='[MOTION...]', type=_PATH),
    *_OF_MOTION,
    _option('--live', is_flag=True, help='What hodyn_node publishes; needs ROS.'),
    _option('--serve', is_flag=True, help='In browsers, also of other machines.'),
    _output('Recording (.rrd) instead of a window.'),
)
def view() -> Callable[..., Any]:
    """See ROBOT move along each MOTION, side by side, in the viewer Rerun.

    Links have the colour of the largest part of a limit that their joint uses: grey to green, red
    beyond it. Arrows are wrenches that act on the robot; with actuators in --config pins show how
    far springs are turned, magnified twenty times. Torques and their derivatives stand beside it,
    on one time line.

    For example
      hodyn view panda motion.csv
      hodyn view panda fast.csv retimed.csv
      hodyn view robot.urdf motion.csv -o motion.rrd     # open it with: rerun motion.rrd
      hodyn view panda --live -- --ros-args -r __ns:=/left
    """
    from hodyn_ros.cli.pictures import view

    return view


@_command(
    'Write motions of the Franka Panda for the other commands.',
    _output('By default hodyn_demo.', 'FOLDER', default=Path('hodyn_demo')),
)
def demo() -> Callable[..., Any]:
    """Write two motions of the Franka Panda, and show commands that read them.

    Needs no ROS. Writes positions to snap into FOLDER

      motion.csv    eight seconds of motion, in its limits
      fast.csv      from side to side as fast as limits of velocity, acceleration and torque
                    allow: the torque rate is at 276 % of its limit
    """
    from hodyn_ros.cli.robot_commands import demo

    return demo


@_command(
    'Write the inverse dynamics of a robot as C or C++ code.',
    *_ROBOT,
    _option(
        '--language', type=click.Choice(['c', 'cpp']), default='c', help='C99 or C++11.'
    ),
    _option(
        '--order',
        'orders',
        type=click.IntRange(0, 2),
        multiple=True,
        help='Up to N, repeated: these; by default 2.',
        metavar='N',
    ),
    _choice('--precision', ('double', 'float'), 'double', metavar='TYPE'),
    _option('--name', help='Begins all names in the code.', metavar='NAME'),
    _option(
        '--wrench',
        'wrench_links',
        multiple=True,
        metavar='LINK',
        help='On which a wrench acts, repeatable.',
    ),
    _option('--forward-dynamics', is_flag=True, help='Accelerations from torques, too.'),
    _option(
        '--ros2-control',
        type=_PATH,
        metavar='FOLDER',
        help='Package of a controller for the drives.',
    ),
    _option(
        '--sample-period',
        type=_POSITIVE,
        default=0.001,
        metavar='S',
        help='Of that controller.',
    ),
    _option(
        '--delay',
        type=_Number(0.0),
        default=0.0,
        metavar='S',
        help='Until its torques act.',
    ),
    _option('--force', is_flag=True, help='Replace files of others.'),
    _output('By default <robot>_dynamics.', 'FOLDER'),
)
def generate() -> Callable[..., Any]:
    """Write the inverse dynamics of ROBOT as C or C++ code, which needs no library.

    Beside it is a test with reference values and a CMakeLists.txt.

    For example
      hodyn generate panda -o panda_c --wrench panda_link8
      hodyn generate robot.urdf --language cpp --order 1
      hodyn generate panda --config panda_sea --ros2-control panda_tracking_controller
    """
    from hodyn_ros.cli.robot_commands import generate

    return generate
