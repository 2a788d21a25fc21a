"""A run that cannot go on keeps all rows before, with their times, in every machine."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longreach_dynamics.stepping import IntegrationError
from longreach_tools.testing import Outcome

FAILS = 5.75
"""Time of the step that fails [s], after a command or a load has changed."""

# Machine: scenario, module, its kernel that takes `steps` steps from `first` on, and where those
# stand among the arguments. None: it raises an error for a status instead.
MACHINES = {
    'boom': ('release_light', 'longreach_boom.machine', 'advance_motion', (5, 6)),
    'excavator': ('cycle', 'longreach_excavator.machine', 'advance_motion', (5, 6)),
    'harvester': ('open_loop', 'longreach_harvester.machine', 'advance', (5, 6)),
    'crane': ('task_b', 'longreach_crane.machine', 'raise_for', None),
    'links': ('swing', 'longreach_symbolic.machine', 'raise_for', None),
}


@pytest.mark.parametrize('machine', MACHINES)
def test_rows_before_a_failure_are_kept(
    machine: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario, place, name, counts = MACHINES[machine]
    module, files = importlib.import_module(place), (tmp_path / 'whole.csv', tmp_path / 'part.csv')
    assert Outcome(capsys, machine, 'run', scenario, '--csv', files[0]).code == 0
    whole = np.loadtxt(files[0], delimiter=',', skiprows=1)
    kernel = getattr(module, name)

    def stops(*arguments: Any) -> Any:
        first, steps = (arguments[k] for k in counts)
        ends = min(steps, round(FAILS / arguments[counts[0] - 1]) - first)
        found = kernel(*arguments[: counts[1]], ends, *arguments[counts[1] + 1 :])
        return found if ends == steps else (ends, 1) if isinstance(found, tuple) else ends

    def raises(status: int, time: float, *_: object) -> None:
        if time >= FAILS - 1e-9:
            raise IntegrationError(f'status {status} at {time:g} s')

    monkeypatch.setattr(module, name, stops if counts else raises)
    failed = Outcome(capsys, machine, 'run', scenario, '--csv', files[1])
    assert failed.code == 1, failed.err
    part = np.loadtxt(files[1], delimiter=',', skiprows=1)
    interval = whole[1, 0]
    assert FAILS - interval < part[-1, 0] <= FAILS + 1e-9
    np.testing.assert_array_equal(part, whole[: len(part)])
