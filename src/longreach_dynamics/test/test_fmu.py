"""What an FMU is not made of, with the smallest model."""

import math
import zipfile
from xml.etree import ElementTree

import pytest

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.fmu import FmuModel, Variable, rk4_step, write_fmu

CODE = """
static int model_derivatives(const double *x, const double *u, const double *p, double *dx)
{
    dx[0] = u[0] - x[0] / p[0];
    return 0;
}
static int model_outputs(const double *x, const double *u, const double *p, double *y)
{
    y[0] = 2.0 * x[0] + 0.0 * (u[0] + p[0]);
    return 0;
}
"""


def lag(**changes):
    values = {
        'name': 'lag',
        'description': 'a lag with "quotes" & <signs> */',
        'states': (Variable('x', 'N m', 'state'),),
        'inputs': (Variable('u', 'N m/s', 'input'),),
        'outputs': (Variable('y', 'N m', 'output'),),
        'parameters': (Variable('T', 's', 'time constant', 2.0),),
        'code': CODE,
        'step': 0.1,
    }
    return FmuModel(**(values | changes))


def test_description(tmp_path):
    file = tmp_path / 'lag.fmu'
    write_fmu(file, lag())
    with zipfile.ZipFile(file) as archive:
        root = ElementTree.fromstring(archive.read('modelDescription.xml'))
        assert root.get('guid') in archive.read('sources/model.c').decode()
    assert root.get('description') == 'a lag with "quotes" & <signs> */'
    assert [unit.get('name') for unit in root.iter('Unit')] == ['N m', 'N m/s', 's']
    names = [variable.get('name') for variable in root.iter('ScalarVariable')]
    assert names == ['x', 'der(x)', 'u', 'y', 'T', 'integration_step']


@pytest.mark.parametrize(
    ('changes', 'text'),
    [
        ({'name': 'a lag'}, "'a lag' is no identifier"),
        ({'outputs': (Variable('x', 'm', ''),)}, "the name 'x' twice"),
        ({'inputs': (Variable('integration_step', 's', ''),)}, "'integration_step' twice"),
        ({'states': (Variable('x', 'm', '', math.inf),)}, 'x = inf at the start, allowed: finite'),
        (
            {'parameters': (Variable('T', 's', '', 9.0, bounds=(0.0, 2.0)),)},
            'T = 9.0 at .* 0 to 2',
        ),
        ({'step': 0.0}, 'integration_step = 0.0 at the start, allowed: finite, from 1e-09'),
    ],
)
def test_names_and_starts(changes, text):
    with pytest.raises(InputError, match=text):
        lag(**changes)


def test_code_that_does_not_compile(tmp_path):
    with pytest.raises(LongreachError, match=r'failed on the code of the model: .*error'):
        write_fmu(tmp_path / 'lag.fmu', lag(code='nonsense'))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ('place', 'found', 'text'),
    [
        ('platform.machine', 'riscv64', r'FMI 2.0 has no name for .* riscv64'),
        ('shutil.which', None, 'needs a C compiler, looked for: gcc, cc, clang; install one'),
    ],
)
def test_what_an_fmu_needs(place, found, text, tmp_path, monkeypatch):
    monkeypatch.setattr(f'longreach_dynamics.fmu.{place}', lambda *_: found)
    with pytest.raises(LongreachError, match=text):
        write_fmu(tmp_path / 'lag.fmu', lag())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(('fastest', 'step'), [(1.0, 0.05), (0.21, 0.2), (1260.0, 2e-5)])
def test_step(fastest, step):
    assert rk4_step(fastest) == step
