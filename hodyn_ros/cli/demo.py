"""`hodyn demo`: a motion of the Franka Panda for the other commands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from hodyn_ros.cli.problem import Given, load_model
from hodyn_ros.files import Results, write_results
from hodyn_ros.trajectory.references import panda_sinusoids

SAMPLES = 1601
FASTER = 1.2  # the motion in fast.csv


def demo(folder: Path) -> None:
    """Write a motion of the Panda at two speeds, and show commands that read it.

    Parameters
    ----------
    folder : pathlib.Path
        Made if needed.
    """
    model, _ = load_model(Given('panda'))
    reference = panda_sinusoids()
    times = np.linspace(0.0, reference.duration, SAMPLES)
    motion, no_effort = reference.motion(times), np.empty((SAMPLES, 0, model.n_joints))
    slow = Results.of_model(
        model, times, motion, no_effort, name='Franka Panda', source='given'
    )
    faster = motion * FASTER ** np.arange(motion.shape[1])[:, None]
    folder.mkdir(parents=True, exist_ok=True)
    write_results(folder / 'motion.csv', slow)
    write_results(folder / 'fast.csv', replace(slow, times=times / FASTER, motion=faster))
    click.echo(
        f'Written: {folder}/motion.csv, {folder}/fast.csv\n\nTry next:\n'
        f'  hodyn check panda {folder}/motion.csv\n'
        f'  hodyn check panda {folder}/fast.csv\n'
        f'  hodyn retime panda {folder}/fast.csv -o {folder}/retimed.csv\n'
        f'  hodyn plot panda {folder}/motion.csv\n'
        f'  hodyn report panda {folder}/motion.csv -o {folder}/report.html'
    )
