"""What the package exports; ``__init__.py`` reads it."""

from longreach_node.clock import LivingClock as LivingClock
from longreach_node.clock import steady_clock as steady_clock
from longreach_node.conversions import finite_values as finite_values
from longreach_node.conversions import hydraulic_state as hydraulic_state
from longreach_node.conversions import joint_values as joint_values
from longreach_node.conversions import spools_from_message as spools_from_message
from longreach_node.conversions import values_from_command as values_from_command
from longreach_node.cycle_node import CycleNode as CycleNode
from longreach_node.entry import machine_node as machine_node
from longreach_node.entry import node_entry as node_entry
from longreach_node.frames import FrameParameters as FrameParameters
from longreach_node.frames import Transforms as Transforms
from longreach_node.frames import frame_name as frame_name
from longreach_node.frames import header_at as header_at
from longreach_node.frames import optional_message as optional_message
from longreach_node.markers import BLUE as BLUE
from longreach_node.markers import BROWN as BROWN
from longreach_node.markers import GREY as GREY
from longreach_node.markers import RED as RED
from longreach_node.markers import arrow_marker as arrow_marker
from longreach_node.markers import line_marker as line_marker
from longreach_node.markers import sphere_marker as sphere_marker
from longreach_node.markers import triangles_marker as triangles_marker
from longreach_node.parameters import declare as declare
from longreach_node.plant_node import PlantNode as PlantNode
from longreach_node.remote import command_valves as command_valves
from longreach_node.remote import send_trajectory as send_trajectory
from longreach_node.remote_drive import Driver as Driver
from longreach_node.remote_drive import Row as Row
from longreach_node.simulator_parameters import CycleParameters as CycleParameters
from longreach_node.simulator_parameters import DrawingParameters as DrawingParameters
from longreach_node.simulator_parameters import MachineParameters as MachineParameters
from longreach_node.simulator_parameters import SimulatorParameters as SimulatorParameters
from longreach_node.stamps import nanoseconds_of as nanoseconds_of
from longreach_node.stamps import seconds_to_nanoseconds as seconds_to_nanoseconds
from longreach_node.stamps import stamp_of as stamp_of
from longreach_node.trajectory_controller import (
    TrajectoryControllerNode as TrajectoryControllerNode,
)
