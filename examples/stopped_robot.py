"""Recordings of a Panda that stopped, with faults made by hand, for `hodyn check --recorded`.

    python examples/stopped_robot.py --fault missed_cycle

writes what the robot was sent at 1 kHz into sent.csv, and what was measured at 500 Hz meanwhile,
late, noisy and in steps of the encoders, into measured.csv. The recording ends 30 ms behind the
fault, since then the robot stops.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.trajectory import Waypoints, plan_motion

FAULTS = ('none', 'missed_cycle', 'torque_step', 'jump_at_start')
PERIOD = 1e-3  # s
FAULT = 8204  # sample
SEGMENT = 1.2  # s, between waypoints
STEP = 1.6  # N m
JUMP = 0.05  # rad
DELAY = 0.012  # s, of the measured motion
PAYLOAD = 1.5  # kg, that the model does not know of
NOISE = 0.05  # N m
ENCODER = 2.0 * np.pi / 2**17  # rad
WAYPOINTS = (
    (0.0, -0.3, 0.0, -1.7, 0.0, 1.7, 0.0),
    (0.7, 0.2, -0.4, -1.2, 0.3, 1.3, 0.6),
    (0.1, -0.5, 0.2, -1.9, -0.2, 1.9, -0.4),
    (-0.5, 0.1, 0.3, -1.5, 0.4, 1.5, 0.2),
)
ROUNDS = 2


def recordings(fault: str) -> tuple[RobotModel, list[np.ndarray], list[np.ndarray]]:
    """Return the robot, and times, positions and torques as they were sent and measured."""
    model = RobotModel.from_urdf('panda')
    way = [*ROUNDS * WAYPOINTS, WAYPOINTS[0]]
    duration = SEGMENT * (len(way) - 1)
    waypoints = Waypoints(model.joint_names, SEGMENT * np.arange(len(way)), way)
    plan = plan_motion(waypoints, model.joint_names).motion
    times = PERIOD * np.arange(round(duration / PERIOD) + 1)

    def motion(at: np.ndarray) -> np.ndarray:
        return plan(np.clip(at, 0.0, duration))

    sent = motion(times)[:, 0]
    effort = inverse_dynamics(model, motion(times)[:, :3])[:, 0]
    before = PERIOD * np.arange(-50, 0)
    instants = np.concatenate([before, times])[::2]
    loaded = model.with_payload('panda_link8', PAYLOAD, (0.0, 0.0, 0.08), np.zeros((3, 3)))
    late = motion(instants - DELAY)
    rng = np.random.default_rng(0)
    measured = np.round((late[:, 0] + 1e-5 * rng.standard_normal((len(late), 7))) / ENCODER)
    torque = inverse_dynamics(loaded, late[:, :3])[:, 0]
    torque += NOISE * rng.standard_normal(torque.shape)
    end = len(times) if fault == 'none' else FAULT + 30
    if fault == 'missed_cycle':
        sent[FAULT] = sent[FAULT - 1]
    elif fault == 'torque_step':
        effort[FAULT:, 4] += STEP
    elif fault == 'jump_at_start':
        sent[:, 0] += JUMP
        end = 30
    known = instants < times[end - 1]
    return (
        model,
        [times[:end], sent[:end], effort[:end]],
        [instants[known], ENCODER * measured[known], torque[known]],
    )


def write(path: Path, names: Sequence[str], times: np.ndarray, *series: np.ndarray) -> None:
    """Write positions and torques as a table."""
    quantities = ('position', 'effort')
    titles = ['time', *(f'{name}.{what}' for what in quantities for name in names)]
    rows = np.column_stack([times, *series])
    np.savetxt(path, rows, '%.12g', ',', header=','.join(titles), comments='')


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the recordings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--fault', choices=FAULTS, default='missed_cycle')
    parser.add_argument('--folder', type=Path, default=Path())
    given = parser.parse_args(arguments)
    model, sent, measured = recordings(given.fault)
    given.folder.mkdir(parents=True, exist_ok=True)
    for name, recording in (('sent', sent), ('measured', measured)):
        path = given.folder / f'{name}.csv'
        write(path, model.joint_names, *recording)
        print(f'Written: {path}')
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
