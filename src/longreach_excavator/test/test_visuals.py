"""Forces and soil as they are seen, held against the mechanics."""

from longreach_excavator.kinematics import pin_places
from longreach_excavator.machine import Excavator
from longreach_excavator.scenario import dig_scenario
from longreach_excavator.visuals import force_arrows


def test_arrows_start_at_pins_and_a_metre_is_fifty_kilonewtons(standard):
    machine = Excavator(standard, dig_scenario())
    state = machine.initial_state()
    observed = machine.observed(state)
    arrows = force_arrows(standard, state.y, observed)
    starts = [start for start, _ in arrows.values()]
    assert starts == pin_places(standard, state.y[:3]).tolist()
    links = (standard.boom, standard.arm, standard.bucket)
    # At rest the bucket's joint and its rod PK carry the bucket; the boom's foot and its cylinder
    # all.
    for arrow, part, carried in (('bucket_arm', 'pk', links[2:]), ('boom_chassis', 'boom', links)):
        weight = standard.gravity * sum(link.mass for link in carried)
        held = 50e3 * arrows[arrow][1] + complex(observed[f'{part}_x'], observed[f'{part}_z'])
        assert abs(held - 1j * weight) < 1e-6 * weight
