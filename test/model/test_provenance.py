"""A model says which description it was read from, and what was changed since."""

import hashlib

import pytest
from support import robots

from hodyn_ros import RobotModel, friction
from hodyn_ros.model import Provenance
from hodyn_ros.resources import package_version


@pytest.fixture
def path(tmp_path):
    path = tmp_path / 'arm.urdf'
    path.write_text(robots.TWO_LINK)
    return path


def test_the_digest_is_that_of_the_file(path):
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    read = RobotModel.from_urdf(path).provenance
    assert read == Provenance('arm', str(path), digest, (), package_version())
    assert RobotModel.from_urdf(robots.TWO_LINK).provenance.digest == digest
    # Neither the console nor a file tells in which folder it lies.
    assert str(path.parent) not in str(read) + str(read.lines())
    assert f'arm.urdf, sha256 {digest[:12]}' in str(read)


def test_changes_are_told_and_come_back_from_lines(path):
    model = RobotModel.from_urdf(path, gravity=(0.0, 0.0, 0.0))
    model = model.with_friction({'elbow': friction.Viscous(1.0)}).with_payload('tool', 1.5)
    model = model.with_armature({'elbow': 0.1})
    model = model.with_inertial_parameters(model.inertial_parameters)
    found = model.provenance
    assert found.changes == (
        'gravity 0 0 0',
        'friction of elbow',
        'payload of 1.5 kg on tool',
        'armature of elbow',
        'other inertial parameters',
    )
    assert Provenance.from_lines(found.lines()) == Provenance(
        found.robot, 'arm.urdf', found.digest, found.changes, found.version
    )


def test_what_is_not_known_is_said():
    assert str(Provenance()) == 'a robot that is not known'
    assert Provenance().lines() == {}
