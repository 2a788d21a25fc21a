"""What the package exports; ``__init__.py`` reads it."""

from longreach_boom.identification import BOOM as BOOM
from longreach_boom.machine import AUTOMATIC as AUTOMATIC
from longreach_boom.machine import STEP as STEP
from longreach_boom.measured_runs import measured as measured
from longreach_boom.measured_runs import truth_of as truth_of
from longreach_boom.modes import natural_modes as natural_modes
from longreach_boom.parameters import load_boom as load_boom
from longreach_boom.scenario import HangingLoad as HangingLoad
from longreach_boom.scenario import Scenario as Scenario
from longreach_boom.scenario import load_scenario as load_scenario
from longreach_boom.sensors import default_file as default_file
from longreach_boom.sensors import load_sensors as load_sensors
from longreach_boom.simulation import simulate as simulate
