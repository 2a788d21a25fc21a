"""The excavator file: its numbers, what follows from them, and what is refused."""

from __future__ import annotations

import copy
import dataclasses
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import load_yaml
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.parameters import ExcavatorParameters, default_file, load_excavator

MakeExcavator = Callable[..., ExcavatorParameters]


@pytest.fixture(scope='module')
def installed() -> dict[str, Any]:
    return load_yaml(default_file())


@pytest.fixture
def content(installed: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(installed)


def put(content: dict[str, Any], path: str, value: Any) -> None:
    """Set an entry, for a path like cylinders.0.bore; ... takes it away."""
    *outer, last = [int(part) if part.isdigit() else part for part in path.split('.')]
    inner: Any = content
    for part in outer:
        inner = inner[part]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value


def load_content(tmp_path: Path, content: dict[str, Any]) -> ExcavatorParameters:
    file = tmp_path / 'my_excavator.yaml'
    file.write_text(yaml.safe_dump(content))
    return load_excavator(file)


# The installed file: the notes' numbers


def test_installed_links(excavator: ExcavatorParameters) -> None:
    links = (excavator.boom, excavator.arm, excavator.bucket)
    assert [link.length for link in links] == [5.648, 2.889, 1.580]
    assert [link.mass for link in links] == [1566.0, 735.0, 432.0]
    assert [(link.center, link.center_deg) for link in links] == [
        (2.8, 12.0),
        (0.8, 16),
        (0.78, 30),
    ]
    assert [link.inertia for link in links] == [3920.0, 730.0, 107.0]
    # A link's radius of gyration is well below its length: the inertia is about the centre.
    for link in links:
        assert 0.2 < math.sqrt(link.inertia / link.mass) / link.length < 0.4


def test_installed_pins(excavator: ExcavatorParameters) -> None:
    x = excavator
    assert (x.boom.lab, x.boom.lai) == (2.456, 3.601)
    assert (x.boom.beta_2_deg, x.boom.beta_3_deg) == (18.67, 4.13)
    assert (x.chassis.lah, x.chassis.lhe) == (0.607, 0.449)
    assert (x.arm.lcf, x.arm.lcj, x.arm.lcl) == (0.862, 0.775, 2.457)
    assert (x.arm.beta_5_deg, x.arm.beta_6_deg, x.arm.beta_7_deg) == (1.10, 58.48, 96.87)
    assert (x.bucket.ldp, x.bucket.beta_8_deg) == (0.461, 93.5)
    assert (x.bucket.llk, x.bucket.lpk) == (0.584, 0.560)
    # What the notes list besides, and follows: beta_1, Lci, Lld.
    pins = x.pins()
    assert math.degrees(math.atan2(-pins.e.imag, pins.e.real)) == pytest.approx(53.5, abs=0.05)
    assert abs(pins.i - pins.c) == pytest.approx(2.516, abs=2e-3)
    assert abs(pins.l - pins.d) == pytest.approx(0.436, abs=2e-3)


def test_installed_cylinders(excavator: ExcavatorParameters) -> None:
    assert tuple(c.name for c in excavator.cylinders) == CYLINDERS
    bucket = excavator.cylinders[2]
    # Strokes use the notes' lengths, and joints what they say of the class.
    assert (bucket.retracted, bucket.extended) == pytest.approx((1.577, 2.599), abs=1e-9)
    assert np.degrees(excavator.joint_limits()[2]) == pytest.approx([-105.0, 60.0], abs=0.3)
    # A pair of boom cylinders has twice the area and twice the filled volume.
    boom = excavator.cylinders[0]
    assert boom.count == 2
    assert boom.head_area == pytest.approx(2.0 * math.pi * 0.06**2, rel=1e-14)
    assert boom.rod_area == pytest.approx(2.0 * math.pi * (0.06**2 - 0.0425**2), rel=1e-14)
    assert boom.head_volume == pytest.approx(0.05 * boom.head_area + 3e-3, rel=1e-14)
    assert boom.rod_volume == pytest.approx(1.31 * boom.rod_area + 3e-3, rel=1e-14)
    # The thesis' 290 kN are within what pump and bore can do.
    assert bucket.head_area * excavator.oil.supply_pressure > 290e3


def test_thesis_begins_with_the_tooth_in_front(excavator: ExcavatorParameters) -> None:
    # 54.45 deg before the vertical, half of the sweep.
    turned = math.degrees(excavator.pose('dig').sum())
    assert turned == pytest.approx(-90.0 + 54.45, abs=1e-9)
    low = math.degrees(excavator.joint_limits()[2, 0])
    assert math.degrees(excavator.pose('dig')[2]) - 108.9 > low


def test_valve_lets_200_litres_a_minute_through(excavator: ExcavatorParameters) -> None:
    oil, valve = excavator.oil, excavator.cylinders[2].valve
    flow = oil.contraction * valve.area * math.sqrt(2.0 / oil.density * oil.supply_pressure)
    assert flow * 6e4 == pytest.approx(200.0, rel=0.02)


def test_chain_carries_the_weight(excavator: ExcavatorParameters) -> None:
    q = excavator.pose('reach')
    turned, links = np.cumsum(q), (excavator.boom, excavator.arm, excavator.bucket)
    joint, moments = 0.0, []
    for angle, link in zip(turned, links, strict=True):
        center = joint + link.center * math.cos(angle + math.radians(link.center_deg))
        moments.append((link.mass * 9.81, center, joint))
        joint += link.length * math.cos(angle)
    expected = [
        sum(weight * (at - moments[k][2]) for weight, at, _ in moments[k:]) for k in range(3)
    ]
    np.testing.assert_allclose(excavator.chain().bias(q, np.zeros(3)), expected, rtol=1e-12)


# Files


def plain(item: Any) -> Any:
    """Return parameters as mappings and lists."""
    if dataclasses.is_dataclass(item):
        return {f.name: plain(getattr(item, f.name)) for f in dataclasses.fields(item)}
    return [plain(value) for value in item] if isinstance(item, tuple) else item


def test_random_excavators_survive_a_file(tmp_path: Path, random_excavator: MakeExcavator) -> None:
    random = np.random.default_rng(1)
    for _ in range(3):
        excavator = random_excavator(random)
        again = load_content(tmp_path, plain(excavator))
        assert again == excavator
        assert hash(again) == hash(excavator)


# Strokes and poses


def test_limits_are_the_ends_of_the_strokes(excavator: ExcavatorParameters) -> None:
    linkage, limits = excavator.linkage(), excavator.joint_limits()
    assert np.all(limits[:, 0] < limits[:, 1])
    ends = linkage.lengths(limits.T)
    for k, cylinder in enumerate(excavator.cylinders):
        expected = [cylinder.retracted, cylinder.extended]
        assert sorted(ends[:, k]) == pytest.approx(expected, abs=1e-12)
    # The boom goes up when its cylinder runs out, arm and bucket go in.
    assert list(np.diff(ends, axis=0)[0] > 0.0) == [True, False, False]


def test_poses_must_fit_the_strokes(excavator: ExcavatorParameters) -> None:
    limits = excavator.joint_limits()
    for column in (0, 1):
        excavator.check_pose(limits[:, column])
        for k, name in enumerate(CYLINDERS):
            beyond = limits[:, column].copy()
            beyond[k] += 1e-3 if column else -1e-3
            low, high = (re.escape(f'{value:.4f}') for value in np.degrees(limits[k]))
            with pytest.raises(
                InputError,
                match=rf'theta_{k + 2} \({name}\) = .* deg, allowed by the stroke of its cylinder:'
                rf' \[{low}, {high}\] deg',
            ):
                excavator.check_pose(beyond)
    for count in (0, 2, 4):
        with pytest.raises(InputError, match=rf'pose has {count} angles, allowed: 3'):
            excavator.check_pose(np.zeros(count))
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(InputError, match=rf'theta_3 \(arm\) = {value} deg'):
            excavator.check_pose(np.array([0.3, value, 0.0]))
    with pytest.raises(InputError, match=r"^pose = 'flat', allowed: dig \| reach \| tucked"):
        excavator.pose('flat')


# What is refused


def pattern(message: str) -> str:
    """Return the regular expression of a text with two dots for what is left out."""
    return '.*'.join(re.escape(part) for part in message.split(' .. '))


LENGTHS = [
    *('boom.lab', 'boom.lai', 'arm.lcf', 'arm.lcj', 'arm.lcl'),
    *('bucket.ldp', 'bucket.llk', 'bucket.lpk'),
    *('boom.length', 'arm.length', 'bucket.length'),
]


@pytest.mark.parametrize('path', LENGTHS)
@pytest.mark.parametrize('value', [0.0, -1.0, 101.0, math.nan, math.inf])
def test_impossible_lengths(
    tmp_path: Path, content: dict[str, Any], path: str, value: float
) -> None:
    put(content, path, value)
    message = f'my_excavator.yaml: {path} = {value}, allowed: (0, 100] m'
    with pytest.raises(InputError, match=re.escape(message)):
        load_content(tmp_path, content)


@pytest.mark.parametrize(
    ('path', 'value', 'message'),
    [
        ('gravity', -9.81, 'gravity = -9.81, allowed: [0, 100] m/s^2'),
        ('gravity', math.nan, 'gravity = nan, allowed: [0, 100] m/s^2'),
        ('gravity', ..., 'gravity is missing: gravity, g [m/s^2]'),
        ('bukket', {}, 'bukket is unknown, allowed here: gravity, chassis, boom'),
        ('boom', 5.6, 'boom = 5.6, allowed: a mapping with the keys'),
        ('boom.mass', 0.0, 'boom.mass = 0.0, allowed: (0, 1e+06] kg'),
        ('boom.mass', '1566 kg', "boom.mass = '1566 kg', allowed: a number in (0, 1e+06] kg"),
        ('arm.mass', -735.0, 'arm.mass = -735.0, allowed: (0, 1e+06] kg'),
        ('bucket.inertia', 0.0, 'bucket.inertia = 0.0, allowed: (0, inf) kg m^2'),
        ('bucket.inertia', math.nan, 'bucket.inertia = nan, allowed: (0, inf) kg m^2'),
        ('boom.center', -1.0, 'boom.center = -1.0, allowed: [0, inf) m'),
        ('boom.center', 57.0, 'boom: center = 57.0 m, allowed: up to 10 times length = 5.648 m'),
        ('boom.center_deg', math.inf, 'boom.center_deg = inf, allowed: [-360, 360] deg'),
        ('boom.beta_2_deg', math.nan, 'boom.beta_2_deg = nan, allowed: [-360, 360] deg'),
        ('arm.beta_8_deg', 1.0, 'arm.beta_8_deg is unknown, allowed here: length, mass'),
        ('bucket.beta_8_deg', ..., 'bucket.beta_8_deg is missing: angle from DN to DP [deg]'),
        ('chassis.lhe', 11.0, 'chassis.lhe = 11.0, allowed: [-10, 10] m'),
        ('chassis.foot_height', -1.0, 'chassis.foot_height = -1.0, allowed: [0, 100] m'),
        ('chassis', {'lhe': 0.0, 'lah': 0.0, 'foot_height': 1.0}, 'chassis: lhe and lah are 0'),
        ('oil.supply_pressure', 4e5, 'oil: tank_pressure = 500000 Pa, allowed: below supply_pr'),
        ('oil.bulk_modulus', 0.0, 'oil.bulk_modulus = 0.0, allowed: [1e+08, 1e+10] Pa'),
        ('oil.preload', 4e7, 'oil: preload = 4e+07 Pa, allowed: from tank_pressure'),
        ('cylinders.0.name', 'Boom', "cylinders have the names ('Boom', 'arm', 'bucket'), all"),
        ('cylinders.2', ..., "cylinders have the names ('boom', 'arm'), allowed: ('boom', 'arm'"),
        ('cylinders', 'three', "cylinders = 'three', allowed: a list"),
        ('cylinders.0.count', 0, 'cylinders[0].count = 0, allowed: [1, 4]'),
        ('cylinders.0.count', 1.5, 'cylinders[0].count = 1.5, allowed: an integer in [1, 4]'),
        ('cylinders.0.rod', 0.12, 'cylinders[0]: rod = 0.12 m, allowed: below bore = 0.12 m'),
        ('cylinders.0.bore', 0.0, 'cylinders[0].bore = 0.0, allowed: [0.001, 10] m'),
        ('cylinders.1.stroke', -1.0, 'cylinders[1].stroke = -1.0, allowed: [0.001, 100] m'),
        ('cylinders.1.viscous', -1.0, 'cylinders[1].viscous = -1.0, allowed: [0, 1e+06] N s/m'),
        ('cylinders.1.dead_length', -0.1, 'cylinders[1].dead_length = -0.1, allowed: [0, 10] m'),
        (
            'cylinders.1.line_volume',
            0.0,
            '[1].line_volume = 0.0, allowed: [1e-09, 1] m^3',
        ),
        (
            'cylinders.1.valve.area',
            0.0,
            '[1].valve.area = 0.0, allowed: [1e-09, 0.01] m^2',
        ),
        ('cylinders.1.valve.dead_band', 1.0, 'cylinders[1].valve.dead_band = 1.0, .. [0, 0.9]'),
        ('cylinders.1.valve.time_constant', 1e-3, 'time_constant = 0.001, allowed: [0.005, 10] s'),
        ('stops.stiffness', 1e5, 'stops.stiffness = 100000.0, allowed: [1e+06, 1e+09] N/m'),
        ('stops.loss', -0.1, 'stops.loss = -0.1, allowed: [0, 10] s/m'),
        ('soil.law', 'mud', "soil.law = 'mud', allowed: zelenin | earthmoving"),
        ('soil.cohesion', -1.0, 'soil.cohesion = -1.0, allowed: [0, 1e+06] Pa'),
        # The printed radius, in millimetres.
        ('soil.sweep_radius', 1448.0, 'soil.sweep_radius = 1448.0, allowed: (0, 10] m'),
        ('poses.0.angles_deg', [0.0], 'poses[0] (dig): pose has 1 angles, allowed: 3'),
        ('poses.0.angles_deg', [20.0, -95.0, 75.0], 'poses[0] (dig): theta_4 (bucket) = 75 deg'),
        ('poses.0.angles_deg', [20.0, -95.0, math.nan], 'poses[0].angles_deg[2] = nan, allowed'),
        ('poses.1.name', 'dig', "poses has the name 'dig' twice, allowed: once"),
        ('poses.1.name', 7, 'poses[1].name = 7, allowed: a text'),
    ],
)
def test_impossible_values(
    tmp_path: Path, content: dict[str, Any], path: str, value: Any, message: str
) -> None:
    put(content, path, value)
    with pytest.raises(InputError, match='^[^\n]*' + pattern(message)) as caught:
        load_content(tmp_path, content)
    assert str(caught.value).startswith(str(tmp_path / 'my_excavator.yaml: '))


@pytest.mark.parametrize(
    ('path', 'value', 'message'),
    [
        # Beyond the stretched and the folded triangle.
        ('cylinders.0.stroke', 1.5, 'cylinders[0] (boom): retracted = 1.81 m with stroke = 1.5 m'),
        ('cylinders.0.retracted', 1.5, 'length of the boom cylinder = 1.5 m, allowed between'),
        ('cylinders.1.retracted', 1.6, 'the arm cylinder = 1.6 m, .. : [1.65409, 3.37809] m'),
        ('cylinders.2.retracted', 1.56, 'the bucket cylinder = 1.56 m, .. : [1.57157, 2.73957] m'),
        ('cylinders.2.stroke', 2.0, 'length of the bucket cylinder = 2.74'),
        ('bucket.llk', 0.01, 'length of the bucket cylinder = 1.577 m, .. : [2.14557, 2.16012] m'),
        ('bucket.llk', 3.0, 'yaml: the bucket linkage closes nowhere with a lever for its cylin'),
        ('bucket.lpk', 3.0, 'yaml: the bucket linkage closes nowhere .. ; look at llk, lpk, ldp'),
        ('arm.lcl', 0.3, 'yaml: the bucket linkage closes nowhere with a lever'),
        ('boom.lab', 1.5, 'cylinders[0] (boom): .. length of the boom cylinder = '),
        ('arm.lcf', 0.3, 'cylinders[1] (arm): .. length of the arm cylinder = '),
    ],
)
def test_strokes_and_linkage_must_fit(
    tmp_path: Path, content: dict[str, Any], path: str, value: float, message: str
) -> None:
    put(content, path, value)
    with pytest.raises(InputError, match=pattern(message)):
        load_content(tmp_path, content)


def test_corners_that_fall_together_are_an_error(tmp_path: Path, content: dict[str, Any]) -> None:
    # P on L at theta_4 = 0: nothing to divide by.
    content['arm'] |= {'beta_5_deg': 0.0, 'lcl': 3.35}
    content['bucket']['beta_8_deg'] = 0.0
    with pytest.raises(InputError, match='does not fit'):
        load_content(tmp_path, content)
