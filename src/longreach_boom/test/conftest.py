"""Booms to test with: the installed one, any number of its beams, and ones that share nothing."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from longreach_boom.parameters import (
    BeamParameters,
    CylinderParameters,
    Distribution,
    Marker,
    StrainGauge,
    default_file,
    load_boom,
)
from longreach_dynamics.linkages import Linkage
from longreach_machine.poses import Pose

# Tests import what they share from each other.
sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture(scope='session')
def boom():
    """The installed boom file: four beams."""
    return load_boom()


@pytest.fixture(scope='session')
def paper_boom():
    """The installed boom with directional valves alone."""
    return load_boom(default_file().parent / 'boom_paper.yaml')


@pytest.fixture(scope='session')
def resized(boom):
    """Return what makes a boom of any number of beams, of the reach of ``of``, with other ritz."""

    def make(count, of=boom, **ritz):
        last = of.size - 1
        steps = max(1, count - 1)
        kinds = [0, *(max(1, round(i * last / steps)) for i in range(1, count))]
        share = min(1.0, of.size / count)
        beams = tuple(
            of.beams[kind].replace(
                name=f'beam_{i + 1}',
                length=of.beams[kind].length * share,
                support=of.beams[kind].support if i == 0 else 0.0,
            )
            for i, kind in enumerate(kinds)
        )
        cylinders = tuple(
            of.cylinders[kind].replace(name=f'cylinder_{i + 1}') for i, kind in enumerate(kinds)
        )
        return of.replace(
            ritz=of.ritz.replace(**ritz),
            beams=beams,
            cylinders=cylinders,
            poses=(
                Pose('sprawled', (0.0,) * count),
                Pose('site', (70.0, *(-115.0 / steps,) * (count - 1))),
            ),
            markers=tuple(
                Marker(f'marker_{i + 1}', beam.name, beam.length) for i, beam in enumerate(beams)
            ),
        )

    return make


def random_distribution(random, length, low, high):
    """Return a power law or a table with values in an interval."""
    if random.random() < 0.5:
        root, tip = random.uniform(low, high, 2)
        return Distribution(root=root, tip=tip, exponent=random.uniform(0.5, 3.0))
    inner = np.sort(random.uniform(0.1, 0.9, random.integers(0, 3))) * length
    places = [0.0, *inner, length]
    return Distribution(table=tuple((x, random.uniform(low, high)) for x in places))


def random_linkage(random):
    """Return a linkage and a stroke [m] that fits it."""
    if random.random() < 0.5:
        near, far = random.uniform(0.3, 1.0), random.uniform(1.2, 2.5)
        # Never stretched nor folded: there the lever arm is zero.
        retracted = far - 0.8 * near
        linkage = Linkage(
            kind='triangle',
            near=near,
            far=far,
            offset_angle=random.uniform(0.5, 2.0),
            retracted=retracted,
        )
        return linkage, 1.6 * near
    lever, shape = random.uniform(0.2, 1.0), random.uniform(0.0, 0.45)
    low, high = random.uniform(-2.5, -0.5), random.uniform(0.1, 2.5)
    straight = Linkage(kind='rocker', lever=lever, shape=shape, offset=0.0)
    offset = -straight.position(low)
    return straight.replace(offset=offset), straight.position(high) + offset


@pytest.fixture(scope='session')
def random_boom(boom):
    """Return what makes a valid boom at random, so soft that no term hides, with other ritz."""

    def make(random, count, **ritz):
        beams, cylinders = [], []
        for i in range(count):
            length = random.uniform(1.0, 12.0)
            beams.append(
                BeamParameters(
                    name=f'b{i}',
                    length=length,
                    mass_per_length=random_distribution(random, length, 5.0, 500.0),
                    second_moment=random_distribution(random, length, 1e-5, 1e-3),
                    joint_damping=random.uniform(0.0, 1e4),
                    beam_damping=random.uniform(0.0, 1e3),
                    loss_time=random.uniform(0.0, 0.1),
                    strain_gauge=StrainGauge(random.uniform(0.0, length), 0.1, 1e-5),
                    support=random.choice([0.0, random.uniform(0.1, 0.5) * length]),
                )
            )
            linkage, stroke = random_linkage(random)
            bore = random.uniform(0.05, 0.3)
            cylinders.append(
                CylinderParameters(
                    name=f'c{i}',
                    bore=bore,
                    rod=bore * random.uniform(0.3, 0.8),
                    stroke=stroke,
                    dead_length=random.uniform(0.0, 0.1),
                    line_volume=random.uniform(1e-4, 1e-3),
                    linkage=linkage,
                    valve=boom.cylinders[0].valve,
                    friction=boom.cylinders[0].friction,
                )
            )
        return boom.replace(
            gravity=random.uniform(1.0, 20.0),
            youngs_modulus=math.exp(random.uniform(math.log(1e7), math.log(1e10))),
            ritz=boom.ritz.replace(**ritz),
            beams=tuple(beams),
            cylinders=tuple(cylinders),
            poses=(),
            markers=(),
        )

    return make
