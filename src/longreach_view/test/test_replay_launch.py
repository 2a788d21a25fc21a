"""Recordings of the shipped launch files show stress, bent shape and forces."""

from __future__ import annotations

import numpy as np
import pytest
from rclpy.serialization import serialize_message
from std_msgs.msg import Header

from longreach_boom.machine import STEP, Boom
from longreach_boom.nodes import shape_to_message
from longreach_boom.parameters import load_boom
from longreach_boom.scenario import load_scenario
from longreach_boom.visuals import shape_of
from longreach_dynamics.resources import share_directory
from longreach_machine.machine import BY_SCENARIO
from longreach_machine.markers import read_markers
from longreach_tools.fields import numeric_fields
from longreach_tools.testing import launch
from longreach_view.drawing import ARROW, TRIANGLE_LIST
from longreach_view.page import Request
from longreach_view.recording import BagSource
from longreach_view.world import World

DURATION = 0.7


def markers_at(bag, topic, times):
    """Return the markers that a drawing shows at some times of a replay [s]."""
    source, world = BagSource([bag]), World(numeric_fields)
    found = []
    for time in times:
        # A hair later: times of a replay are rounded.
        source.handle(Request('', 'seek', time + 1e-6))
        source.poll(world, 0.0)
        machine = world.machines[topic.split('/')[1]]
        found.append(machine.drawings[topic].markers())
        assert not machine.problem
    return found


def together(markers, part):
    """Return the points, or their colours, of markers of triangles."""
    return np.concatenate([getattr(m, part) for m in markers if m.kind == TRIANGLE_LIST])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('words', [(), ('lockstep:=true',)])
def test_a_replayed_boom_has_its_bent_shape_and_stress(tmp_path, words):
    fast = ('real_time_factor:=0.0', f'duration:={DURATION}', 'record:=bag', *words)
    with launch('boom', tmp_path, 'scenario:=load_release', *fast) as running:
        assert running.wait() == 0, running.text()
    shown = markers_at(tmp_path / 'bag', '/boom/shape', (0.0, DURATION))
    boom = load_boom()
    directory = share_directory('longreach_bringup') / 'config' / 'scenarios'
    machine = Boom(boom, load_scenario(directory / 'boom_load_release.yaml', boom, STEP), STEP)
    state, time = machine.initial_state(), 0.0
    for markers, end in zip(shown, (0.0, DURATION), strict=True):
        while time < end - 1e-9:
            state = machine.advance(state, BY_SCENARIO, time, STEP)
            time += STEP
        shapes = shape_of(boom, state, 12)
        drawn = shape_to_message(shapes, Header())
        triangles = read_markers(serialize_message(drawn)).markers
        expected = np.concatenate([m.points for m in triangles])
        np.testing.assert_allclose(together(markers, 'points'), expected, atol=1e-9)
        colors = np.concatenate([m.colors for m in triangles])
        np.testing.assert_allclose(together(markers, 'colors'), colors, atol=1e-6)
    # The load is released: the boom swings, and its stress falls.
    points, colors = (
        np.abs(np.subtract(*(together(markers, part) for markers in shown))).max()
        for part in ('points', 'colors')
    )
    assert points > 0.02
    assert colors > 0.04


@pytest.mark.slow
def test_a_replayed_excavator_has_its_forces(tmp_path):
    fast = ('real_time_factor:=0.0', f'duration:={DURATION}', 'record:=bag')
    with launch('excavator', tmp_path, *fast) as running:
        assert running.wait() == 0, running.text()
    begin, end = markers_at(tmp_path / 'bag', '/excavator/forces', (0.0, DURATION))
    first, last = ([m.points for m in found if m.kind == ARROW][:3] for found in (begin, end))
    assert len(first) == 3
    assert np.abs(np.subtract(last, first)).max() > 0.01
