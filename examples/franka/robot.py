"""A simulated FR3 behind Franka's own network protocol: franka-sim, in lock step with its client.

    python robot.py --mass 1.2

Protocol, limits and reflexes are those of franka-sim (Apache-2.0), unchanged. As it comes, its
physics and its network run beside each other, so that some states have none and some two steps of
physics behind them: torques that follow such states step, whoever computes them. Here each state
that is sent has exactly one step of physics behind it, taken when the command that answers the
state before has been applied, however long the client takes.

Runs in an environment of its own, with franka-sim; `make demo-franka` makes it.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import threading
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import franka_sim
import mujoco
from franka_sim import FrankaSimServer
from franka_sim.mujoco_franka_sim import MujocoFrankaSim

# Reflected inertia of the motors, of MuJoCo Menagerie's franka_fr3_v2 [kg m^2].
ARMATURE = 0.195
# Longest time that a step waits for a command, and for the first one of a motion, which is not
# the answer to the state that says that it begins; between two looks [s].
PATIENCE, FIRST, PAUSE = 0.5, 0.2, 2e-5


class SteppedArm(MujocoFrankaSim):
    """Physics that go one step on whenever the thread that sends states asks for one."""

    server: SteppedServer | None = None

    def run_simulation(self) -> None:
        """Replace the loop in real time: nothing happens by itself."""
        while self.running:
            time.sleep(0.05)

    def get_robot_state(self) -> Any:
        """Return the latest state, for the sender behind one step of physics."""
        server = self.server
        if server is not None and server.sender == threading.get_ident():
            server.wait_for_command()
            self._apply_control()
            mujoco.mj_step(self.model, self.data)
            self._read_and_publish_state()
        return self._state_snapshot


class SteppedServer(FrankaSimServer):
    """Server that knows which of its threads sends states."""

    sender = 0

    def start_robot_state_transmission(
        self, client_address: str, client_udp_port: int
    ) -> None:
        """Send states from the thread that calls this."""
        self.sender = threading.get_ident()
        super().start_robot_state_transmission(client_address, client_udp_port)

    def wait_for_command(self) -> None:
        """Return when the latest state has its answer, or there is nobody to give one."""
        begin = time.monotonic()
        while True:
            connection = self.udp_socket
            if connection is None or connection.fileno() < 0:
                return
            is_answered = not self.comm.awaiting_answer and not self._commands_in_flight
            # Without this the first two commands may act in one step.
            is_first = self.comm.motion_id != 0 and not self.comm.active
            if is_answered and not is_first:
                return
            if time.monotonic() > begin + (FIRST if is_first else PATIENCE):
                return
            time.sleep(PAUSE)


def write_model(path: Path, mass: float, armature: float, friction: float) -> None:
    """Write the FR3 of franka-sim's own URDF as MJCF, without shapes.

    Parameters
    ----------
    path : Path
    mass, armature, friction : float
        Factors of masses with inertias, of the inertia of the motors, and of dry friction.
    """
    source = Path(franka_sim.__file__).parent / 'models' / 'fr3.urdf'
    robot = ET.parse(source).getroot()
    for link in robot.findall('link'):
        for shape in [*link.findall('visual'), *link.findall('collision')]:
            link.remove(shape)
    options = ET.SubElement(ET.SubElement(robot, 'mujoco'), 'compiler')
    options.set('fusestatic', 'false')
    mujoco.mj_saveLastXML(
        str(path), mujoco.MjModel.from_xml_string(ET.tostring(robot, encoding='unicode'))
    )
    tree = ET.parse(path)
    for joint in tree.iter('joint'):
        joint.set('armature', f'{armature * ARMATURE:.9g}')
        joint.set('frictionloss', f'{friction * float(joint.get("frictionloss", 0.0)):.9g}')
    for inertial in tree.iter('inertial'):
        for name in ('mass', 'diaginertia', 'fullinertia'):
            numbers = inertial.get(name)
            if numbers:
                scaled = (f'{mass * float(number):.12g}' for number in numbers.split())
                inertial.set(name, ' '.join(scaled))
    tree.write(path)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    for name in ('mass', 'armature', 'friction'):
        parser.add_argument(f'--{name}', type=float, default=1.0, help='factor')
    parser.add_argument('--as-it-comes', action='store_true', help='without lock step')
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format='%(message)s')
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / 'fr3.xml'
        write_model(model, options.mass, options.armature, options.friction)
        kind, serve = (
            (MujocoFrankaSim, FrankaSimServer)
            if options.as_it_comes
            else (SteppedArm, SteppedServer)
        )
        arm = kind(model_path=str(model))
        server = serve(
            host='127.0.0.1',
            physics_sim=arm,
            enable_gripper=False,
            enforce_motion_limits=True,
        )
        arm.server = server
        try:
            server.start()
        except KeyboardInterrupt:
            pass
        finally:
            server.stop()


if __name__ == '__main__':
    main()
