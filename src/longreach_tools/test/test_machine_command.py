"""What the commands of all machines do alike, shown with a machine that is none."""

from __future__ import annotations

import argparse
import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_dynamics.runs import Column, Columns, Run
from longreach_tools.machine_command import MachineCommand, check_files, lazily
from longreach_tools.options import add_results

COLUMNS = Columns((Column('time', 's'), Column('height', 'm')))
DRAWN: list[Path] = []


def run_of(height: float, rows: int = 3) -> Run[Any]:
    times = 0.1 * np.arange(rows)
    return Run(None, COLUMNS, np.c_[times, np.full(rows, height)])


SWING: MachineCommand[float, float] = MachineCommand(
    name='swing',
    load=lambda arguments: float(arguments.length),
    load_scenario=lambda file, length, _: length * float(file.read_text()),
    simulate=lambda *given: run_of(given[1]),
    read_run=lambda *given: run_of(float(given[0].read_text())),
    draw_run=lambda *given: DRAWN.append(given[0]),
    default_file=lambda: Path('swing.yaml'),
    describe=lambda length, prefix: f'<robot name="{prefix}{length:g}"/>\n',
    add_file=lambda _: None,
)


def call(machine: MachineCommand[float, float], *words: object) -> int:
    """Run a subcommand, as the command would."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    add_results(machine.add_run(commands), 'rows', 'picture')
    machine.add_compare(commands, 'Name the length')
    machine.add_urdf(commands)
    machine.add_services(commands, {'let-go': 'let it go'})
    for command in commands.choices.values():
        command.add_argument('--length', default=1.0)
    arguments = parser.parse_args([str(word) for word in words])
    return int(arguments.run(arguments) or 0)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / 'high.yaml'
    file.write_text('2.0')
    return file


def test_a_scenario_is_run_written_and_drawn(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, scenario: Path
) -> None:
    table, picture = tmp_path / 'a.csv', tmp_path / 'a.png'
    words = (
        'run',
        scenario,
        '--length',
        '1.5',
        '--csv',
        table,
        '--plot',
        picture,
        '--format',
        'json',
    )
    named = dataclasses.replace(SWING, title=lambda a: {'scenario': a.scenario.name})
    assert call(named, *words) == 0
    assert capsys.readouterr().out.startswith('{"scenario": "high.yaml", "duration": 0.2, ')
    np.testing.assert_array_equal(
        np.genfromtxt(table, delimiter=',', names=True)['height'], [3.0, 3.0, 3.0]
    )
    assert DRAWN[-1] == picture


def test_a_recording_is_compared_with_the_scenario_that_is_named_or_usual(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, scenario: Path
) -> None:
    bag = tmp_path / 'bag'
    bag.write_text('2.0')
    assert call(SWING, 'compare', bag, '--scenario', scenario) == 0
    assert 'the recording is this run of the library' in capsys.readouterr().out
    assert call(SWING, 'compare', bag, '--scenario', scenario, '--length', 1.001) == 1
    assert 'is not this run of the library. Name the length' in capsys.readouterr().err
    with pytest.raises(SystemExit):
        call(SWING, 'compare', bag)
    assert '--scenario' in capsys.readouterr().err
    usual = dataclasses.replace(SWING, usual=('a rest', lambda: 2.0))
    assert call(usual, 'compare', bag) == 0


def test_the_step_of_a_plant_gives_the_rows_of_its_recording(tmp_path: Path) -> None:
    seen: list[float] = []

    def simulate(_: float, height: float, arguments: argparse.Namespace) -> Run[Any]:
        seen.append(arguments.sample_time)
        return run_of(height)

    machine = dataclasses.replace(SWING, simulate=simulate, usual=('a rest', lambda: 2.0))
    parser = argparse.ArgumentParser()
    machine.add_compare(parser.add_subparsers(), '', step=0.01).set_defaults(length=1.0)
    (tmp_path / 'bag').write_text('2.0')
    arguments = parser.parse_args(['compare', str(tmp_path / 'bag')])
    assert arguments.run(arguments) == 0
    assert seen == [pytest.approx(0.1)]


def test_a_small_machine_has_the_usual_subcommands(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # Without scenario files there is one scenario.
    small = dataclasses.replace(
        SWING, load=lambda _: 1.0, load_scenario=None, usual=('a rest', lambda: 2.0)
    )
    parser = argparse.ArgumentParser()
    small.configure(parser)
    (tmp_path / 'bag').write_text('2.0')
    for words in (['run'], ['compare', str(tmp_path / 'bag')], ['pause']):
        arguments = parser.parse_args(words)
        if words != ['pause']:
            assert arguments.run(arguments) == 0
            assert capsys.readouterr().out


def test_a_description_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(SWING, 'urdf', '--prefix', 'north/') == 0
    assert capsys.readouterr().out == '<robot name="north/1"/>\n'


def test_services_of_a_plant_and_of_one_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr('longreach_node.remote.call_plant', lambda *words: words)
    for name in ('pause', 'resume', 'step', 'reset', 'let-go'):
        call(SWING, name, '--timeout', 2, '--namespace', 'north')
        service = name.replace('-', '_')
        told = f"('{service}', 'north', 2.0, 'longreach launch swing')\n"
        assert capsys.readouterr().out == told


def test_files_that_are_read_are_not_written(tmp_path: Path) -> None:
    file = tmp_path / 'a.csv'
    file.write_text('1')
    check_files(argparse.Namespace(csv=file, plot=None, motion=tmp_path / 'b.csv'))
    with pytest.raises(InputError, match=r'--csv .*a\.csv is one of the inputs'):
        check_files(argparse.Namespace(csv=file, plot=None, motion=file))
    with pytest.raises(InputError, match='is one of the inputs'):
        check_files(argparse.Namespace(csv=file), file)


def test_what_is_named_is_imported_when_it_is_called() -> None:
    program = (
        'import sys\n'
        'from longreach_tools.machine_command import lazily\n'
        'decoded = lazily("colorsys:rgb_to_hls")\n'
        'assert "colorsys" not in sys.modules\n'
        'assert decoded(1.0, 1.0, 1.0)[1] == 1.0\n'
        'assert "colorsys" in sys.modules\n'
    )
    subprocess.run([sys.executable, '-c', program], check=True)
    with pytest.raises(ModuleNotFoundError):
        lazily('longreach_tools.nothing:here')()
