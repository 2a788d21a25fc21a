"""What the package exports; ``__init__.py`` reads it."""

from longreach_crane.c13r import task_scenario as task_scenario
from longreach_crane.machine import Command as Command
from longreach_crane.machine import Crane as Crane
from longreach_crane.parameters import load_machinery as load_machinery
from longreach_crane.scenario import Scenario as Scenario
from longreach_crane.scenario import SetPoint as SetPoint
from longreach_crane.simulation import simulate as simulate
