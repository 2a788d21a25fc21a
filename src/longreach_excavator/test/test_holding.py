"""What holds boom and arm during the digging: closed valves, or locks; docs/excavator.md."""

import numpy as np
import pytest

from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.motion import HEAD, SPOOL
from longreach_excavator.scenario import dig_scenario
from longreach_excavator.simulation import simulate
from longreach_excavator.soil import resistance_at

STANDING = ('boom', 'arm')
HALF_OF_SUPPLY, SUPPLY = 144e5, 288e5


def motion_of_d(run):
    """Return how far the bucket's joint moved [m]."""
    return float(np.abs(run.bucket_joint()).max())


def excess_of_swing(run):
    """Return by which share the law is above that at the depth below the surface at 3 s."""
    k = int(np.searchsorted(run.column('time'), 3.0))
    depth = run.column('depth')[k]
    there = np.array([depth, depth - run.bucket_joint()[k].imag])
    counted, below = resistance_at(run.parameters.soil, there)
    return float(counted / below - 1.0)


def dug(excavator, step=1e-3):
    return simulate(excavator, dig_scenario(cohesion=17e3), step)


@pytest.mark.parametrize(
    ('pressure', 'modulus', 'moved'),
    [
        (60e5, 1.7e9, 0.114),
        (HALF_OF_SUPPLY, 1.7e9, 0.096),
        (HALF_OF_SUPPLY, 1.6e9, 0.102),
        (HALF_OF_SUPPLY, 1.4e9, 0.116),
        (HALF_OF_SUPPLY, 1.2e9, 0.136),
        (HALF_OF_SUPPLY, 8.5e9, 0.019),
        (SUPPLY, 1.7e9, 0.088),
    ],
)
def test_motion_on_closed_valves(excavator, pressure, modulus, moved):
    other = excavator.with_value('oil.bulk_modulus', modulus)
    # Stiff oil needs short steps.
    run = dug(other.with_value('oil.preload', pressure), 1e-3 if modulus < 2e9 else 2.5e-4)
    assert motion_of_d(run) == pytest.approx(moved, abs=5e-4)


def test_motion_is_that_of_the_oils_springs(excavator):
    """Without cavitation the pistons move by force over beta (A_1^2 / V_1 + A_2^2 / V_2)."""
    run = dug(excavator.with_value('oil.preload', SUPPLY))
    for k, stiffness, most in ((0, 64e6, 7.1e-3), (1, 36e6, 13.1e-3)):
        c = run.parameters.cylinders[k]
        length, force = run.column(f'length_{c.name}'), run.column(f'force_{c.name}')
        place = length[0] - c.retracted
        spring = c.head_area**2 / (c.head_volume + c.head_area * place)
        spring += c.rod_area**2 / (c.rod_volume - c.rod_area * place)
        spring *= excavator.oil.bulk_modulus
        assert spring == pytest.approx(stiffness, rel=0.01)
        row = int(np.abs(length - length[0]).argmax())
        moved = length[row] - length[0]
        assert abs(moved) == pytest.approx(most, abs=1e-4)
        assert moved == pytest.approx((force[0] - force[row]) / spring, rel=0.01)


def test_what_lines_hoses_and_valves_add(excavator, standard, realistic):
    small = {f'cylinders.{name}.line_volume': 1e-4 for name in STANDING}
    stiff = excavator.with_values({'oil.preload': SUPPLY, **small})
    with_hoses = excavator.replace(
        cylinders=[c.replace(hose=realistic.cylinders[0].hose) for c in excavator.cylinders]
    )
    machines = (excavator, standard, realistic, with_hoses)
    runs = [*map(dug, machines), dug(stiff, 2.5e-4)]
    moved = [motion_of_d(run) for run in runs]
    assert moved == pytest.approx([0.114, 0.131, 0.165, 0.146, 0.069], abs=6e-4)
    # The law is too high by so much.
    excess = [excess_of_swing(run) for run in runs[:3]]
    assert excess == pytest.approx([0.183, 0.280, 0.400], abs=2e-3)


def test_arm_carries_more_than_the_supply_gives(excavator):
    run = dug(excavator)
    arm = excavator.cylinders[CYLINDERS.index('arm')]
    assert run.column('force_arm').max() == pytest.approx(457e3, rel=0.01)
    assert run.column('force_arm').max() > 1.1 * excavator.oil.supply_pressure * arm.head_area


def test_locked_boom_and_arm_hold_the_joint(excavator):
    usual, surface, *stalled = (
        simulate(excavator, dig_scenario(cohesion=cohesion, depth=depth, held=STANDING))
        for cohesion in (17e3, 20e3)
        for depth in ('swing', 'surface')
    )
    assert motion_of_d(usual) == pytest.approx(0.010, abs=5e-4)
    assert excess_of_swing(usual) == pytest.approx(0.016, abs=1e-3)
    assert not any('joint D' in text for text in usual.warnings())
    assert usual.time_to_sweep() == pytest.approx(6.05, abs=0.01)
    assert surface.time_to_sweep() == pytest.approx(5.77, abs=0.01)
    assert all(run.stalled() for run in stalled)
    assert max(run.energy_error() for run in (usual, surface, *stalled)) < 1e-8
    # The pin carries the oil's force and the lock's, which is a spring to both sides.
    for name in STANDING:
        length = usual.column(f'length_{name}')
        lock = usual.column(f'pin_force_{name}') - usual.column(f'force_{name}')
        spring = -excavator.stops.stiffness * (length - length[0])
        np.testing.assert_allclose(lock, spring, atol=0.01 * np.abs(spring).max())


@pytest.mark.parametrize(
    ('pressure', 'held', 'stall'),
    [
        (60e5, (), (18.1e3, 20.7e3)),
        (HALF_OF_SUPPLY, (), (18.0e3, 20.6e3)),
        (60e5, STANDING, (18.0e3, 18.3e3)),
    ],
)
def test_cohesion_at_which_the_bucket_stalls(excavator, pressure, held, stall):
    excavator = excavator.with_value('oil.preload', pressure)
    for depth, limit in zip(('swing', 'surface'), stall, strict=True):
        for cohesion, stalls in ((limit - 100.0, False), (limit + 100.0, True)):
            scenario = dig_scenario(cohesion=cohesion, duration=20.0, depth=depth, held=held)
            assert simulate(excavator, scenario).stalled() == stalls


def test_relief_and_make_up_valves_keep_closed_chambers_filled(excavator, realistic):
    published, run = dug(excavator), dug(realistic)
    assert published.states[:, HEAD:SPOOL].min() < excavator.oil.vapour_pressure - 1e5
    assert run.states[:, HEAD:SPOOL].min() > 1e5
    assert run.energy_error() < 1e-6
    added = run.columns.names[len(published.columns.names) :]
    flows = [f'port_{side}_{name}' for side in ('head', 'rod') for name in CYLINDERS]
    assert added == (*flows, 'rail_pressure', 'rail_flow')
    for c in realistic.cylinders:
        for side, setting in (('head', c.relief.head), ('rod', c.relief.rod)):
            p, flow = run.column(f'p_{side}_{c.name}'), run.column(f'port_{side}_{c.name}')
            filled = p < c.make_up.supply - c.make_up.cracking
            np.testing.assert_array_equal(flow > 0.0, filled)
            np.testing.assert_array_equal(flow < 0.0, p > setting)
    assert (run.stack(flows) > 0.0).any()
