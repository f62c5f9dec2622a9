"""The subcommands of `hodyn` with their arguments and options; each is imported when it runs.

`COMMANDS` has them in the order of the help. What a subcommand does is in the function of its name
in the module that is named with it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from hodyn_ros.names import (
    ACTINGS,
    BUNDLED_ROBOTS,
    DERIVATIVES,
    EXPRESSIONS,
    GROUPS,
    INTERPOLATIONS,
    TARGETS,
)

COMMANDS: list[click.Command] = []


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


def _option(*names: str, **settings: Any) -> click.Option:
    return click.Option(names, **settings)


def _file(*names: str, **settings: Any) -> click.Option:
    return click.Option(names, **{'type': click.Path(path_type=Path), **settings})


# `hodyn_ros.cli.main.run` looks for it before anything is parsed.
debug_option = _option(
    '--debug',
    is_flag=True,
    expose_value=False,
    help='Show the whole traceback of an error.',
)
_JSON = _option('--json', 'as_json', is_flag=True, help='Print JSON, for programs to read.')
_LIMITS = _option(
    '--limits',
    metavar='FILE',
    help='YAML file with limits of acceleration, jerk, torque rate and the rate of that, in the '
    'layout of config/panda.yaml, or its name (panda, iiwa14), in place of those of the '
    'description. By default those that come with the robot; "urdf": none.',
)
_ACTUATORS = _file(
    '--actuators',
    metavar='FILE',
    help='YAML file that says what is between motors and joints, in the layout of '
    'config/panda_sea.yaml, or its name (panda_sea).',
)
_OF_ROBOT = (
    _option('--base-link', metavar='LINK', help='First link; by default the root.'),
    _option(
        '--tip-link',
        metavar='LINK',
        help='Last link of the chain to be used; by default the whole tree.',
    ),
    _option(
        '--gravity',
        nargs=3,
        type=float,
        default=None,
        metavar='X Y Z',
        help='Gravitational acceleration in base link axes [m/s^2]; by default 0 0 -9.81, or that '
        'of an SDF or MJCF.',
    ),
    _option(
        '--open-loops',
        is_flag=True,
        help='Leave the loops and couplings of the description open: the tree alone.',
    ),
    _option(
        '--joint-friction',
        is_flag=True,
        help='Use the damping and friction of the joints in the description.',
    ),
    _file(
        '--friction',
        metavar='FILE',
        help='YAML file with the friction of joints, in the layout of config/generic.yaml; it '
        'replaces that of the description for the joints that it names.',
    ),
    _option(
        '--xacro-arg',
        'xacro_arguments',
        type=xacro_argument,
        multiple=True,
        metavar='NAME:=VALUE',
        help='Argument of a xacro file; may be repeated.',
    ),
    _option(
        '--allow-impossible-inertia',
        is_flag=True,
        help='Use inertia tensors with negative principal moments as they are given.',
    ),
)
_ROBOT = (click.Argument(['robot'], shell_complete=complete_robot), *_OF_ROBOT)
_ROBOT_OR_NONE = (
    click.Argument(['robot'], required=False, default='', shell_complete=complete_robot),
    *_OF_ROBOT,
)
_MOTION = (
    click.Argument(['motion'], type=click.Path(path_type=Path)),
    _option('--topic', metavar='NAME', help='Of a bag; needed if several hold a motion.'),
    _option(
        '--index',
        type=click.IntRange(0),
        metavar='N',
        help='Which of the trajectories of a topic, from 0.',
    ),
    _option(
        '--derivatives',
        type=click.Choice(DERIVATIVES),
        default='auto',
        show_default=True,
        help='Where the derivatives of the positions come from that MOTION leaves out: nowhere '
        '(given), from the spline through all samples, or estimated from measurements.',
    ),
    _option(
        '--rate',
        type=_Number(0.0, min_open=True),
        metavar='HZ',
        help='Samples per second of what is computed, where a spline has values between those of '
        'MOTION: by default at its samples, between waypoints at 100 Hz, of a new timing along a '
        'path at 1000 Hz.',
    ),
    _option(
        '--interpolation',
        type=click.Choice(INTERPOLATIONS),
        default='spline',
        show_default=True,
        help='Between waypoints: four times continuously differentiable, or as '
        'joint_trajectory_controller moves, without or with its positions_upsampling.',
    ),
    _option(
        '--order',
        type=click.IntRange(0, 4),
        default=2,
        show_default=True,
        help='Highest time derivative of the torques. Above 2, MOTION has to give its '
        'derivatives; the torque rate of motors behind springs needs 3.',
    ),
    _option(
        '--wrench-expressed-in',
        'expressed_in',
        type=click.Choice(EXPRESSIONS),
        help='Axes and origin of the wrench columns of MOTION; by default as it says, or body.',
    ),
    _option(
        '--wrench-acting',
        'acting',
        type=click.Choice(ACTINGS),
        help='Direction of the wrench columns; by default as MOTION says, or on_environment.',
    ),
    _ACTUATORS,
)
_RECORDINGS = (
    click.Argument(
        ['recordings'],
        nargs=-1,
        required=True,
        metavar='RECORDING...',
        type=click.Path(path_type=Path),
    ),
    _option('--topic', metavar='NAME', help='Of a bag: joint states with efforts.'),
    _option(
        '--motor-topic',
        metavar='NAME',
        help='Of a bag: joint states of the motors of elastic joints, by names of joints.',
    ),
    _option('--link', metavar='LINK', help='Of a payload.'),
    _option(
        '--bandwidth',
        type=_Number(0.0, min_open=True),
        metavar='HZ',
        help='Pass band of the filter; by default found from noise and motion.',
    ),
)

OPTIONS_OF_MOTION = {str(option.name): option.opts[-1] for option in _MOTION[1:]}
"""Names on the command line of what is said of a motion, by those in `Given`."""

_SECTIONS: dict[click.Parameter, str] = {
    **dict.fromkeys(_MOTION, 'Motion'),
    **dict.fromkeys(_RECORDINGS, 'Recordings'),
    **dict.fromkeys(_OF_ROBOT, 'Robot'),
    **dict.fromkeys((_LIMITS, _ACTUATORS), 'Limits and drives'),
    **dict.fromkeys((_JSON, debug_option), 'Output'),
}
"""Where the help has options that several commands share."""


class SectionedCommand(click.Command):
    """Command whose help shows its own options first, and the others by what they are about."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each section."""
        titles = ('Options', 'Limits and drives', 'Motion', 'Recordings', 'Robot', 'Output')
        rows: dict[str, list[tuple[str, str]]] = {title: [] for title in titles}
        for parameter in self.get_params(ctx):
            if (row := parameter.get_help_record(ctx)) is not None:
                is_output = not {'-o', '--help'}.isdisjoint(parameter.opts)
                own = 'Output' if is_output else 'Options'
                rows[_SECTIONS.get(parameter, own)].append(row)
        for title in filter(rows.get, titles):
            with formatter.section(title):
                formatter.write_dl(rows[title])


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
    module: str, short_help: str, *parameters: click.Parameter
) -> Callable[[Callable[[], None]], click.Command]:
    """Make a subcommand of a function that has its name and its help."""

    def declared(function: Callable[[], None]) -> click.Command:
        name = function.__name__

        def run(**arguments: Any) -> Any:
            from hodyn_ros.cli.problem import Given

            if 'robot' in arguments:
                known = {key: arguments.pop(key) for key in [*arguments] if key in GIVEN}
                arguments['given'] = Given(**known)
            return getattr(import_module(f'hodyn_ros.cli.{module}'), name)(**arguments)

        command = SectionedCommand(
            name,
            callback=run,
            params=[*parameters, debug_option],
            help=verbatim_blocks(function.__doc__ or ''),
            short_help=short_help,
        )
        COMMANDS.append(command)
        return command

    return declared


GIVEN = {parameter.name for parameter in (*_ROBOT, *_MOTION, _LIMITS)}
"""Names of what `Given` holds of the command line."""


@_command(
    'robot_commands',
    'Show what is known of a robot, or which robots there are.',
    *_ROBOT_OR_NONE,
    _LIMITS,
    _ACTUATORS,
    _JSON,
)
def info() -> None:
    """Show joints, limits, friction and masses of ROBOT, and what is doubtful in its description.

    Without ROBOT, list the robots that need no file. ROBOT is one of

      robot.urdf, .urdf.xacro, .sdf    a file; xacro files need the package xacro
      robot.xml                        an MJCF, with the package mujoco; the first element of a
                                       file says what it is, whatever its name
      panda, panda_with_hand, fr3, fr3_with_hand, iiwa14, ur5e, ur10e, two_link
                                       robots that come with hodyn_ros
      parallel_ankle, five_bar, delta, palletiser
                                       such robots with closed loops
      ur5, talos_left_arm, ...         of the package example-robot-data
      gen3, xarm7, ...                 of the package robot_descriptions
      my_package/urdf/robot.urdf       of a ROS package; my_package if it has one only

    If several packages have a robot of the same name, put the package in front:
    example-robot-data:panda, robot_descriptions:panda or ros:panda_description.

    For example
      hodyn info                              # which robots are there?
      hodyn info panda
      hodyn info talos_left_arm --json
      hodyn info robot.urdf --tip-link tool0
    """


@_command(
    'compute',
    'Compute joint torques of a motion with their time derivatives.',
    *_ROBOT,
    *_MOTION,
    _file(
        '-o',
        '--output',
        metavar='OUT',
        help='File to be written, or folder if MOTION is one. Without it nothing is written: the '
        'largest values are shown.',
    ),
    _option(
        '--workers',
        type=click.IntRange(0),
        metavar='N',
        help='Of a folder: processes; by default one for each core.',
    ),
    _option(
        '--scheduler',
        metavar='ADDRESS',
        help='Of a folder: Dask scheduler whose workers compute, such as tcp://host:8786.',
    ),
    _option(
        '--resume',
        is_flag=True,
        help='Of a folder: go on with an output folder that exists already.',
    ),
    _option(
        '--suffix',
        type=click.Choice(['.parquet', '.npz', '.csv']),
        default='.parquet',
        show_default=True,
        help='Of a folder: format of the results.',
    ),
    _JSON,
)
def compute() -> None:
    """Compute the joint torques of ROBOT along MOTION, with their time derivatives.

    MOTION and OUT are files of these kinds, by their suffix:

      .csv .npz .parquet    tables: time, <joint>.position, <joint>.velocity, ...
      .yaml                 a trajectory, as trajectory_msgs/JointTrajectory
      .mcap .db3, a folder  a bag of ROS 2

    Columns <link>.wrench.force.x and so on are wrenches on links.

    If MOTION is a folder of such files, or a pattern in quotes, all of them are computed, by all
    cores or on a Dask cluster. What is done is kept if the command is interrupted, and --resume
    goes on.

    For example
      hodyn compute panda motion.csv -o efforts.csv
      hodyn compute panda waypoints.yaml -o efforts.mcap --actuators panda_sea
      hodyn compute robot.urdf recording/ --topic /joint_states -o efforts.parquet
      hodyn compute panda recordings/ -o results/ --workers 8 --resume
      hodyn compute panda 'recordings/*.csv' -o results/
    """


@_command(
    'check',
    'Compare a motion with the limits of a robot.',
    *_ROBOT,
    *_MOTION,
    _LIMITS,
    _option(
        '--recorded',
        type=click.Choice(['commanded', 'measured']),
        help='MOTION is a recording of a robot that stopped: what it was sent, sample by '
        'sample, or what was measured. Tells why it stopped.',
    ),
    _file(
        '--measured',
        metavar='FILE',
        help='What was measured beside the commands in MOTION.',
    ),
    _option(
        '--measured-topic',
        metavar='NAME',
        help='Of a bag, by default MOTION: what was measured beside the commands.',
    ),
    _file(
        '-o',
        '--output',
        metavar='FILE',
        help='Picture of where the robot stopped: .png, .pdf or .svg.',
    ),
    _JSON,
)
def check() -> None:
    """Compare MOTION with the limits of ROBOT: where is which exceeded, and by how much.

    Position, velocity, acceleration, jerk, torque and torque rate of the joints, and with
    --actuators velocity, torque and torque rate of the motors and deflections. Limits come from
    the robot description and from --limits. All are compared at the samples; --rate makes them
    denser where the motion is a spline. MOTION is a file as for `hodyn compute`.

    A motion whose velocity or acceleration jumps at waypoints, as with --interpolation jtc, has
    no bound for what follows from it, and counts as one that exceeds a limit.

    Why did my robot stop? With --recorded, MOTION is what it was sent or what was measured: a
    table with <joint>.position and maybe <joint>.effort, or a bag. Commands are differenced from
    one to the next, as the robot does it. What exceeds a limit is told with what made it so:
    cycles that were missed, jumps, steps of velocity or torque, and so on.

    The exit code is 0 if all limits are kept, 1 if one is exceeded, 2 if something is wrong.

    For example
      hodyn check panda motion.csv
      hodyn check panda sent.csv --recorded commanded -o stop.png
      hodyn check panda bag/ --topic /desired_joint_states --measured-topic /joint_states
      hodyn check robot.urdf waypoints.yaml --limits limits.yaml --json
      hodyn check panda motion.csv && echo "may be executed"
    """


@_command(
    'retime',
    'Make a motion keep its limits, or as fast as they allow.',
    *_ROBOT,
    *_MOTION,
    _LIMITS,
    _file(
        '-o',
        '--output',
        metavar='OUT',
        help='File for the new motion and its torques, of a kind as for `hodyn compute`.',
    ),
    _option(
        '--uniform',
        is_flag=True,
        help='Play the motion slower or faster as a whole, instead of a new timing along its '
        'path.',
    ),
    _option(
        '--slower-only',
        is_flag=True,
        help='A motion that keeps its limits stays as it is; another one does not become shorter.',
    ),
    _option(
        '--drop-standstills',
        is_flag=True,
        help='Leave out the time for which MOTION stands still, but for an instant of rest.',
    ),
    _option(
        '--window',
        type=_Number(0.0),
        default=8.0,
        show_default=True,
        metavar='MS',
        help='Time over which the new motion is averaged, which it takes longer.',
    ),
    _option(
        '--rise-time',
        type=_Number(0.0),
        default=20.0,
        show_default=True,
        metavar='MS',
        help='Time that a torque rate takes at least from zero to its limit, if its own rate '
        '(effort_ddot) has no limit; 0: none.',
    ),
    _option(
        '--intervals',
        type=click.IntRange(4, 4000),
        help='Of the time law: more are slower to compute and give a faster motion. By '
        'default 128, or four between two of the samples up to 512; four times as many where '
        'that gains a percent.',
    ),
    _JSON,
)
def retime() -> None:
    """Find a fast timing of MOTION with which ROBOT keeps its limits.

    The path stays, and so does the time for which MOTION stands still. The new motion begins and
    ends at rest, is four times continuously differentiable, and keeps the limits of velocity,
    acceleration, jerk, torque, torque rate and the rate of that; with --actuators those of the
    motors too. What has no limit is named with its largest value. With --uniform the motion is
    only stretched in time, by the smallest factor with which the limits are kept; this needs no
    path at rest and takes wrenches into account.

    The limits hold when joint_trajectory_controller executes OUT, which it does between samples
    from their positions, velocities and accelerations.

    For example
      hodyn retime panda fast.csv -o retimed.csv
      hodyn retime panda fast.csv -o slower.csv --slower-only
      hodyn retime panda waypoints.yaml --uniform
    """


@_command(
    'excite',
    'Find a motion that shows parameters of a robot.',
    *_ROBOT,
    _LIMITS,
    _ACTUATORS,
    _file(
        '-o',
        '--output',
        metavar='OUT',
        required=True,
        help='File for the motion and its torques, of a kind as for `hodyn compute`.',
    ),
    _option(
        '--target',
        type=click.Choice(TARGETS),
        default='bodies',
        show_default=True,
        help='What is to be shown: bodies, armature and friction together; what --link carries; '
        'friction alone; springs, which needs --actuators.',
    ),
    _option('--link', metavar='LINK', help='Of the payload; by default the tip.'),
    _option(
        '--joint',
        'joints',
        multiple=True,
        help='Joint that moves; may be repeated; by default all.',
    ),
    _option(
        '--box',
        nargs=6,
        type=float,
        metavar='X Y Z X Y Z',
        help='Lowest and highest corner, in base link axes, of what the origins of all moving '
        'links stay in [m].',
    ),
    _option(
        '--duration',
        type=_Number(0.0, min_open=True),
        default=20.0,
        show_default=True,
        metavar='S',
        help='Of the motion [s].',
    ),
    _option(
        '--rate',
        type=_Number(0.0, min_open=True),
        default=1000.0,
        show_default=True,
        metavar='HZ',
        help='Samples per second, of OUT and of what will be measured.',
    ),
    _option(
        '--effort-noise',
        type=_Number(0.0, min_open=True),
        default=0.1,
        show_default=True,
        metavar='NM',
        help='Standard deviation of measured torques [N m].',
    ),
    _option(
        '--seed',
        type=click.IntRange(0),
        default=0,
        show_default=True,
        metavar='N',
        help='Of the search: other numbers find other motions.',
    ),
    _JSON,
)
def excite() -> None:
    """Find a motion along which measured torques of ROBOT show its parameters.

    It begins and ends at rest, is four times continuously differentiable, and uses 80 % of the
    limits at most. How well it shows the parameters is told by the standard deviations that are to
    be expected. Collisions are not checked, but for --box.

    For example
      hodyn excite panda -o motion.csv
      hodyn excite panda -o motion.csv --target payload --link panda_link8 --duration 10
      hodyn excite panda -o motion.csv --target friction --joint panda_joint4
      hodyn excite panda -o motion.csv --target springs --actuators panda_sea
      hodyn excite panda -o motion.csv --box -0.3 -0.7 0.1  0.8 0.7 1.3
    """


@_command(
    'identification',
    'Compare measured torques with computed ones.',
    *_ROBOT,
    *_RECORDINGS,
    _LIMITS,
    _ACTUATORS,
    _file(
        '-o',
        '--output',
        metavar='FILE',
        help='Report (.html) or picture (.png, .pdf, .svg).',
    ),
    _JSON,
)
def compare() -> None:
    """Compare torques that were measured on ROBOT with those of its model.

    RECORDING is a table with columns <joint>.position and <joint>.effort, or a bag with
    sensor_msgs/JointState. Derivatives come from the positions. Shown is how far the torques are
    apart, at which frequencies, and what part of that friction, a payload, another direction of
    gravity, a delay or other masses would explain, each by itself.

    For example
      hodyn compare panda recording.mcap
      hodyn compare panda recording.csv --link panda_link8 -o comparison.html
      hodyn compare identified.urdf recording.csv --friction identified_friction.yaml
    """


@_command(
    'identification',
    'Identify parameters of a robot from recordings.',
    *_ROBOT,
    *_RECORDINGS,
    _LIMITS,
    _ACTUATORS,
    _file(
        '-o',
        '--output',
        metavar='FILE',
        help='Robot description (.urdf); files of limits, friction and actuators, a report and '
        'the archive have its name with other endings. By default nothing is written.',
    ),
    _option(
        '--estimate',
        'groups',
        multiple=True,
        type=click.Choice(GROUPS),
        help='What is estimated; may be repeated. By default bodies (with --link the payload '
        'instead), viscous, coulomb, offset and delay, without --link armature, and with '
        'elastic joints stiffness and damping.',
    ),
    _file(
        '--validate',
        'validation',
        multiple=True,
        metavar='RECORDING',
        help='Recording that is not used but compared with; may be repeated. By default a fifth '
        'of the recordings, in pieces.',
    ),
    _option(
        '--smoothing',
        type=_Number(0.0),
        default=0.01,
        show_default=True,
        metavar='RAD/S',
        help='Of Coulomb friction in what is written.',
    ),
    _JSON,
)
def identify() -> None:
    """Identify parameters of ROBOT from recordings of its motion and torques.

    RECORDING is a file as for `hodyn compare`; of elastic joints (--actuators says which) with
    <joint>.motor_position and <joint>.motor_torque. Written are a robot description in which only
    masses and inertias change, such that bodies can have them, parameter files for nodes and for
    --limits (those that ROBOT has beside its description), --friction and --actuators, a report,
    and an archive of the run: inputs with digests, options, versions and figures.

    What is left is held against the noise, and what would explain the rest is said. A result that
    meets what was not used worse than ROBOT does is refused.

    For example
      hodyn excite panda -o motion.csv
      hodyn identify panda recording.mcap -o identified.urdf --validate another.mcap
      hodyn identify panda recording.csv -o loaded.urdf --link panda_link8
      hodyn identify panda recording.csv -o elastic.urdf --actuators panda_sea
    """


@_command(
    'pictures',
    'Draw torques, their derivatives and limits.',
    *_ROBOT,
    *_MOTION,
    _LIMITS,
    _option(
        '--kind',
        type=click.Choice(['efforts', 'motion', 'portraits', 'motors', 'energy']),
        default='efforts',
        show_default=True,
        help='Torques and their derivatives; positions and theirs; torque over torque rate; '
        'motors; kinetic and potential energy.',
    ),
    _option(
        '--joint',
        'joints',
        multiple=True,
        help='Joint to draw; may be repeated; by default all, or the 12 nearest to their limits.',
    ),
    _file(
        '-o',
        '--output',
        metavar='FILE',
        help='.png, .pdf or .svg; by default <motion>_<kind>.png.',
    ),
    _option(
        '--dpi',
        type=click.IntRange(10, 2000),
        default=120,
        show_default=True,
        help='Pixels per inch of a .png.',
    ),
)
def plot() -> None:
    """Draw torques of ROBOT along MOTION, with limits and where they are exceeded.

    MOTION is a file as for `hodyn compute`.

    For example
      hodyn plot panda motion.csv
      hodyn plot panda motion.csv --kind portraits -o portraits.pdf
      hodyn plot panda motion.csv --kind motors --actuators panda_sea
      hodyn plot panda motion.csv --kind motion --joint panda_joint4
    """


@_command(
    'pictures',
    'Write a report with checks and plots as one HTML file.',
    *_ROBOT,
    *_MOTION,
    _LIMITS,
    _file('-o', '--output', metavar='FILE', help='By default <motion>_report.html.'),
    _option('--title', help='By default the names of robot and motion.'),
    _option('--open', 'show', is_flag=True, help='Open it in the browser.'),
)
def report() -> None:
    """Write a report on MOTION: the robot, the limits, and interactive plots of all orders.

    The file needs nothing else, opens in any browser, and can be printed. MOTION is a file as for
    `hodyn compute`.

    For example
      hodyn report panda motion.csv -o report.html
      hodyn report panda motion.csv --actuators panda_sea --open
    """


@_command(
    'pictures',
    'See robots move, with their torques and limits on a time line.',
    *_ROBOT,
    click.Argument(
        ['motions'], nargs=-1, metavar='[MOTION...]', type=click.Path(path_type=Path)
    ),
    *_MOTION[1:],
    _LIMITS,
    _option(
        '--live',
        is_flag=True,
        help='Show what a running hodyn_node publishes, until Ctrl-C; needs ROS, and no MOTION. '
        'Arguments of ROS come last, after --.',
    ),
    _file(
        '-o',
        '--output',
        metavar='FILE',
        help='Recording (.rrd) instead of a window; without a display, and without this option, '
        'it is <motion>.rrd, or <robot>.rrd.',
    ),
    _option(
        '--serve',
        is_flag=True,
        help='Show it in a browser, also of another machine, until Ctrl-C.',
    ),
)
def view() -> None:
    """See ROBOT move along each MOTION, side by side, in the viewer Rerun.

    Links have the colour of the largest part of a limit that their joint uses: grey to green, red
    beyond it. Arrows are wrenches that act on the robot; with --actuators pins show how far the
    springs of the joints are turned, magnified twenty times. Beside the robots are torques and
    their derivatives with limits, on one time line. MOTION is a file as for `hodyn compute`.

    For example
      hodyn view panda motion.csv
      hodyn view panda fast.csv retimed.csv
      hodyn view robot.urdf motion.csv -o motion.rrd     # open it with: rerun motion.rrd
      hodyn view panda --live -- --ros-args -r __ns:=/left
    """


@_command(
    'robot_commands',
    'Write motions of the Franka Panda for the other commands.',
    _file(
        '-o',
        '--output',
        'folder',
        default=Path('hodyn_demo'),
        show_default=True,
        metavar='FOLDER',
        help='Made if it does not exist.',
    ),
)
def demo() -> None:
    """Write two motions of the Franka Panda, and show commands that read them.

    Needs no ROS. Writes positions to snap into FOLDER

      motion.csv    eight seconds of motion, in its limits
      fast.csv      from side to side as fast as limits of velocity, acceleration and torque
                    allow: the torque rate is at 276 % of its limit
    """


@_command(
    'robot_commands',
    'Write the inverse dynamics of a robot as C or C++ code.',
    *_ROBOT,
    _file(
        '-o',
        '--output',
        metavar='FOLDER',
        help='Made if it does not exist; by default <robot>_dynamics, or <name>_dynamics.',
    ),
    _option(
        '--language',
        type=click.Choice(['c', 'cpp']),
        default='c',
        show_default=True,
        help='C99 or C++11.',
    ),
    _option(
        '--order',
        'orders',
        type=click.IntRange(0, 2),
        multiple=True,
        help='Highest time derivative of the torques: functions for all orders up to it. '
        'Repeated: for these orders only.  [default: 2]',
    ),
    _option(
        '--precision',
        type=click.Choice(['double', 'float']),
        default='double',
        show_default=True,
        help='Type of the numbers.',
    ),
    _option('--name', help='Begins all names in the code; by default that of the robot.'),
    _option(
        '--wrench',
        'wrench_links',
        multiple=True,
        metavar='LINK',
        help='Link on which a wrench acts; may be repeated.',
    ),
    _option(
        '--forward-dynamics',
        is_flag=True,
        help='Functions for the accelerations that efforts cause, too.',
    ),
    _file(
        '--ros2-control',
        metavar='FOLDER',
        help='Write a package of a controller of ros2_control instead, with the tracking law for '
        'the --actuators.',
    ),
    _ACTUATORS,
    _option(
        '--sample-period',
        type=_Number(0.0, min_open=True),
        default=0.001,
        show_default=True,
        metavar='SECONDS',
        help='Of that controller.',
    ),
    _option(
        '--delay',
        type=_Number(0.0),
        default=0.0,
        metavar='SECONDS',
        help='From a measurement until its torque acts, as far as known.  [default: 0]',
    ),
    _option('--force', is_flag=True, help='Replace files that were not generated.'),
)
def generate() -> None:
    """Write the inverse dynamics of ROBOT as C or C++ code, which needs no library.

    Beside it is a test with reference values and a CMakeLists.txt.

    For example
      hodyn generate panda -o panda_c --wrench panda_link8
      hodyn generate robot.urdf --language cpp --order 1
      hodyn generate panda --actuators panda_sea --ros2-control panda_tracking_controller
    """
