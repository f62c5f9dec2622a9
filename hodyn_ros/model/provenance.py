"""Where a model and what was computed with it come from, so that it can be made again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath

_DIGITS = 12  # of the digest in a text
_PREFIX = 'robot_'


@dataclass(frozen=True)
class Provenance:
    """Which robot, described where, changed how, and computed with which version.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> model = RobotModel.from_urdf('two_link').with_payload('tool', 1.0)
    >>> model.provenance.robot, model.provenance.changes
    ('two_link', ('payload of 1 kg on tool',))
    """

    robot: str = ''
    """Name of the robot; empty: nothing is known."""
    file: str = ''
    """Path of its description; empty if there is none, as for a text or a model from screws."""
    digest: str = ''
    """SHA-256 of the URDF text, in hexadecimal digits, as ``sha256sum robot.urdf`` prints it;
    empty if there is none. Of a xacro file it is that of the text that it stands for."""
    changes: tuple[str, ...] = ()
    """How the model differs from what is described there."""
    version: str = ''
    """Of hodyn_ros."""

    def changed(self, *changes: str) -> Provenance:
        """The same with remarks on what has been changed in the model, each of them once."""
        return replace(self, changes=tuple(dict.fromkeys((*self.changes, *changes))))

    def lines(self) -> dict[str, str]:
        """Keys and values for files and JSON.

        Returns
        -------
        dict of str to str
            What is known, each in one line. Of the file it has the name alone: folders are
            private.
        """
        entries = {
            'robot': self.robot,
            f'{_PREFIX}file': PurePath(self.file).name,
            f'{_PREFIX}digest': self.digest,
            f'{_PREFIX}changes': '; '.join(self.changes),
            'hodyn_ros': self.version,
        }
        return {key: ' '.join(value.split()) for key, value in entries.items() if value}

    @classmethod
    def from_lines(cls, lines: Mapping[str, str]) -> Provenance:
        """Provenance from what `lines` wrote; other keys are ignored."""
        file, digest, changes = (
            lines.get(f'{_PREFIX}{key}', '') for key in ('file', 'digest', 'changes')
        )
        made = tuple(changes.split('; ')) if changes else ()
        return cls(lines.get('robot', ''), file, digest, made, lines.get('hodyn_ros', ''))

    def __str__(self) -> str:
        """Return it in one line, without folders."""
        if not self.robot:
            return 'a robot that is not known'
        digest = f'sha256 {self.digest[:_DIGITS]}' if self.digest else ''
        known = ', '.join(filter(None, (PurePath(self.file).name, digest)))
        parts = [f'{self.robot} ({known})' if known else self.robot, *self.changes]
        version = f'; hodyn_ros {self.version}' if self.version else ''
        return ', '.join(parts) + version
