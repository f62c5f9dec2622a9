"""Whatever happens to a robot under the control loop, in any order: a machine of such events."""

import numpy as np
from support.robots import HEAVIER_TWO_LINK, TWO_LINK
from support.stream_host import DRIVE, PERIOD, START, ControlledRobot

from hodyn_ros.errors import HodynError

TORQUE, LIMIT, SPEED = 60.0, 2.0, 3.0  # of the motors and of the robot description
STATES = ('following', 'silent', 'stopped', 'suspended')
LAWS = (
    *('tracking', 'joint_impedance', 'cartesian_impedance', 'gravity_compensation'),
    *('feed_forward_2', 'flatness'),
)
AWAY = START + [0.5, -0.5]
FASTEST = 8.0  # times its limit, of a link that is pushed, or left to its weight


class Machine:
    """A robot, its users and everything that fails; all of it by the numbers of a seed."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.robot = ControlledRobot(
            drive={**DRIVE, 'max_motor_torque': TORQUE},
            max_external_torque=12.0,
            tool_link='tool',
        )
        self.change, self.stands, self.every = np.zeros((4, 2)), None, 1
        self.taken, self.xml = False, TWO_LINK
        self.stops = self.answered = 0
        self.seen = dict.fromkeys(STATES, 0)

    # What happens

    def wait(self):
        self.samples(self.random.integers(1, 30))

    def push(self):
        self.samples(10, push=self.random.uniform(-60.0, 60.0, 2))

    def force(self):
        self.samples(10, force=self.random.uniform(-20.0, 20.0, 2))

    def slip(self):
        offset = self.random.choice([0.0, 0.02, 0.5])
        self.change = np.array([[offset, 0.0], [0.0, 0.0]] * 2)

    def glitch(self):
        bad = np.zeros((4, 2))
        bad[self.random.integers(4), self.random.integers(2)] = self.random.choice(
            [0.3, 9.0, np.nan, np.inf]
        )
        for _ in range(self.random.integers(1, 8)):
            self.sample(change=self.change + bad)

    def stand(self):
        """The encoder of a motor stands, or moves again."""
        is_given = self.stands is None and self.random.random() < 0.2
        self.stands = self.robot.state[2, 0] if is_given else None

    def gap(self):
        for _ in range(self.random.integers(2, 90)):
            self.coast()

    def silence(self):
        self.robot.stamp += int(self.random.integers(1, 3)) * 10**9

    def jump(self):
        self.robot.control.begin_anew('time jumped')
        self.robot.stamp = max(10**8, self.robot.stamp - 10**8)

    def late(self):
        now, self.robot.stamp = self.robot.stamp, max(1, self.robot.stamp - 5 * PERIOD)
        self.attempt(self.robot.measure)
        self.robot.stamp = now

    def twice(self):
        """Two measurements before there is time to answer."""
        self.attempt(self.robot.measure)
        self.coast()

    def slower(self):
        self.every = 2 if self.every == 1 and self.random.random() < 0.3 else 1

    def move(self):
        self.send(START if self.random.random() < 0.5 else AWAY)

    def empty(self):
        self.send()

    def garbage(self):
        with_error = self.attempt(self.robot.control.take_trajectory, b'\0\1\0\0\7')
        assert with_error is not None

    def refer(self):
        """A stream of references; refused where the robot has been stopped or is led."""
        control, motion = self.robot.control, np.zeros((5, 2))
        motion[0] = self.robot.state[0]
        motion[1] = self.random.choice([0.0, 0.3, 1e3])
        why = control.why or control._host.settings.controller == 'gravity_compensation'
        error = self.attempt(control.check_reference)
        assert (error is not None) == bool(why)
        if error is None:
            self.attempt(control.take_reference, motion, self.robot.stamp)

    def law(self):
        before = self.robot.host.settings.controller
        name = str(self.random.choice(LAWS))
        error = self.attempt(self.robot.set, controller=name)
        modes = LAWS[:4]
        if self.robot.why and name != before and {name, before} & {*modes}:
            assert error is not None or self.robot.control.measured is None

    def bound(self):
        self.attempt(
            self.robot.set, max_tracking_error=float(self.random.choice([0.05, 0.2, 0.5]))
        )

    def hold(self):
        choice = str(self.random.choice(['hold', 'hold', 'stop']))
        self.attempt(self.robot.set, without_reference=choice)

    def reaction(self):
        self.attempt(
            self.robot.set, collision_reaction=str(self.random.choice(['stop', 'float']))
        )

    def describe(self):
        self.xml = HEAVIER_TWO_LINK if self.xml == TWO_LINK else TWO_LINK
        self.robot.control.preparation.request(self.xml)

    def helper(self):
        """Somebody lays the robot to rest, with the drives off, and mends its sensors."""
        robot = self.robot
        q = np.clip(robot.state[0], 0.1 - LIMIT, LIMIT - 0.1)
        robot.state, self.change, self.stands = (
            robot.plant.at_rest(q),
            0.0 * self.change,
            None,
        )
        self.every = 1

    # How it happens

    def attempt(self, call, *arguments, **options):
        """Error of a call, which must be one that says what is to be done."""
        try:
            call(*arguments, **options)
        except HodynError as error:
            assert str(error)
            return error
        return None

    def send(self, *goal):
        error = self.attempt(self.robot.send, *goal)
        self.taken = self.taken or error is None
        return error

    def samples(self, count, **options):
        for _ in range(count):
            self.sample(**options)

    def sample(self, change=None, **options):
        robot, change = self.robot, self.change if change is None else change.copy()
        if self.stands is not None:
            change[2, 0] = self.stands - robot.state[2, 0]
        before, was = robot.why, robot.control.state
        for _ in range(self.every - 1):
            self.coast()
        try:
            torque = robot.sample(change, **options).command.torque
        except HodynError as error:
            assert str(error)
            if robot.control.state == 'suspended':  # its brakes close
                robot.state = robot.plant.at_rest(robot.state[0])
                robot.stamp += PERIOD
            else:
                robot.move(np.zeros(2))
        else:
            self.answered += 1
            assert np.isfinite(torque).all() and np.abs(torque).max() <= TORQUE
            assert was != 'suspended' or self.taken
        self.check(before)

    def coast(self):
        """Time goes on without a measurement; the drives have no command, and no torque."""
        self.robot.move(np.zeros(2))

    def check(self, before):
        """What holds at every instant."""
        robot, control = self.robot, self.robot.control
        report = control.report()
        assert control.state == report['state'] in STATES
        self.seen[control.state] += 1
        assert (control.state in ('stopped', 'suspended')) == bool(robot.why)
        assert robot.why or not before or self.taken  # only a trajectory ends a stop
        stops = int(report['stops'])
        assert stops >= self.stops and (not robot.why or stops)
        self.stops, self.taken = stops, False
        assert np.abs(robot.state[1]).max() < FASTEST * SPEED

    def step(self):
        """One of all events."""
        name = str(self.random.choice(EVENTS, p=WEIGHTS))
        getattr(self, name)()
        # Where nobody has ended it, the robot may lie beyond its limits, and is put back.
        if np.abs(self.robot.state[0]).max() > 1.2 * LIMIT:
            self.helper()
            self.silence()

    def recover(self):
        """From wherever it is: laid to rest, mended, and told to go on, it follows."""
        robot = self.robot
        self.helper()
        if self.xml != TWO_LINK:
            self.describe()
        error = self.attempt(robot.set, without_reference='hold', max_tracking_error=0.2)
        assert error is None, error
        robot.control.begin_anew('it is switched on again')
        self.samples(60)
        if robot.why:
            error = self.send()
            assert error is None, error
            self.samples(30)
        error = self.attempt(robot.set, controller='tracking')
        assert error is None, error
        self.samples(30)
        error = self.attempt(robot.send, START, seconds=2.5)
        assert error is None, error
        self.samples(2700)
        assert not robot.why, robot.why
        np.testing.assert_allclose(robot.state[0], START, atol=1e-3)


EVENTS = {
    'wait': 20,
    'push': 4,
    'force': 4,
    'slip': 3,
    'glitch': 4,
    'stand': 2,
    'gap': 3,
    'silence': 1,
    'jump': 2,
    'late': 2,
    'twice': 2,
    'slower': 2,
    'move': 10,
    'empty': 5,
    'garbage': 1,
    'refer': 4,
    'law': 4,
    'bound': 1,
    'hold': 2,
    'reaction': 1,
    'describe': 1,
    'helper': 6,
}
WEIGHTS = np.array(list(EVENTS.values())) / sum(EVENTS.values())
EVENTS = list(EVENTS)


def run_in_any_order(seed, steps, rest=1000):
    """Let anything happen for some steps; now and then the robot is mended and follows."""
    machine = Machine(seed)
    for k in range(steps):
        machine.step()
        if k % rest == rest - 1:
            machine.recover()
    machine.recover()
    return machine
