"""What the package exports; ``__init__.py`` reads it."""

from longreach_symbolic.arm import arm_of as arm_of
from longreach_symbolic.arm import linear_terms as linear_terms
from longreach_symbolic.arm import spectral_radius as spectral_radius
from longreach_symbolic.generated import compiled as compiled
from longreach_symbolic.generated import derive as derive
from longreach_symbolic.generated import evaluate as evaluate
from longreach_symbolic.generated import parameter_values as parameter_values
from longreach_symbolic.guidance import Guidance as Guidance
from longreach_symbolic.guidance import Measurement as Measurement
from longreach_symbolic.links import Link as Link
from longreach_symbolic.links import Links as Links
from longreach_symbolic.links import State as State
from longreach_symbolic.links import chord_ends as chord_ends
from longreach_symbolic.links import load_links as load_links
from longreach_symbolic.links import symbolic_model as symbolic_model
from longreach_symbolic.machine import BRAKES as BRAKES
from longreach_symbolic.machine import Controller as Controller
from longreach_symbolic.machine import FlexibleLinks as FlexibleLinks
from longreach_symbolic.machine import Torques as Torques
from longreach_symbolic.machine import joint_names as joint_names
from longreach_symbolic.scenario import Scenario as Scenario
from longreach_symbolic.scenario import load_scenario as load_scenario
from longreach_symbolic.scenario import resting_scenario as resting_scenario
from longreach_symbolic.simulation import LinksRun as LinksRun
from longreach_symbolic.simulation import columns_of as columns_of
from longreach_symbolic.simulation import simulate as simulate
