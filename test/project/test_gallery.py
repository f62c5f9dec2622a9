"""The gallery shows every tutorial and example, its pictures can be drawn, notebooks run."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.scripts import load

pyplot = pytest.importorskip('matplotlib.pyplot', reason='matplotlib is not installed')

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / 'doc'
run_examples = load(DOC / 'run_examples.py')
make_gallery = load(DOC / 'make_gallery.py')

TEXT = (DOC / 'gallery.rst').read_text(encoding='utf-8')
CARDS = re.findall(
    r'^ *\.\. figure:: (\S+)\n((?: +:.+\n)+)\n +(\S.+)$', TEXT, flags=re.MULTILINE
)
TUTORIALS = sorted(path.stem for path in (DOC / 'tutorials').glob('*.rst'))
NOTEBOOKS = sorted((ROOT / 'examples' / 'notebooks').glob('*.ipynb'))
SCRIPTS = sorted((ROOT / 'examples').glob('*.py'))

# Those that need no node and identify nothing; the others are drawn by the long tests.
QUICK = {'check_trajectory', 'elastic_joint', 'recorded_motion'}


@pytest.fixture(autouse=True)
def no_display(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    pyplot.switch_backend('Agg')
    yield
    pyplot.close('all')


def test_every_tutorial_and_example_has_a_card():
    texts = ' '.join(text for *_, text in CARDS)
    assert sorted(re.findall(r':doc:`tutorials/(\w+)`', texts)) == TUTORIALS
    named = re.findall(r'``(examples/[\w/.]+)``', texts)
    shown = [path for path in (*SCRIPTS, *NOTEBOOKS) if path.name != 'example_tools.py']
    assert sorted(named) == sorted(str(path.relative_to(ROOT)) for path in shown)
    assert len(CARDS) == len(TUTORIALS) + len(shown)


@pytest.mark.parametrize(('picture', 'options', 'text'), CARDS, ids=[c[0] for c in CARDS])
def test_cards_have_pictures_and_lead_to_pages(picture, options, text):
    assert (DOC / picture).is_file()
    assert ':alt: ' in options
    for target in re.findall(r':target: (\S+)\.html', options):
        assert (DOC / f'{target}.rst').is_file()
        assert ':doc:' not in text or f':doc:`{target}`' in text


@pytest.mark.parametrize('page', TUTORIALS)
def test_tutorials_show_their_picture(page):
    text = (DOC / 'tutorials' / f'{page}.rst').read_text(encoding='utf-8')
    assert f'.. image:: ../images/{page}.png\n' in text


def test_pictures_are_drawn_of_what_there_is():
    assert set(make_gallery.PAGES) <= set(TUTORIALS)
    assert sorted(make_gallery.NOTEBOOKS) == [path.stem for path in NOTEBOOKS]
    names = (*make_gallery.PAGES, *make_gallery.NOTEBOOKS, *make_gallery.EXAMPLES)
    assert all(make_gallery.picture_of(name).is_file() for name in names)


@pytest.mark.parametrize(
    'page',
    [
        pytest.param(page, marks=() if page in QUICK else pytest.mark.slow)
        for page in make_gallery.PAGES
    ],
)
def test_pictures_of_tutorials_are_drawn(page, tmp_path):
    path = tmp_path / 'picture.png'
    make_gallery.drawn(page).savefig(path, dpi=110)
    size = path.stat().st_size
    make_gallery.shrink(path)
    assert 5_000 < path.stat().st_size < size


@pytest.mark.parametrize('path', NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_short_and_hold_no_outputs(path):
    notebook = json.loads(path.read_text(encoding='utf-8'))
    assert (notebook['nbformat'], notebook['nbformat_minor']) == (4, 5)
    cells = notebook['cells']
    assert len(cells) <= 12
    assert len({cell['id'] for cell in cells}) == len(cells)
    code = [cell for cell in cells if cell['cell_type'] == 'code']
    assert all(cell['outputs'] == [] and cell['execution_count'] is None for cell in code)


def found_by(name):
    """Run the cells of a notebook as they stand, and draw its picture."""
    found = {'__name__': '__main__'}
    for number, code in enumerate(
        run_examples.cells(ROOT / 'examples' / 'notebooks' / f'{name}.ipynb')
    ):
        exec(compile(code, f'{name}, cell {number}', 'exec'), found)  # noqa: S102
    assert make_gallery.NOTEBOOKS[name](found).axes
    if find_spec('rerun'):
        assert Path(f'{name}.rrd').stat().st_size > 10_000
    return found


def test_notebook_on_torque_rates_keeps_limits_that_the_plan_exceeds(capsys):
    found = found_by('torque_rates')
    assert 'effort_dot of panda_joint2' in capsys.readouterr().out
    assert abs(found['planned'].effort[:, 1]).max() > 150.0
    assert abs(found['kept'].effort[:, 1]).max() <= 150.0


def test_notebook_on_stops_finds_the_fault(capsys):
    found = found_by('stopped_robot')
    assert capsys.readouterr().out.startswith('missed cycle at 2.200 s')
    assert found['analysis'].verdict == 'exceeded'


def test_notebook_on_elastic_joints_shows_what_derivatives_are_worth():
    pytest.importorskip('mujoco', reason='mujoco is not installed')
    errors = [run.peak_error for run in found_by('elastic_joints')['runs'].values()]
    assert len(errors) == 3
    assert errors[0] > 3.0 * errors[1] > 300.0 * errors[2]
