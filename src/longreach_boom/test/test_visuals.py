"""What is to be seen of a boom, held against the mechanics."""

import itertools

import numpy as np
import pytest
from std_msgs.msg import Header

from longreach_boom.description import half_height
from longreach_boom.kinematics import point_motion
from longreach_boom.nodes import shape_to_message
from longreach_boom.parameters import Distribution, Marker, StrainGauge
from longreach_boom.state import BoomState, StateParts
from longreach_boom.statics import equilibrium
from longreach_boom.strain import strains
from longreach_boom.visuals import YIELD_STRENGTH, BeamShape, marker_positions, shape_of


def some_state(boom, seed):
    """A moving, bent boom."""
    random = np.random.default_rng(seed)
    N, n = boom.size, boom.size * (1 + boom.ritz.functions)
    angles = random.uniform(-1.0, 1.0, N)
    h, pressures = 0.2 * random.normal(size=n - N), random.uniform(2e6, 3e7, 2 * N)
    y = np.concatenate([angles, h, random.normal(size=n), pressures, np.zeros(N)])
    return BoomState(y, np.zeros(N, dtype=np.int64))


@pytest.mark.parametrize('rotation', ['exact', 'printed'])
@pytest.mark.parametrize('count', [1, 2, 4, 5])
def test_shapes_are_the_neutral_lines(resized, count, rotation):
    boom = resized(count, rotation=rotation, functions=1 + count % 3)
    state = some_state(boom, count)
    q = StateParts.of(state.y, boom).q
    shapes = shape_of(boom, state, points=7)
    assert [shape.name for shape in shapes] == [beam.name for beam in boom.beams]
    for i, (shape, beam) in enumerate(zip(shapes, boom.beams, strict=True)):
        places = np.linspace(0.0, beam.length, 7)
        motions = [point_motion(boom, q, 0.0 * q, i, x) for x in places]
        expected = [motion.position for motion in motions]
        # The edges are where the section ends, perpendicular to the neutral line.
        np.testing.assert_allclose(shape.edges.mean(axis=0), expected, rtol=0.0, atol=1e-11)
        up = (shape.edges[1] - shape.edges[0]) / 2.0
        heights = half_height(beam, places)
        np.testing.assert_allclose(np.linalg.norm(up, axis=1), heights, rtol=1e-11)
        # The printed rotation takes a slope for its tangent where a beam is carried.
        if rotation == 'exact':
            angles = [motion.inclination for motion in motions]
            along = np.stack([np.cos(angles), np.sin(angles)], axis=1)
            np.testing.assert_allclose(np.sum(up * along, axis=1), 0.0, atol=1e-11)
        assert 0.0 < shape.side <= heights.max()
    # Each beam begins where the one before ends.
    for inner, outer in itertools.pairwise(shapes):
        ends = outer.edges.mean(axis=0)[0], inner.edges.mean(axis=0)[-1]
        np.testing.assert_allclose(*ends, rtol=0.0, atol=1e-11)


def test_stress_at_a_gauge_is_what_the_gauge_shows(boom):
    beams = tuple(
        beam.replace(strain_gauge=StrainGauge(beam.length / 2.0, beam.strain_gauge.gain, 3e-5))
        for beam in boom.beams
    )
    gauged = boom.replace(beams=beams)
    state = some_state(gauged, 1)
    shown = strains(gauged, state) - 3e-5
    stress = [shape.stress[1] for shape in shape_of(gauged, state, points=3)]
    np.testing.assert_allclose(stress, np.abs(gauged.youngs_modulus * shown), rtol=1e-9)


def test_stress_of_a_level_beam_is_its_bending_moment_over_its_section(resized):
    boom = resized(1)
    # Uniform and clamped, so that the moment is a textbook one: m g (L - x)^2 / 2.
    beam = boom.beams[0].replace(mass_per_length=Distribution(root=200.0, tip=200.0), support=0.0)
    boom = boom.replace(beams=(beam,), markers=())
    rest = equilibrium(boom, np.zeros(1))
    y = np.concatenate([rest.q, np.zeros(rest.q.size + 3)])
    (shape,) = shape_of(boom, BoomState(y, np.zeros(1, dtype=np.int64)), points=30)
    x = np.linspace(0.0, beam.length, 30)
    moment = 200.0 * boom.gravity * (beam.length - x) ** 2 / 2.0
    section = beam.second_moment.at(x, beam.length) / half_height(beam, x)
    np.testing.assert_allclose(shape.stress, moment / section, rtol=1e-6, atol=1e-6 * 1e8)
    assert 1e7 < shape.stress[0] < 1e9


MARKERS = (
    Marker('truck', '', 0.3, -0.5),
    Marker('root', 'beam_1', 0.0, 0.4),
    Marker('elbow', 'beam_2', 3.1, -0.2),
    Marker('tip', 'beam_4', 9.0),
)


@pytest.mark.parametrize('rotation', ['exact', 'printed'])
def test_markers_move_with_their_beams(boom, rotation):
    marked = boom.replace(markers=MARKERS, ritz=boom.ritz.replace(rotation=rotation))
    state = some_state(marked, 2)
    parts = StateParts.of(state.y, marked)
    names, positions, velocities = marker_positions(marked, state)
    assert names == ('truck', 'root', 'elbow', 'tip')
    assert positions.shape == velocities.shape == (4, 3)
    assert np.all(positions[:, 1] == 0.0)
    assert np.all(velocities[:, 1] == 0.0)
    np.testing.assert_array_equal(positions[0], [0.3, 0.0, -0.5])
    np.testing.assert_array_equal(velocities[0], 0.0)
    for row, marker in list(enumerate(MARKERS))[1:]:
        place = marked.beam_index(marker.beam), marker.position, marker.offset
        expected = point_motion(marked, parts.q, parts.v, *place)
        np.testing.assert_allclose(positions[row, ::2], expected.position, rtol=0, atol=1e-11)
        np.testing.assert_allclose(velocities[row, ::2], expected.velocity, rtol=0, atol=1e-10)


def test_shape_is_both_sides_of_each_beam():
    line = np.array([[0.0, 1.0], [2.0, 3.0]])
    up = np.array([0.0, 0.25])
    stress = np.array([0.0, YIELD_STRENGTH])
    shape = BeamShape('beam_1', np.stack([line - up, line + up]), 0.5, stress)
    (drawn,) = shape_to_message([shape], Header(frame_id='boom_base')).markers
    # Two triangles on each side of the beam, which cover 2 m by 0.5 m.
    corners = np.array([[p.x, p.y, p.z] for p in drawn.points]).reshape(4, 3, 3)
    assert (corners[:2, :, 1] < -0.5).all()
    assert (corners[2:, :, 1] > 0.5).all()
    edges = corners[:, 1:] - corners[:, :1]
    assert np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1) / 2.0 == pytest.approx(0.5)
    # Each corner has the colour of its place along the beam.
    for point, colour in zip(drawn.points, drawn.colors, strict=True):
        assert (colour.r, colour.a) == pytest.approx((0.16 if point.x < 1.0 else 0.84, 1.0))
