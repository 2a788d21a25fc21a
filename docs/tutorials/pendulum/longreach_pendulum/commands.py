"""``longreach pendulum``: simulate, draw, compare a recording; ``pause`` and its like."""

from pathlib import Path

from longreach_dynamics.runs import Run
from longreach_pendulum.machine import COLUMNS, Pendulum, simulate
from longreach_tools.machine_command import MachineCommand
from longreach_tools.output import figure
from longreach_tools.recording import read_columns

SUMMARY = 'a pendulum on a hydraulic cylinder'


def draw(file: Path, run: Run[Pendulum]) -> None:
    with figure(file, size=(7.0, 6.0), rows=3) as axes:
        for axis, name, unit in zip(axes, COLUMNS.names[1:], ('deg', 'bar', 'bar'), strict=True):
            axis.plot(run.column('time'), run.column(name, unit))
            axis.set(xlabel='time [s]', ylabel=f'{name} [{unit}]')


PENDULUM = MachineCommand(
    name='pendulum',
    load=lambda _: Pendulum(),
    simulate=lambda pendulum, duration, _: simulate(pendulum, duration),
    read_run=lambda *given: Run(given[-1], COLUMNS, read_columns(*given[:2], COLUMNS, 'pendulum')),
    draw_run=draw,
    usual=('the lift', lambda: 5.0),
)
configure = PENDULUM.configure
