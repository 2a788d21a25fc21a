"""What an operator does ends no plant and breaks no bound; load and machine settle."""

import numpy as np
import pytest

from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.motion import HEAD, RATE, SIZE, SPOOL
from longreach_excavator.scenario import Scenario
from longreach_excavator.simulation import simulate
from longreach_excavator.terrain import VOLUME, heights
from longreach_machine.scenarios import ValveCommand

HIGHEST = 370e5
"""Bound of the pressures in excavator.yaml: the relief valves are fully open [Pa]."""
# Of the minutes 1 to 41 those that come nearest to a bound: of pressures (3, 9, 13), of lugs
# (20, 23), of strokes (30, 40), of energy (31, 33), and the one with the fullest bucket (25).
MINUTES = (3, 9, 13, 20, 23, 25, 30, 31, 33, 40)


def check(run):
    """Check all bounds of a run of the standard machine on terrain."""
    assert not run.message
    assert np.all(np.isfinite(run.table))
    assert run.states[:, HEAD:SPOOL].max() < HIGHEST
    sides = [f'p_{side}_{name}' for side in ('head', 'rod') for name in CYLINDERS]
    assert run.stack(sides).min() >= 0.0
    low, high, _ = run.parameters.lugs().T
    beyond = np.maximum(low - run.states[:, :RATE], run.states[:, :RATE] - high)
    assert np.degrees(beyond.max()) < 0.5
    for c in run.parameters.cylinders:
        length = run.column(f'length_{c.name}')
        assert c.retracted - 0.01 < length.min() < length.max() < c.extended + 0.01
    ground, of_soil = run.machine.constants.ground, run.states[:, SIZE:]
    soil = heights(of_soil).sum(axis=1) * ground.cell * ground.width + of_soil[:, VOLUME]
    assert np.ptp(soil) < 1e-9
    assert run.energy_error() < 1e-3


def at_random(seed, duration):
    """Return a scenario in which all spools jump at random times: closed, open, or between."""
    random, time, commands = np.random.default_rng(seed), 0.0, []
    while time < duration:
        kind, full = random.random(3), random.choice([-1.0, 1.0], 3)
        spools = np.where(kind < 0.6, full, random.uniform(-1.0, 1.0, 3)) * (kind > 0.25)
        commands.append(ValveCommand(round(time, 3), tuple(spools.tolist())))
        time += random.uniform(0.2, 3.0)
    return Scenario(
        duration=duration,
        pose='dig',
        depth='terrain',
        cohesion=random.uniform(0.0, 4e4),
        valve_commands=tuple(commands),
    )


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(('seed', 'duration'), [(1, 20.0), *((k, 60.0) for k in MINUTES)])
def test_operation_at_random(standard, seed, duration):
    check(simulate(standard, at_random(seed, duration)))


def test_bucket_pressed_on_the_ground(standard, excavator):
    """The weight of the machine on an open bucket meets the lugs, not the dead point."""
    commands = (ValveCommand(0.0, (0.0, 0.0, -1.0)), ValveCommand(4.0, (-0.6, 0.0, -1.0)))
    scenario = Scenario(
        duration=12.0,
        pose_deg=(45.0, -95.0, -15.0),
        depth='terrain',
        surface=-1.0,
        cohesion=1e6,
        valve_commands=commands,
    )
    run, plain = (simulate(machine, scenario) for machine in (standard, excavator))
    check(run)
    assert not plain.message
    for one in (run, plain):
        assert one.column('theta_4').max() > one.parameters.lugs()[2, 1]
        assert one.energy_error() < 1e-5


def test_a_load_settles_on_closed_valves(standard, excavator, cycle):
    """The cycle until the valves close with the soil in the bucket, and 5 s more."""
    kept = tuple(c for c in cycle.machine.scenario.valve_commands if c.time <= 7.6)
    scenario = cycle.machine.scenario.replace(duration=12.6, valve_commands=kept)
    run, plain = (simulate(machine, scenario) for machine in (standard, excavator))

    def swings(run, name):
        """Return peak to peak in the second after 1, 2 and 4 s."""
        time, values = run.column('time'), run.column(name)
        parts = [(time >= 7.6 + after) & (time < 8.6 + after) for after in (1.0, 2.0, 4.0)]
        return [float(np.ptp(values[part])) for part in parts]

    assert run.column('bucket_mass')[-1] > 1300.0
    assert np.all(np.array(swings(run, 'tip_z')) < [0.012, 0.006, 0.004])
    assert np.all(np.array(swings(run, 'force_boom')) < [60e3, 35e3, 20e3])
    # Without friction of the seals it goes on.
    assert min(swings(plain, 'force_boom')) > 300e3


@pytest.mark.slow
def test_a_full_bucket_sinks_as_slowly_as_service_manuals_allow(standard):
    """3 min, the bucket's joint as high as the foot, the arm out: 6, 12, 18 mm at most."""
    bucket = standard.bucket.replace(mass=standard.bucket.mass + 1500.0)
    scenario = Scenario(duration=180.0, pose_deg=(11.68, -35.0, -95.0), soil=False)
    run = simulate(standard.replace(bucket=bucket), scenario, sample_time=0.1)
    for name, most in zip(CYLINDERS, (6e-3, 12e-3, 18e-3), strict=True):
        length = run.column(f'length_{name}')
        # The first seconds are the oil that the charge line adds.
        assert 0.3 * most < abs(length[-1] - length[20]) < most


def test_a_run_on_terrain_says_where_the_soil_is(cycle):
    found, ground = cycle.summary(), cycle.machine.constants.ground
    moved = found['soil_dumped_m3'] + found['soil_in_bucket_m3']
    assert found['soil_cut_m3'] == pytest.approx(moved, abs=1e-9)
    assert found['soil_dumped_kg'] == pytest.approx(ground.density * found['soil_dumped_m3'])
    assert found['most_in_bucket_kg'] > 1500.0 > found['soil_in_bucket_kg']
    assert found['soil_dumped_kg'] >= found['most_in_bucket_kg'] - found['soil_in_bucket_kg']
    way = cycle.column('tip_x')
    assert way.min() < found['soil_dumped_at_m'] < way.max()
    assert 'sweep_deg' not in found
