"""Breakout forces against virtual work, an independent balance, and what the command says."""

import numpy as np
import pytest

from longreach_excavator.breakout import BREAKOUTS, breakout
from longreach_excavator.kinematics import pin_places
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.parameters import default_file
from longreach_tools.testing import Outcome


@pytest.mark.parametrize('cylinder', BREAKOUTS)
def test_the_cylinder_gives_all_of_its_force(excavator, cylinder):
    """The loads come from the whole chain; its cylinder must then carry what the oil gives."""
    found = breakout(excavator, cylinder, excavator.pose('dig'))
    driven = excavator.cylinders[CYLINDERS.index(cylinder)]
    push = 288e5 * driven.head_area - 5e5 * driven.rod_area
    np.testing.assert_allclose(found.loads.column(f'pin_force_{cylinder}'), push, rtol=1e-9)
    np.testing.assert_allclose(found.loads.column(f'force_{cylinder}'), push, rtol=1e-9)
    lengths = found.loads.column(f'length_{cylinder}') - driven.retracted
    np.testing.assert_allclose(lengths, found.stroke, atol=1e-9)


@pytest.mark.parametrize('cylinder', BREAKOUTS)
def test_work_of_the_piston_is_that_of_the_tooth(excavator, cylinder):
    """Without weight, by differences between neighbouring rows of the stroke."""
    light = excavator.replace(gravity=0.0)
    found = breakout(light, cylinder, light.pose('dig'))
    driven = light.cylinders[CYLINDERS.index(cylinder)]
    push = 288e5 * driven.head_area - 5e5 * driven.rod_area
    angles = found.loads.stack([f'theta_{k}' for k in (2, 3, 4)])
    way = np.abs(np.diff(pin_places(light, angles)[:, -1]))
    middle = 0.5 * (found.force[1:] + found.force[:-1])
    done = push * np.diff(found.stroke)
    np.testing.assert_allclose((middle * way)[5:-5], done[5:-5], rtol=0.01)


def test_breakout_of_the_bucket_is_the_force_at_which_the_dig_stalls(capsys, tmp_path, excavator):
    """docs/excavator.md: soil of 20 kPa stalls the bucket at 92.5 kN."""
    files = ('--csv', tmp_path / 'b.csv', '--plot', tmp_path / 'b.svg')
    words = ('--file', default_file('thesis'), '--format', 'json')
    done = Outcome(capsys, 'excavator', 'breakout', *files, *words)
    assert done.json['bucket']['force_n'] == pytest.approx(92.7e3, abs=50.0)
    assert done.json['arm']['force_n'] == pytest.approx(86.9e3, abs=50.0)
    assert done.json['bucket']['pins_n']['c'] == pytest.approx(589e3, abs=500.0)
    # What the others would have to hold is more than the supply gives.
    assert 'the arm would have to hold 498 kN' in done.err
    assert b'<svg' in (tmp_path / 'b.svg').read_bytes()
    rows = np.genfromtxt(tmp_path / 'b.csv', delimiter=',', names=True)
    assert rows['breakout_force'].max() == pytest.approx(done.json['bucket']['force_n'])
    stall = Outcome(capsys, 'excavator', 'dig', '--cohesion', 20000, *words).json
    assert stall['peak_soil_force_n'] == pytest.approx(92.5e3, rel=0.01)
