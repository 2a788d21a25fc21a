"""What the package exports; ``__init__.py`` reads it."""

from longreach_symbolic.generated import compiled as compiled
from longreach_symbolic.generated import derive as derive
from longreach_symbolic.generated import evaluate as evaluate
from longreach_symbolic.generated import parameter_values as parameter_values
from longreach_symbolic.links import Link as Link
from longreach_symbolic.links import Links as Links
from longreach_symbolic.links import State as State
from longreach_symbolic.links import load_links as load_links
from longreach_symbolic.links import symbolic_model as symbolic_model
from longreach_symbolic.machine import FlexibleLinks as FlexibleLinks
from longreach_symbolic.scenario import Scenario as Scenario
from longreach_symbolic.scenario import load_scenario as load_scenario
from longreach_symbolic.simulation import simulate as simulate
