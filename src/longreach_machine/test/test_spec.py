"""Declarations: installed scenarios by their names, panels."""

from pathlib import Path

import pytest

from longreach_dynamics.errors import InputError
from longreach_machine import Curve, MachineSpec, Panel, Signal, check_curves, curves_of, spec
from longreach_machine.machine import JointSample
from longreach_machine.runs import Column, Columns, each


class Boom(MachineSpec):
    name = 'boom'


class Crane(MachineSpec):
    name, scenario_prefix = 'crane', 'task_'


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    directory = tmp_path / 'config' / 'scenarios'
    directory.mkdir(parents=True)
    for name in ('boom_wave', 'boom_hold', 'task_b'):
        (directory / f'{name}.yaml').touch()
    monkeypatch.setattr(spec, 'share_directory', lambda _: tmp_path)
    monkeypatch.chdir(tmp_path)
    return directory


def test_names_stand_for_installed_files(installed):
    for name in ('wave', 'boom_wave'):
        found = Boom().find_scenario(name)
        assert found == installed / 'boom_wave.yaml'
    # Beside the folder of a recording of that name.
    Path('task_b').mkdir()
    assert Crane().find_scenario('task_b') == installed / 'task_b.yaml'


def test_files_stay_what_they_are(tmp_path):
    (tmp_path / 'wave').touch()
    for name in ('wave', 'none.yaml', 'config/none', '/none'):
        assert Boom().find_scenario(name) == Path(name)


def test_an_unknown_name_is_refused_with_those_there_are():
    error = r'^scenario foo is unknown, allowed: hold, wave, or a file such as my\.yaml$'
    with pytest.raises(InputError, match=error):
        Boom().find_scenario('foo')


def test_a_misspelt_curve_is_refused():
    columns = Columns((Column('time', 's'), *each('q_*', 'ab', 'rad', 'angle')))
    check_curves(
        [Panel('angle', [Curve('q_*'), Curve('q_a'), Curve('z', optional=True)])], columns
    )
    with pytest.raises(InputError, match="panel 'angle' has the curve 'p_a', allowed: time, q_a"):
        check_curves([Panel('angle', [Curve('p_a')])], columns)


def test_curves_of_a_panel_have_one_unit():
    columns = [Column('a', 'rad'), Column('b', 'rad'), Column('c', 'Pa')]
    assert len(curves_of(Panel('', [Curve('a'), Curve('b')]), columns)) == 2
    with pytest.raises(InputError, match="panel 'all' has curves in 'rad', 'Pa', allowed: one"):
        curves_of(Panel('all', [Curve('a'), Curve('c')]), columns)


def test_names_of_an_fmu_have_no_dots_and_are_not_alike():
    cosimulation = pytest.importorskip('longreach_machine.cosimulation')

    def names(*joints):
        values = (0.0,) * len(joints)
        sample = JointSample(joints, values, values, values)
        return cosimulation.names_of([Signal('spool_a.1', '1')], sample)

    assert names('a.1') == ['spool_a_1', 'a_1_position', 'a_1_velocity', 'a_1_effort']
    with pytest.raises(InputError, match="the name 'a_1_position' twice"):
        names('a.1', 'a_1')
