"""Excavators to test with: the installed one, and random ones that could be built."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from longreach_excavator.linkage import Linkage
from longreach_excavator.parameters import ExcavatorParameters, default_file, load_excavator


@pytest.fixture(scope='session')
def excavator() -> ExcavatorParameters:
    """The installed excavator file with the thesis' hydraulics."""
    return load_excavator(default_file('thesis'))


@pytest.fixture(scope='session')
def standard() -> ExcavatorParameters:
    """The installed excavator file."""
    return load_excavator()


@pytest.fixture(scope='session')
def random_excavator(excavator: ExcavatorParameters) -> Callable[..., ExcavatorParameters]:
    """
    Return a function that makes an excavator like the installed one, all of it different.

    Lengths by up to 15 %, angles by up to 5 deg, masses, bores and valves by up to 30 %; strokes
    fit the linkage. Poses: random, with all cylinders within their strokes.
    """

    def make(random: np.random.Generator) -> ExcavatorParameters:
        def length(value: float) -> float:
            return value * random.uniform(0.85, 1.15)

        def other(value: float) -> float:
            return value * random.uniform(0.7, 1.3)

        def angle(value: float) -> float:
            return value + random.uniform(-5.0, 5.0)

        while True:
            chassis = excavator.chassis.replace(
                lhe=length(excavator.chassis.lhe), lah=length(excavator.chassis.lah)
            )
            boom, arm, bucket = (
                link.replace(
                    length=length(link.length),
                    mass=other(link.mass),
                    center=other(link.center),
                    center_deg=angle(link.center_deg),
                    inertia=other(link.inertia),
                )
                for link in (excavator.boom, excavator.arm, excavator.bucket)
            )
            boom = boom.replace(
                lab=length(boom.lab),
                lai=length(boom.lai),
                beta_2_deg=angle(boom.beta_2_deg),
                beta_3_deg=angle(boom.beta_3_deg),
            )
            arm = arm.replace(
                lcf=length(arm.lcf),
                lcj=length(arm.lcj),
                lcl=arm.lcl / excavator.arm.length * arm.length,
                beta_5_deg=arm.beta_5_deg + random.uniform(-1.0, 1.0),
                beta_6_deg=angle(arm.beta_6_deg),
                beta_7_deg=angle(arm.beta_7_deg),
            )
            bucket = bucket.replace(
                ldp=length(bucket.ldp),
                llk=length(bucket.llk),
                lpk=length(bucket.lpk),
                beta_8_deg=angle(bucket.beta_8_deg),
            )

            parts = SimpleNamespace(chassis=chassis, boom=boom, arm=arm, bucket=bucket)
            linkage = Linkage(ExcavatorParameters.pins(parts))  # type: ignore[arg-type]
            low, high = np.array(linkage.ranges()).T
            # Bucket linkages lose their lever slowly: most of the turn is of no use.
            low[2] = max(low[2], high[2] - random.uniform(2.5, 3.2))
            share = np.sort(random.uniform([[0.05], [0.7]], [[0.3], [0.95]], (2, 3)), axis=0)
            limits = low + share * (high - low)
            ends = np.sort(linkage.lengths(limits), axis=0)
            cylinders = []
            for k, cylinder in enumerate(excavator.cylinders):
                bore = other(cylinder.bore)
                valve = cylinder.valve
                cylinders.append(
                    cylinder.replace(
                        bore=bore,
                        rod=bore * random.uniform(0.5, 0.8),
                        retracted=float(ends[0, k]),
                        stroke=float(ends[1, k] - ends[0, k]),
                        dead_length=other(cylinder.dead_length),
                        line_volume=other(cylinder.line_volume),
                        viscous=other(cylinder.viscous),
                        valve=valve.replace(
                            area=other(valve.area),
                            area_ratio=other(valve.area_ratio),
                            dead_band=random.uniform(0.0, 0.2),
                            time_constant=other(valve.time_constant),
                        ),
                    )
                )
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
