"""What the package exports; ``__init__.py`` reads it."""

from longreach_excavator.cohesion import fit_cohesion as fit_cohesion
from longreach_excavator.measurements import read_measurements as read_measurements
from longreach_excavator.parameters import load_excavator as load_excavator
from longreach_excavator.scenario import dig_scenario as dig_scenario
from longreach_excavator.scenario import load_scenario as load_scenario
from longreach_excavator.simulation import simulate as simulate
