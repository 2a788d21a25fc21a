"""Excavators to test with: the installed ones, and random ones that could be built."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from longreach_dynamics.resources import share_directory
from longreach_excavator.linkage import Linkage
from longreach_excavator.machine import STEP
from longreach_excavator.parameters import ExcavatorParameters, default_file, load_excavator
from longreach_excavator.scenario import load_scenario
from longreach_excavator.simulation import simulate


@pytest.fixture(scope='session')
def excavator():
    """The installed excavator file with the thesis' hydraulics."""
    return load_excavator(default_file('thesis'))


@pytest.fixture(scope='session')
def standard():
    return load_excavator()


@pytest.fixture(scope='session')
def realistic():
    return load_excavator(default_file('realistic'))


@pytest.fixture(scope='session')
def cycle(standard):
    """The installed scenario that digs, carries and dumps."""
    file = share_directory('longreach_bringup') / 'config/scenarios/excavator_cycle.yaml'
    return simulate(standard, load_scenario(file, standard, STEP))


POWERS = {'m': 1, 'kg': 3, 'kg m^2': 5, 'm^2': 2, 'm^3': 3, 's': 1, 'N s/m': 2, 'N/m': 1}


@pytest.fixture(scope='session')
def resized():
    """Return a function that makes a machine of the same shape and another size."""

    def scaled(value, factor, unit=''):
        if isinstance(value, tuple):
            return tuple(scaled(item, factor, unit) for item in value)
        if not dataclasses.is_dataclass(value):
            return value * factor ** POWERS[unit] if unit in POWERS else value
        units = {f.name: f.metadata['rule'].unit for f in dataclasses.fields(value)}
        changed = {name: scaled(getattr(value, name), factor, u) for name, u in units.items()}
        return dataclasses.replace(value, **changed)

    return scaled


def varied(part, **changes):
    """Return a part with values changed by functions, one after the other."""
    return part.replace(**{name: change(getattr(part, name)) for name, change in changes.items()})


@pytest.fixture(scope='session')
def random_excavator(excavator):
    """Return what makes an excavator like the installed one, all of it different."""

    def make(random):
        def length(value):
            return value * random.uniform(0.85, 1.15)

        def other(value):
            return value * random.uniform(0.7, 1.3)

        def angle(value):
            return value + random.uniform(-5.0, 5.0)

        while True:
            chassis = varied(excavator.chassis, lhe=length, lah=length)
            kinds = {'length': length, 'mass': other, 'center': other}
            kinds |= {'center_deg': angle, 'inertia': other}
            links = (excavator.boom, excavator.arm, excavator.bucket)
            boom, arm, bucket = (varied(link, **kinds) for link in links)
            boom = varied(boom, lab=length, lai=length, beta_2_deg=angle, beta_3_deg=angle)
            lcl = arm.lcl / excavator.arm.length * arm.length
            arm = varied(arm.replace(lcl=lcl), lcf=length, lcj=length)
            arm = arm.replace(beta_5_deg=arm.beta_5_deg + random.uniform(-1.0, 1.0))
            arm = varied(arm, beta_6_deg=angle, beta_7_deg=angle)
            bucket = varied(bucket, ldp=length, llk=length, lpk=length, beta_8_deg=angle)

            parts = SimpleNamespace(chassis=chassis, boom=boom, arm=arm, bucket=bucket)
            linkage = Linkage(ExcavatorParameters.pins(parts))
            low, high = np.array(linkage.ranges()).T
            # Bucket linkages lose their lever slowly: most of the turn is of no use.
            low[2] = max(low[2], high[2] - random.uniform(2.5, 3.2))
            share = np.sort(random.uniform([[0.05], [0.7]], [[0.3], [0.95]], (2, 3)), axis=0)
            limits = low + share * (high - low)
            ends = np.sort(linkage.lengths(limits), axis=0)
            cylinders = []
            for cylinder, (shortest, longest) in zip(excavator.cylinders, ends.T, strict=True):
                bore = other(cylinder.bore)
                sized = cylinder.replace(
                    bore=bore,
                    rod=bore * random.uniform(0.5, 0.8),
                    retracted=float(shortest),
                    stroke=float(longest - shortest),
                )
                sized = varied(sized, dead_length=other, line_volume=other, viscous=other)
                valve = varied(sized.valve, area=other, area_ratio=other)
                valve = valve.replace(dead_band=random.uniform(0.0, 0.2))
                cylinders.append(sized.replace(valve=varied(valve, time_constant=other)))
            pose = limits[0] + random.uniform(0.02, 0.98, 3) * (limits[1] - limits[0])
            return excavator.replace(
                gravity=random.uniform(1.0, 20.0),
                chassis=chassis,
                boom=boom,
                arm=arm,
                bucket=bucket,
                cylinders=tuple(cylinders),
                poses=({'name': 'random', 'angles_deg': np.degrees(pose).tolist()},),
            )

    return make
