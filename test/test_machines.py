"""What holds for every machine: files, runs, descriptions and tables of READMEs."""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import pickle
import typing
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, Rule, rule_of
from longreach_dynamics.resources import share_directory
from longreach_dynamics.tables import read_table
from longreach_machine import MACHINE_GROUP, MachineSpec
from longreach_machine.runs import Columns
from longreach_markers.rig import rig_file
from longreach_markers.setup.localisation import reference_file
from longreach_node.frames import FrameParameters
from longreach_node.operator_node import OperatorParameters
from longreach_node.parameters import _allowed
from longreach_node.simulator_parameters import (
    DrawingParameters,
    MachineParameters,
    SimulatorParameters,
)
from longreach_symbolic.arm import Arm
from longreach_symbolic.links import Links, State
from longreach_symbolic.scenario import Scenario
from longreach_tools.testing import Outcome
from longreach_vision.ros.node_parameters import (
    CameraNodeParameters,
    TrackerParameters,
    VideoNodeParameters,
)
from longreach_vision.simulator.scene import CameraLook

Spec = MachineSpec[Any, Any, Any]
ROOT = Path(__file__).resolve().parent.parent
ENTRIES = {entry.name: entry for entry in entry_points(group=MACHINE_GROUP)}
# Their rows are in the README of longreach_node.
SHARED = (MachineParameters, SimulatorParameters, DrawingParameters, OperatorParameters)

# Tables of a README beside those of its nodes and of the columns of a run: module, name.
TABLES = {
    'boom': ('parameters.BoomParameters',),
    'crane': (),
    'excavator': (
        'parameters.ExcavatorParameters',
        'scenario.Scenario',
        'teleoperation.TeleoperationParameters',
    ),
    'harvester': (
        'parameters.HarvesterParameters',
        'scenario.Scenario',
        'control.ControllerParameters',
        'sensors.SensorParameters',
        'teleoperation.SticksParameters',
        'simulation.HEAD_COLUMNS',
        'simulation.PORT_COLUMNS',
        'simulation.PUMP_COLUMNS',
        'simulation.LOG_COLUMNS',
    ),
    'links': (),
}


@pytest.fixture(params=sorted(ENTRIES))
def spec(request: pytest.FixtureRequest) -> Spec:
    loaded: Spec = ENTRIES[request.param].load()
    return loaded


def parameters_of(spec: Spec) -> Any:
    """Return the parameters of the installed file."""
    return spec.load(None, spec.options())


def tree(spec: Spec, prefix: str = '') -> ElementTree.Element:
    """Return the description of the installed machine."""
    return ElementTree.fromstring(spec.describe(parameters_of(spec), prefix))


def test_all_machines_are_tested() -> None:
    assert set(ENTRIES) == set(TABLES)


def test_each_scenario_belongs_to_a_machine() -> None:
    specs = [entry.load() for entry in ENTRIES.values()]
    beginnings = tuple(spec.scenario_prefix or f'{spec.name}_' for spec in specs)
    for file in (ROOT / 'config' / 'scenarios').glob('*.yaml'):
        assert file.name.startswith(beginnings)


# --- files -----------------------------------------------------------------------------------


def test_parameters_are_values(spec: Spec) -> None:
    parameters = parameters_of(spec)
    other = dataclasses.replace(parameters)
    assert other is not parameters
    assert other == parameters
    assert hash(other) == hash(parameters)
    copied = pickle.loads(pickle.dumps(parameters))
    assert '_hash' not in copied.__dict__
    assert copied == parameters


def test_installed_scenarios_are_read(spec: Spec) -> None:
    beginning = spec.scenario_prefix or f'{spec.name}_'
    files = sorted((ROOT / 'config' / 'scenarios').glob(f'{beginning}*.yaml'))
    assert spec.find_scenario(spec.scenario) in [
        share_directory('longreach_bringup') / file.relative_to(ROOT) for file in files
    ]
    for file in files:
        scenario = spec.load_scenario(file, parameters_of(spec), spec.options())
        with pytest.raises(InputError, match=r'duration = -1'):
            scenario.replace(duration=-1.0)


def test_run_writes_the_librarys_run(spec: Spec, capsys: Any, tmp_path: Path) -> None:
    file, picture = tmp_path / 'run.csv', tmp_path / 'run.png'
    words = ('--duration', 0.5, '--format', 'json', '--csv', file, '--plot', picture)
    assert Outcome(capsys, spec.name, 'run', *words).json['status'] == 'complete'
    parameters, options = parameters_of(spec), spec.options()
    scenario = spec.load_scenario(spec.find_scenario(spec.scenario), parameters, options)
    expected = spec.simulate(parameters, scenario.with_value('duration', 0.5), options)
    found = read_table(file)
    assert tuple(found) == expected.columns.names
    np.testing.assert_array_equal(found.stack(found), expected.table)
    assert picture.read_bytes().startswith(b'\x89PNG')


# --- the description -------------------------------------------------------------------------


def test_inertias_are_those_of_bodies(spec: Spec) -> None:
    found = list(tree(spec).iter('inertial'))
    assert found
    for mass, inertia in ((body.find('mass'), body.find('inertia')) for body in found):
        assert mass is not None
        assert inertia is not None
        assert float(mass.attrib['value']) > 0.0
        small, middle, large = sorted(
            float(inertia.attrib[name]) for name in ('ixx', 'iyy', 'izz')
        )
        # The tip of the harvester is a point.
        assert small > 0.0 or (spec.name, large) == ('harvester', 0.0)
        # RViz warns of a moment above the sum of the others.
        assert large <= (small + middle) * (1.0 + 1e-9)


def test_shapes_have_sizes_and_materials_are_defined_once(spec: Spec) -> None:
    root = tree(spec)
    for kind, names in (('box', ('size',)), ('cylinder', ('radius', 'length'))):
        for element in root.iter(kind):
            for name in names:
                assert all(float(word) > 0.0 for word in element.attrib[name].split())
    defined = [material.attrib['name'] for material in root.findall('material')]
    used = {material.attrib['name'] for material in root.findall('link/visual/material')}
    assert len(defined) == len(set(defined))
    assert set(defined) == used


def test_links_have_the_prefix_and_joints_do_not(spec: Spec) -> None:
    plain, north = tree(spec), tree(spec, '/north/')
    for path, name in (('link', 'name'), ('joint/parent', 'link'), ('joint/child', 'link')):
        old, new = ([e.attrib[name] for e in root.findall(path)] for root in (plain, north))
        assert new == [f'north/{link}' for link in old]
    names = [[j.attrib['name'] for j in root.findall('joint')] for root in (plain, north)]
    assert names[0] == names[1]
    assert len(names[0]) == len(set(names[0]))


@pytest.mark.parametrize(
    ('machine', 'scenario', 'late'),
    [
        ('boom', 'wave', 'trajectory[0] is at 1 s'),
        ('crane', 'task_b', 'set_points[1] is at 16 s'),
        ('excavator', 'cycle', 'valve_commands[1] is at 4 s'),
        ('harvester', 'open_loop', 'spools.swing[1] is at 1 s'),
        ('harvester', 'tip', 'the end of tip is at 37.2 s'),
        ('links', 'swing', 'trajectory[0] is at 5 s'),
    ],
)
def test_what_a_shorter_run_does_not_reach_is_said(machine: str, scenario: str, late: str) -> None:
    spec: Spec = ENTRIES[machine].load()
    parameters, options = parameters_of(spec), spec.options()
    given = spec.load_scenario(spec.find_scenario(scenario), parameters, options)
    run = spec.simulate(parameters, given.replace(duration=0.5), options)
    (said,) = [text for text in run.warnings() if 'not reached' in text]
    assert said.startswith(f'after the end of the run, not reached: {late}')


# --- tables ----------------------------------------------------------------------------------


def column_table(columns: Columns) -> str:
    """Return the table of columns; neighbours of one unit, meaning and topic share a row."""
    lines = ['| column | unit | meaning | recorded in |', '| --- | --- | --- | --- |']
    rows = []
    for c in columns:
        topics = dict.fromkeys(f'`{source.topic}`' for source in c.sources)
        rows.append((f'`{c.family or c.name}`', (c.unit, c.meaning, ', '.join(topics))))
    for cells, group in itertools.groupby(rows, lambda row: row[1]):
        names = ', '.join(dict.fromkeys(name for name, _ in group))
        lines.append(f'| {" | ".join((names, *cells))} |')
    return '\n'.join(lines)


def table(*classes: type[Parameters], without: Iterable[type[Parameters]] = ()) -> str:
    """Return parameters of nodes as a table in Markdown, each row once, but those ``without``."""
    rows = dict.fromkeys(row for cls in classes for row in _parameter_rows(cls))
    for row in (row for cls in without for row in _parameter_rows(cls)):
        rows.pop(row, None)
    lines = ['| name | type | default | allowed | meaning |', '| --- | --- | --- | --- | --- |']
    return '\n'.join([*lines, *rows])


def _parameter_rows(cls: type[Parameters]) -> Iterator[str]:
    """Yield the rows of a node's parameters."""
    types = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        rule, kind = rule_of(field), types[field.name]
        default = 'required' if field.default is dataclasses.MISSING else repr(field.default)
        allowed = _allowed(rule, kind).replace('|', '\\|')
        meaning = rule.description + ('' if rule.read_only else ' (can be changed at run time)')
        yield f'| `{field.name}` | {kind.__name__} | `{default}` | {allowed} | {meaning} |'


def file_table(cls: type[Parameters]) -> str:
    """Return the keys of a YAML file as a table in Markdown, with paths of ``with_value``."""
    lines = ['| name | unit | default | allowed | meaning |', '| --- | --- | --- | --- | --- |']
    return '\n'.join([*lines, *_rows_of(cls)])


def _rows_of(cls: type[Parameters], prefix: str = '', unit: str = '') -> Iterator[str]:
    """Yield the rows of a class; numbers in it without a unit have that of what holds it."""
    types = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        rule = rule_of(field)
        name = f'{prefix}{field.name}'
        inner, listed = _inner(types[field.name])
        if isinstance(inner, type) and issubclass(inner, Parameters):
            yield from _rows_of(inner, f'{name}.NAME.' if listed else f'{name}.', rule.unit)
            continue
        cells = (
            f'`{name}`',
            '' if inner in (bool, str) else rule.unit or (unit if inner is float else ''),
            _default_in_file(field),
            _allowed_in_file(rule, inner, listed),
            rule.description,
        )
        yield '| ' + ' | '.join(cell.replace('|', '\\|') for cell in cells) + ' |'


def _inner(kind: Any) -> tuple[Any, bool]:
    """Return what a field holds one or many of, and whether it holds many."""
    arguments = [k for k in typing.get_args(kind) if k not in (type(None), ...)]
    if not arguments:
        return kind, False
    if typing.get_origin(kind) is tuple:
        return arguments[0], True
    # What may be left out.
    return _inner(arguments[0])


def _default_in_file(field: dataclasses.Field[Any]) -> str:
    """Return a field's default as a file would have it."""
    default = field.default
    if default is dataclasses.MISSING:
        return 'required'
    if isinstance(default, bool):
        return f'`{default}`'.lower()
    if isinstance(default, tuple):
        return f'`{list(default)}`'
    return {None: 'none', '': 'empty'}.get(default, f'`{default}`')


def _allowed_in_file(rule: Rule, kind: Any, listed: bool) -> str:
    """Return what is allowed, without the unit, which has a column of its own."""
    if typing.get_origin(kind) is tuple:
        return 'list of pairs'
    if kind is str and not rule.choices:
        return 'list of names' if listed else 'a name'
    allowed = _allowed(dataclasses.replace(rule, unit=''), kind)
    return f'list of {allowed}' if listed else allowed


def test_readme_has_the_tables_of_nodes_files_and_columns(spec: Spec) -> None:
    package = type(spec).__module__.split('.')[0]
    readme = (ROOT / 'src' / package / 'README.md').read_text(encoding='utf-8')
    tables = [column_table(spec.columns(parameters_of(spec)))]
    module = importlib.import_module(f'{package}.nodes')
    tables += [
        table(cls, without=SHARED)
        for cls in vars(module).values()
        if isinstance(cls, type)
        and issubclass(cls, FrameParameters)
        and cls.__module__ == module.__name__
    ]
    for name in TABLES[spec.name]:
        of, member = name.split('.')
        given = getattr(importlib.import_module(f'{package}.{of}'), member)
        tables.append(column_table(given) if isinstance(given, Columns) else file_table(given))
    for expected in tables:
        assert expected in readme, f'the table shall be\n{expected}'


NODES = (TrackerParameters, CameraNodeParameters, VideoNodeParameters)


@pytest.mark.parametrize(
    ('package', 'expected'),
    [
        ('node', table(*SHARED)),
        *(('symbolic', file_table(cls)) for cls in (Links, State, Arm, Scenario)),
        *(
            ('vision', file_table(cls))
            for cls in (CameraLook, rig_file(['NAME']), reference_file(['CAMERA']))
        ),
        *(('vision', table(cls)) for cls in NODES),
    ],
)
def test_readme_has_the_tables_of_other_files_and_nodes(package: str, expected: str) -> None:
    readme = (ROOT / f'src/longreach_{package}/README.md').read_text(encoding='utf-8')
    assert expected in readme, f'the table shall be\n{expected}'
