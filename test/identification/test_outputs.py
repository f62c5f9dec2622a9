"""Robot descriptions and parameter files that identification writes, as others read them."""

import warnings
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from support.example_robots import descriptions
from support.output_cases import DRIVES, FRICTION
from support.robots import joint, link, robot

from hodyn_ros import RobotModel, friction
from hodyn_ros.actuators import (
    Actuators,
    LinearSpring,
    Qbmove,
    RigidDrive,
    SeriesElastic,
    VariableStiffness,
    actuators_from_config,
    motor_limits,
    motor_limits_from_config,
)
from hodyn_ros.errors import FileError, IdentificationError, ModelError
from hodyn_ros.identification import (
    actuator_config,
    described,
    fixed_parameters,
    friction_config,
    main_link,
    write_parameters,
)
from hodyn_ros.model import friction_from_config

ROOT = Path(__file__).resolve().parents[2]
BUNDLED = {name: ROOT / 'urdf' / f'{name}.urdf' for name in ('panda_with_hand', 'panda')}
EXAMPLES = 'talos_data/robots/talos_left_arm.urdf', 'a1_description/urdf/a1.urdf'
pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


def installed():
    """Descriptions of example-robot-data, by their names there."""
    try:
        return descriptions()
    except metadata.PackageNotFoundError:
        return {}


def changed(model, bodies=None):
    """The same robot with a body of random points of mass added to bodies."""
    rng = np.random.default_rng(0)
    parameters = model.inertial_parameters.reshape(-1, 10).copy()
    for i in range(model.n_bodies) if bodies is None else bodies:
        masses, points = rng.uniform(0.05, 0.5, 6), rng.uniform(-0.2, 0.2, (6, 3))
        second = np.einsum('k,ki,kj->ij', masses, points, points)
        tensor = np.trace(second) * np.eye(3) - second
        parameters[i] += [masses.sum(), *(masses @ points), *tensor[np.triu_indices(3)]]
    return model.with_inertial_parameters(parameters.ravel())


def without_inertials(xml):
    """Everything in a description but inertials and blanks, comments and order included."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.fromstring(xml, parser)
    for parent in root.iter():
        for child in parent.findall('inertial'):
            parent.remove(child)
    text = ElementTree.tostring(root, encoding='unicode')
    return ElementTree.canonicalize(text, strip_text=True, with_comments=True)


def inertials_of(xml):
    """Text of the inertials by link."""
    links = ElementTree.fromstring(xml).findall('link')
    found = {item.get('name'): item.find('inertial') for item in links}
    return {
        name: ''
        if item is None
        else ElementTree.canonicalize(
            ElementTree.tostring(item, encoding='unicode'), strip_text=True
        )
        for name, item in found.items()
    }


# --- Robot descriptions -------------------------------------------------------------------------


@pytest.mark.parametrize('name', [*BUNDLED, *EXAMPLES])
def test_a_description_read_again_has_the_parameters_and_everything_else_of_before(name):
    path = (
        BUNDLED.get(name)
        or installed().get(name)
        or pytest.skip(f'{name} is not installed')
    )
    before = path.read_bytes().decode()
    model = changed(RobotModel.from_urdf(path, allow_impossible_inertia=True))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        after = described(model, path)
        found = RobotModel.from_urdf(after)
    scale = np.abs(model.M_body).max(axis=(1, 2), keepdims=True)
    np.testing.assert_array_less(np.abs(found.M_body - model.M_body) / scale, 1e-12)
    assert without_inertials(after.encode()) == without_inertials(before.encode())
    mains = {main_link(model, i) for i in range(model.n_bodies)}
    texts = inertials_of(before), inertials_of(after)
    assert {key for key in texts[0] if texts[0][key] != texts[1][key]} == mains
    np.testing.assert_array_equal(found.M_base, RobotModel.from_urdf(path).M_base)


def test_only_links_of_bodies_that_changed_are_written():
    before = BUNDLED['panda'].read_text()
    model = RobotModel.from_urdf(before)
    assert described(model, before) == before
    after = described(changed(model, bodies=[3]), before)
    begin = before.index('<link name="panda_link4"')
    assert after != before and after.startswith(before[:begin])
    assert after.endswith(before[before.index('</inertial>', begin) :])


ARM = """\ufeff
<?xml version='1.0' encoding="ISO-8859-1"?>
<!-- Größe: <link name="b"><inertial/></link> -->
<robot  name='arm'>
\t<link name="a"/><link name="b" />
  <joint name="x" type="revolute"><parent link="a"/><child link="b"/>
    <limit lower="-1" upper="1" velocity="1" effort="9"/></joint>
  <link name='c'><!-- no </inertial> here -->
    <visual><geometry><mesh filename="c.stl"/></geometry></visual>
  </link>
  <joint name="y" type="continuous"><parent link="b"/><child link="c"/></joint>
  <link name="d"><inertial><mass value="2"/><origin xyz="1 0 0"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="z" type="fixed"><origin xyz="0 0 0.3" rpy="1 0 0"/><parent link="c"/>
    <child link="d"/></joint>
  <gazebo><link name="b"><inertial/></link></gazebo>
</robot>
"""


@pytest.mark.every_case
@pytest.mark.parametrize('kind', ['bytes', 'file', 'wide'])
def test_links_without_inertial_get_one_and_fixed_links_keep_theirs(kind, tmp_path):
    given = {'bytes': ARM.strip('\ufeff\n').encode('latin-1')}
    given['wide'] = ARM.strip('\ufeff\n').replace('ISO-8859-1', 'UTF-16').encode('utf-16')
    given['file'] = tmp_path / 'arm.urdf'
    given['file'].write_bytes(given['bytes'])
    model = RobotModel.from_urdf(given[kind])
    fixed = fixed_parameters(model, given[kind])
    np.testing.assert_array_equal(fixed[0], np.zeros(10))
    np.testing.assert_allclose(fixed[1], model.inertial_parameters[10:], rtol=1e-15)
    assert [main_link(model, i) for i in range(2)] == ['b', 'c']
    after = described(changed(model), given[kind])
    assert 'encoding="UTF-8"' in after and 'Größe' in after
    found = RobotModel.from_urdf(after.encode())
    wanted = changed(model).M_body
    np.testing.assert_allclose(
        found.M_body, wanted, rtol=0.0, atol=1e-14 * np.abs(wanted).max()
    )
    plain = ARM.strip('\ufeff\n').replace('ISO-8859-1', 'UTF-8').encode()
    assert without_inertials(after.encode()) == without_inertials(plain)
    assert inertials_of(after)['d'] == inertials_of(plain)['d']
    # The massless link b stays so if its body does.
    assert not inertials_of(described(changed(model, bodies=[1]), given[kind]))['b']


@pytest.mark.parametrize(
    ('rest', 'message'),
    [
        (
            [-0.5, *[0.0] * 9],
            "joint 'y' .* Link 'c' has a negative mass .* beyond d .2 kg.",
        ),
        ([0.0, 1.0, *[0.0] * 8], "Link 'c': the 6x6 matrix is not"),
        (
            [1.0, 2.0, *[0.0] * 2, 0.5, 0.0, 0.0, 3.0, 0.0, 3.0],
            "Link 'c' has an inertia tensor",
        ),
    ],
)
def test_what_no_body_has_is_not_written(rest, message):
    model = RobotModel.from_urdf(ARM)
    body = fixed_parameters(model, ARM)[1] + rest
    model = model.with_inertial_parameters([*model.inertial_parameters[:10], *body])
    with pytest.raises(IdentificationError, match=message):
        described(model, ARM)


def test_a_description_of_another_robot_is_refused():
    model = RobotModel.from_urdf('panda')
    with pytest.raises(IdentificationError, match='not that of the model.*panda_link8'):
        described(
            model, robot(link('panda_link0'), link('b'), joint('x', 'panda_link0', 'b'))
        )
    with pytest.raises(ModelError, match='not XML'):
        described(model, '<robot')


# --- Parameter files ----------------------------------------------------------------------------


def read(path):
    return yaml.safe_load(path.read_text(encoding='utf-8'))['/**']['ros__parameters']


def test_friction_is_read_as_it_was_written(tmp_path):
    path = tmp_path / 'robot.yaml'
    model = RobotModel.from_urdf('two_link').with_friction(FRICTION)
    tables = friction_config(model)
    write_parameters(
        path, {'friction': tables, 'actuators': {}}, ['Identified.', 'σ below']
    )
    assert path.read_text(encoding='utf-8').startswith('# Identified.\n# σ below\n/**:\n')
    assert friction_from_config(read(path)['friction']) == FRICTION


@pytest.mark.every_case
@pytest.mark.parametrize('drive', DRIVES, ids=lambda drive: str(drive)[:60])
def test_actuators_are_read_as_they_were_written(drive, tmp_path):
    path = tmp_path / 'robot.yaml'
    model = RobotModel.from_urdf('two_link')
    actuators = Actuators(model, {'elbow': drive})
    limits = {'elbow': {'motor_torque': 30.0, 'motor_velocity': 2.0}}
    if isinstance(drive, SeriesElastic):
        limits['elbow']['deflection'] = 0.1
    bounds = motor_limits(actuators, limits)
    tables = {'actuators': actuator_config(actuators, bounds), 'friction': {}}
    assert list(tables['actuators']) == ['elbow']
    write_parameters(path, tables)
    again = actuators_from_config(model, read(path)['actuators'])
    assert again['elbow'] == drive
    of_motors = motor_limits_from_config(again, read(path)['actuators'])
    np.testing.assert_array_equal(of_motors, bounds)
    assert [*read(path)] == ['actuators']


class OwnSpring(LinearSpring):
    """A spring that is derived from one of the package."""


@pytest.mark.every_case
@pytest.mark.parametrize(
    'law',
    [
        friction.Viscous(0.1) + friction.Viscous(0.2),
        friction.Coulomb(0.1, 0.1) + friction.Stribeck(0.2, 0.5, 0.2),
    ],
    ids=str,
)
def test_friction_without_keys_is_refused(law):
    model = RobotModel.from_urdf('two_link').with_friction({'elbow': law})
    with pytest.raises(IdentificationError, match="'elbow' cannot be written"):
        friction_config(model)


@pytest.mark.every_case
@pytest.mark.parametrize(
    'drive',
    [
        RigidDrive(0.1, friction.Sigmoid(0.5, 10.0, 0.01)),
        SeriesElastic(OwnSpring(100.0), 0.1),
        VariableStiffness(Qbmove(a=6.7, k=0.022), 0.02),
    ],
    ids=lambda drive: str(drive)[:40],
)
def test_actuators_without_keys_are_refused(drive):
    actuators = Actuators(RobotModel.from_urdf('two_link'), {'elbow': drive})
    with pytest.raises(IdentificationError, match="'elbow'"):
        actuator_config(actuators)


def test_nothing_and_nowhere_are_refused(tmp_path):
    with pytest.raises(IdentificationError, match='no parameters'):
        write_parameters(tmp_path / 'a.yaml', {'friction': {}})
    with pytest.raises(FileError, match='No such file or directory'):
        write_parameters(tmp_path / 'b' / 'a.yaml', {'friction': {'x': {'viscous': 1.0}}})
