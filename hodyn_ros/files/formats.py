"""What a format of files is: how motions are read from it, and results written to it.

A format is a subclass of `Format` in a file of its own and a line in `hodyn_ros.files.files`.
Formats of tables are a `TableFormat` of `hodyn_ros.files.tables`: what opens a `TableFile`, and
what writes columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hodyn_ros.errors import FileError
from hodyn_ros.files.samples import Samples
from hodyn_ros.resources import optional_import_module


@dataclass(frozen=True)
class Wanted:
    """What is read of a file; see `read_motion`.

    Attributes
    ----------
    topic : str or None
        Topic of a bag; None: the only one with a motion.
    joint_names : sequence of str or None
        Joints to read; None: all of the file.
    index : int or None
        Which of the trajectories of a topic, from 0; None: all of them.
    expressed_in, acting : str or None
        Of all wrenches, see `Wrench`; None: as the file says.
    """

    topic: str | None = None
    joint_names: Sequence[str] | None = None
    index: int | None = None
    expressed_in: str | None = None
    acting: str | None = None


class Format(ABC):
    """A kind of files, known by their suffix."""

    suffixes: tuple[str, ...]
    """In lower case, with the dot; an empty one is that of a folder."""
    library: str = ''
    extra: str = 'tables'
    """Module without which it cannot be written, and what to install for it."""
    is_bag = False
    """Whether it has topics, with several motions that may overlap."""

    @abstractmethod
    def motions(self, path: Path, wanted: Wanted) -> Iterator[Samples]:
        """Read the motions of a file.

        Parameters
        ----------
        path : pathlib.Path
            File, or folder of a bag.
        wanted : Wanted
            What is read; a format passes over options that it has no use for.

        Yields
        ------
        Samples
            One motion; of a topic of trajectories, each of them.

        Raises
        ------
        FileError, JointNameError
            If the content makes no motion. Other errors become a `FileError` in
            `hodyn_ros.files.files.guarded`.
        """

    def places(self, path: Path) -> tuple[Path, Path]:
        """Where a bag that is to be at a path is written, and what of it is kept.

        Parameters
        ----------
        path : pathlib.Path
            Where the bag is to be.

        Returns
        -------
        written : pathlib.Path
            What the writer is given.
        kept : pathlib.Path
            What takes its place at the end; for all but storage files of bags, the same.
        """
        return path, path

    def require(self, path: Path) -> None:
        """Refuse a file if a library that writes it is missing.

        Parameters
        ----------
        path : pathlib.Path
            For the message.

        Raises
        ------
        FileError
            If it cannot be imported; the message says how to install it.
        """
        if self.library:
            text = f'{path}: files of this kind need {self.library.partition(".")[0]}'
            optional_import_module(self.library, text, self.extra, FileError)

    @abstractmethod
    def write(self, path: Path, results: Samples, storage: str) -> None:
        """Write results.

        Parameters
        ----------
        path : pathlib.Path
            What is written; it does not exist.
        results : Samples
        storage : {'mcap', 'sqlite3'}
            Of the folder of a bag; other formats have no use for it.

        Raises
        ------
        FileError
            If the format cannot hold them, a library is missing, or the storage is unknown.
        """
