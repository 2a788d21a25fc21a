"""Scenarios: what they say of loads, valves and poses, and how mistakes are refused."""

import re

import pytest

from longreach_boom.machine import STEP
from longreach_boom.model import Load
from longreach_boom.scenario import Attachment, HangingLoad, Scenario, load_scenario
from longreach_dynamics.errors import InputError
from longreach_machine.trajectories import Waypoint

RELEASE = """
duration: 20.0
pose: site
friction: false
loads:
  - {mass: 90.0}
  - {mass: 12.5, beam: beam_2, position: 3.0}
release: [2.5]
attach:
  - {time: 8.0, mass: 50.0, beam: beam_3, position: 4.0}
valve_commands:
  - {time: 1.0, spools: [0.2, 0.0, 0.0, -1.0]}
  - {time: 1.5, spools: [0.0, 0.0, 0.0, 0.0]}
"""
DRIVE = """
duration: 8.0
pose_deg: [70, -50, -35, -30]
trajectory:
  - {time: 0.0, angles_deg: [70, -50, -35, -30]}
  - {time: 8.0, angles_deg: [60, -45, -30, -20]}
"""


def load_text(tmp_path, text, boom, step=STEP):
    file = tmp_path / 'scenario.yaml'
    file.write_text(text)
    return load_scenario(file, boom, step)


def test_loads_hang_at_the_tip_of_the_last_beam_unless_told(boom):
    assert HangingLoad(90.0).on(boom) == Load(90.0, 3, 9.0)
    assert HangingLoad(90.0, 'beam_2').on(boom) == Load(90.0, 1, 8.6)
    assert HangingLoad(90.0, position=0.0).on(boom) == Load(90.0, 3, 0.0)


def test_load_changes_come_in_the_order_of_time(boom):
    scenario = Scenario(
        duration=10.0,
        pose='site',
        release=(5.0, 1.0),
        attach=(
            Attachment(3.0, time=6.0),
            Attachment(2.0, 'beam_3', 4.0, time=1.0),
            Attachment(1.0, time=0.5),
        ),
    )
    # At the same time: first off, then on.
    assert scenario.load_changes(boom) == (
        (0.5, Load(1.0, 3, 9.0)),
        (1.0, None),
        (1.0, Load(2.0, 2, 4.0)),
        (5.0, None),
        (6.0, Load(3.0, 3, 9.0)),
    )


@pytest.mark.parametrize(
    ('old', 'new', 'message'),
    [
        ('duration: 20.0', 'duration: 20.0005', 'duration = 20.0005 s, allowed: whole steps'),
        ('pose: site', '', 'none of pose, pose_deg given, allowed: one of them'),
        ('pose: site', 'pose: site\npose_deg: [0, 0, 0, 0]', 'pose and pose_deg given'),
        ('pose: site', 'pose_deg: [0, 19, 0, 0]', 'joint beam_2 = 19 deg, allowed by the stroke'),
        ('beam: beam_2', 'beam: jib', "loads[1]: beam = 'jib', allowed: beam_1 | beam_2 | b"),
        ('[2.5]', '[2.5003]', 'release[0] = 2.5003 s, allowed: whole steps of'),
        ('time: 8.0', 'time: 8.0004', 'attach[0].time = 8.0004 s, allowed: whole steps'),
        ('position: 4.0', 'position: 9', 'attach[0]: position = 9 m, allowed: [0, 8.4] m'),
        ('[0.2, 0.0, 0.0, -1.0]', '[0.2, 0.0, 0.0]', 'valve_commands[0].spools has 3 values, a'),
        ('time: 1.5', 'time: 1.0', 'valve_commands[1].time = 1.0 s, allowed: after 1.0 s; s'),
        ('friction: false', 'trajectory: [{time: 0, angles_deg: [0]}]', 'trajectory given'),
        ('[60, -45, ', '[100, -45, ', 'waypoint 1 of the trajectory: angle of joint beam_1 = 100'),
        ('[60, -45, ', '[30, -45, ', '1 of the trajectory: on the way there beam_1 has -'),
    ],
)  # fmt: skip
def test_mistakes_are_refused(old, new, message, tmp_path, boom):
    text = RELEASE if old in RELEASE else DRIVE
    assert old in text
    with pytest.raises(InputError, match=rf'scenario\.yaml: .*{re.escape(message)}'):
        load_text(tmp_path, text.replace(old, new, 1), boom)


def test_another_boom_has_other_beams_and_poses(tmp_path, boom):
    small = boom.replace(beams=boom.beams[:2], cylinders=boom.cylinders[:2], poses=(), markers=())
    with pytest.raises(InputError, match=r"pose = 'site', allowed"):
        load_text(tmp_path, RELEASE, small)
    with pytest.raises(InputError, match=r'pose has 4 values, allowed: 2'):
        load_text(tmp_path, DRIVE, small)
    assert load_text(tmp_path, 'duration: 1\npose_deg: [0, 0]\nloads: [{mass: 1}]', small)


def test_trajectory_begins_at_the_pose(boom):
    later = Scenario(
        duration=9.0, pose='site', trajectory=(Waypoint(8.0, (60.0, -50.0, -35.0, -30.0)),)
    )
    first, second = later.waypoints(boom)
    assert first.time == 0.0
    assert first.angles_deg == pytest.approx((70.0, -50.0, -35.0, -30.0))
    assert second == later.trajectory[0]
    at_once = later.replace(trajectory=(Waypoint(0.0, (60.0, -50.0, -35.0, -30.0)),))
    with pytest.raises(InputError, match=r'trajectory\[0\] is \[60.*within 0.5 deg of the pose'):
        at_once.check_with(boom, STEP)


def test_without_a_step_times_need_not_be_whole_ones(tmp_path, boom):
    """A controller does not know the plant's step."""
    odd = RELEASE.replace('time: 1.5,', 'time: 1.5005,')
    assert load_text(tmp_path, odd, boom, None).valve_commands[1].time == 1.5005
    with pytest.raises(InputError, match=r'valve_commands\[1\]\.time = 1\.5005 s, allowed: whole'):
        load_text(tmp_path, odd, boom)
