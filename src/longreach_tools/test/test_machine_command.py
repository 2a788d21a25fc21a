"""What the commands of all machines do alike, shown with a machine that is none."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, choice, quantity
from longreach_machine import Curve, MachineSpec, Panel
from longreach_machine.runs import Column, Columns, Run
from longreach_tools import run_figure, signals
from longreach_tools.cli import _Parser
from longreach_tools.machine_command import _changed, check_files, configure

COLUMNS = Columns((Column('time', 's'), Column('height', 'm')))


@dataclasses.dataclass(frozen=True)
class Knot(Parameters):
    name: str = quantity('name', '')
    mass: float = quantity('mass', 'kg', above=0.0)


@dataclasses.dataclass(frozen=True)
class Rope(Parameters):
    length: float = quantity('length', 'm', above=0.0)
    longest: float = quantity('bound of the length', 'm', default=30.0)
    knots: tuple[Knot, ...] = quantity('knots', default=(Knot('low', 1.0), Knot('high', 2.0)))

    def check(self):
        if self.length > self.longest:
            raise InputError(f'length = {self.length}, allowed: up to longest = {self.longest}')
        if self.longest > 50.0 * self.length:
            raise InputError(f'longest = {self.longest}, allowed: up to 50 times length')


@dataclasses.dataclass(frozen=True)
class Push(Parameters):
    height: float = quantity('height', 'm')
    duration: float = quantity('length of the run', 's', above=0.0, default=0.2)
    forces: str = quantity('file of forces', '', default='')


@dataclasses.dataclass(frozen=True)
class Options(Parameters):
    air: str = choice('kind of air', ('none', 'thick'), default='none')
    step: float = quantity('step', 's', at_least=0.0, default=0.05)
    sample_time: float = quantity('interval of rows', 's', above=0.0, default=0.1)
    damped: bool = quantity('whether it is damped', default=True)
    loud: bool = quantity('whether it is heard', default=False)


class Swing(MachineSpec[Rope, Push, Options]):
    """A swing."""

    name, file = 'swing', 'swing.yaml'
    parameters, scenarios, options = Rope, Push, Options
    scenario, swept = 'high.yaml', 'length'
    results = {'height': 'm'}
    panels = (Panel('height', [Curve('height')]),)
    services = {'let-go': 'let it go'}
    valves, moves, loads = 'rope', 'ropes', 'somebody'

    def __init__(self, directory):
        self.directory = directory
        self.seen = []

    def default_file(self):
        return self.directory / self.file

    def simulate(self, parameters, scenario, options):
        self.seen.append(options)
        times = options.sample_time * np.arange(round(scenario.duration / options.sample_time) + 1)
        height = np.full(len(times), parameters.length * scenario.height)
        return Run(parameters, COLUMNS, np.c_[times, height])

    def columns(self, parameters):
        return COLUMNS

    def measure(self, run):
        return [run.column('height')[-1]]

    def describe(self, parameters, prefix):
        return f'<robot name="{prefix}{parameters.length:g}"/>\n'


@pytest.fixture
def swing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path('swing.yaml').write_text('length: 1.5')
    Path('high.yaml').write_text('height: 2.0')
    return Swing(tmp_path)


def call(machine, *words):
    """Run a subcommand, as the command would."""
    parser = _Parser()
    configure(machine, parser)
    arguments = parser.parse_args([str(word) for word in words])
    return int(arguments.run(arguments) or 0)


def heights(file):
    return np.genfromtxt(file, delimiter=',', names=True)['height'].tolist()


@pytest.mark.parametrize(
    ('words', 'expected'),
    [
        (('--set', 'length=2.0'), [4.0] * 3),
        (('--set', 'length=2e0'), [4.0] * 3),
        (('--set', 'length=010'), [20.0] * 3),
        (('--set', 'length=2', '--set', 'scenario.height=0.5'), [1.0] * 3),
        (('--set', 'length=40', '--set', 'longest=50'), [80.0] * 3),
        # Neither alone.
        (('--set', 'length=60', '--set', 'longest=90'), [120.0] * 3),
        (('--set', 'length=2', '--set', 'length=3'), [6.0] * 3),
        (('--duration', '0.4'), [3.0] * 5),
        (('--sample-time', '0.2'), [3.0] * 2),
    ],
)
def test_values_are_changed_on_the_command_line(swing, words, expected):
    assert call(swing, 'run', *words, '--csv', 'a.csv') == 0
    assert heights('a.csv') == expected


def test_the_last_value_counts_also_of_a_whole_and_its_part():
    part = ('knots.high.mass', 5.0)
    whole = ('knots', [{'name': 'low', 'mass': 1.0}, {'name': 'high', 'mass': 2.0}])
    for changes, mass in ([part, whole], 2.0), ([whole, part], 5.0), ([part, whole, part], 5.0):
        assert _changed(Rope(1.5), changes, of_scenario=False).knots[1].mass == mass


def test_each_field_of_the_options_is_an_option(swing):
    words = ('--air', 'thick', '--step', '0', '--damped', 'off', '--loud')
    assert call(swing, 'run', *words) == 0
    assert swing.seen == [Options('thick', 0.0, 0.1, False, True)]


@pytest.mark.parametrize(
    ('words', 'error'),
    [
        (('--set', 'length'), 'PATH=VALUE'),
        (('--set', 'length=-1'), r'length = -1.*allowed: \(0, inf\) m'),
        (('--set', 'length=40', '--set', 'longest=35'), 'length = 40.0, allowed: up to longest'),
        (('--set', 'depth=1'), 'depth is unknown, allowed here: length'),
        (('--set', 'length=[1'), 'no YAML'),
        (('--set', 'length=1:30'), "length = '1:30', allowed: a number in"),
        (('--set', 'length=0x10'), "length = '0x10', allowed: a number in"),
        (('--set', 'length=[1e5]'), r'length = \[100000.0\], allowed: a number in'),
        (('--sample-time', '0'), r'sample_time = 0.*allowed: \(0, inf\) s'),
    ],
)
def test_what_is_refused(swing, words, error):
    with pytest.raises(InputError, match=error):
        call(swing, 'run', *words)
    assert not swing.seen


@pytest.mark.parametrize('words', [('--air', 'thin'), ('--step', 'soon'), ('--duration', '0')])
def test_what_the_parser_refuses(swing, capsys, words):
    with pytest.raises(SystemExit):
        call(swing, 'run', *words)
    assert words[0] in capsys.readouterr().err


def test_a_recording_is_compared_with_the_library(swing, capsys, monkeypatch):
    def read_run(spec, bag, namespace, rope, columns):
        assert columns is COLUMNS
        assert (bag, namespace) == (Path('bag'), 'swing')
        return Run(rope, COLUMNS, np.c_[0.1 * np.arange(3), np.full(3, 3.0)])

    monkeypatch.setattr(signals, 'read_run', read_run)
    assert call(swing, 'compare', 'bag', '--plot', 'a.png') == 0
    assert 'the recording is this run of the library' in capsys.readouterr().out
    assert Path('a.png').stat().st_size > 5_000
    # Rows are those of the recording.
    assert swing.seen[0].sample_time == pytest.approx(0.1)
    assert call(swing, 'compare', 'bag', '--set', 'length=1.501') == 1
    error = capsys.readouterr().err
    assert 'of the library. Name what was run with --scenario, --file, --set, --air' in error
    assert '--damped' in error
    assert '--sample-time' not in error
    assert error.endswith('commands by hand and nodes in real time differ, too\n')
    with monkeypatch.context() as alone:
        alone.setattr(Swing, 'scenario', '')
        alone.setattr(Swing, 'load_scenario', lambda *_: Push(2.1))
        assert call(swing, 'compare', 'bag') == 1
    assert 'Name what was run with --file, --set, --air' in capsys.readouterr().err


def test_limits_of_a_panel_and_what_the_library_says_are_in_its_unit(swing, monkeypatch):
    drawn = []
    monkeypatch.setattr(run_figure, 'draw', lambda _file, picture, _above: drawn.append(picture))
    panel = Panel('height', (Curve('height'),), 'mm', limits=('length',))
    monkeypatch.setattr(Swing, 'panels', (panel,))
    # Between the last two rows others are missing.
    run = Run(Rope(1.5), COLUMNS, np.array([[0.1 * k, 3.0] for k in (0, 1, 2, 3, 9)]))
    library = Run(Rope(1.5), COLUMNS, np.array([[0.0, 4.0], [0.1, 4.0]]))
    run_figure.draw_run(swing, Path('a.png'), run, library)
    (shown,) = drawn[0].panels
    (found,), (other,) = shown.curves, shown.others
    assert [found.values[0], other.values[0], *shown.limits] == [3000.0, 4000.0, 1500.0]
    assert np.isnan(found.values).tolist() == [False] * 4 + [True, False]


@pytest.mark.parametrize(
    ('words', 'error'),
    [
        (('knots.1.mass', '1:2:2'), r'high\.mass, knots\.1\.mass, allowed: each of them once'),
        (('--set', 'knots.1.mass=3'), r'--set knots\.1\.mass=3: knots\.1\.mass is swept'),
        (('knots.2.mass', '1:2:2'), r'knots\.2 is unknown, allowed here: low, high'),
    ],
)
def test_a_parameter_with_two_names_is_swept_once(swing, words, error):
    with pytest.raises(InputError, match=error):
        call(swing, 'sweep', 'knots.high.mass', '1:2:2', *words, '--processes', 1)
    assert not swing.seen


@pytest.mark.parametrize('file', ['forces.csv', 'controller.yaml', 'own/sub/model.py'])
def test_results_of_a_sweep_are_of_the_files_that_it_reads_and_of_its_code(
    swing, monkeypatch, file
):
    monkeypatch.setattr(Swing, '__module__', 'own.spec')
    monkeypatch.setitem(sys.modules, 'own', argparse.Namespace(__path__=['own']))
    Path('own/sub').mkdir(parents=True)
    words = ('sweep', 'length', '1:2:2', '--processes', 1, '--results', 'out')
    words = (*words, '--set', 'scenario.forces=forces.csv')
    Path(file).write_text('a: 1')
    for code in ('a', 'b'):
        # Of models of links, which runs of other parameters generate, too.
        Path('own/__pycache__').mkdir(exist_ok=True)
        Path('own/__pycache__/model.py').write_text(code)
        assert call(swing, *words) == 0
    assert len(swing.seen) == 2
    Path(file).write_text('a: 2')
    with pytest.raises(InputError, match='is of other runs'):
        call(swing, *words)


def test_a_duration_that_is_given_twice_is_refused(swing):
    with pytest.raises(InputError, match='an option that gives duration, here 9'):
        call(swing, 'run', '--set', 'scenario.duration=2', '--duration', 9)
    assert not swing.seen


def test_a_sweep_runs_machine_and_scenario_and_failed_runs_have_no_results(
    swing, monkeypatch, capsys
):
    def simulate(rope, scenario, options):
        run = Swing.simulate(swing, rope, scenario, options)
        return dataclasses.replace(run, message='torn' if rope.length > 1.0 else '')

    monkeypatch.setattr(swing, 'simulate', simulate)
    ranges = ('length', '1:2:2', 'scenario.height', '1:3:2')
    assert call(swing, 'sweep', *ranges, '--processes', 1, '--csv', 'a.csv') == 1
    np.testing.assert_array_equal(heights('a.csv'), [1.0, 3.0, np.nan, np.nan])
    assert 'length = 2, scenario.height = 1 and 1 more runs: torn' in capsys.readouterr().err


def test_a_description_is_printed(swing, capsys):
    assert call(swing, 'urdf', '--prefix', 'north/') == 0
    assert capsys.readouterr().out == '<robot name="north/1.5"/>\n'


def test_services_of_a_plant_and_of_one_machine(swing, monkeypatch, capsys):
    monkeypatch.setattr(import_module('longreach_node.remote'), 'call_plant', lambda *words: words)
    for name in ('pause', 'resume', 'step', 'reset', 'let-go'):
        call(swing, name, '--namespace', 'north')
        service = name.replace('-', '_')
        said = f"('{service}', 'north', 10.0, 'longreach launch swing')\n"
        assert capsys.readouterr().out == said


def test_a_small_machine_has_the_usual_subcommands():
    class Small(MachineSpec[Rope, Push, Parameters]):
        """Nothing but its name."""

        name = 'small'

    parser = _Parser()
    configure(Small(), parser)
    (commands,) = (a.choices for a in parser._actions if isinstance(a.choices, dict))
    assert list(commands) == ['run', 'compare', 'pause', 'resume', 'step', 'reset']


def test_files_that_are_read_are_not_written(tmp_path):
    file = tmp_path / 'a.csv'
    file.write_text('1')
    check_files(argparse.Namespace(csv=file, plot=None, motion=tmp_path / 'b.csv'))
    with pytest.raises(InputError, match=r'--csv .*a\.csv is one of the inputs'):
        check_files(argparse.Namespace(csv=file, plot=None, motion=file))
    with pytest.raises(InputError, match='is one of the inputs'):
        check_files(argparse.Namespace(csv=file), file)
