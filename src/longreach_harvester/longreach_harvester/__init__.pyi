"""What the package exports; ``__init__.py`` reads it."""

from longreach_harvester.control import ControllerParameters as ControllerParameters
from longreach_harvester.machine import Harvester as Harvester
from longreach_harvester.nodes import PlantParameters as PlantParameters
from longreach_harvester.parameters import load_harvester as load_harvester
from longreach_harvester.scenario import Scenario as Scenario
from longreach_harvester.simulation import simulate as simulate
