"""What the package exports; ``__init__.py`` reads it."""

from longreach_dynamics.hydraulics.actuators import Actuators as Actuators
from longreach_dynamics.hydraulics.actuators import actuator_rates as actuator_rates
from longreach_dynamics.hydraulics.actuators import actuators_of as actuators_of
from longreach_dynamics.hydraulics.actuators import port_flows as port_flows
from longreach_dynamics.hydraulics.actuators import rail_pressure as rail_pressure
from longreach_dynamics.hydraulics.actuators import spool_flows as spool_flows
from longreach_dynamics.hydraulics.friction import stop_force as stop_force
from longreach_dynamics.hydraulics.inverse import STABILITY as STABILITY
from longreach_dynamics.hydraulics.inverse import counterbalance_rates as counterbalance_rates
from longreach_dynamics.hydraulics.inverse import fastest_pistons as fastest_pistons
from longreach_dynamics.hydraulics.inverse import holding_pressures as holding_pressures
from longreach_dynamics.hydraulics.inverse import oil_stiffness as oil_stiffness
from longreach_dynamics.hydraulics.inverse import port_rates as port_rates
from longreach_dynamics.hydraulics.inverse import smallest_volumes as smallest_volumes
from longreach_dynamics.hydraulics.inverse import spool_positions as spool_positions
from longreach_dynamics.hydraulics.inverse import spool_rates as spool_rates
from longreach_dynamics.hydraulics.parameters import (
    CounterbalanceParameters as CounterbalanceParameters,
)
from longreach_dynamics.hydraulics.parameters import Cylinder as Cylinder
from longreach_dynamics.hydraulics.parameters import HoseParameters as HoseParameters
from longreach_dynamics.hydraulics.parameters import MakeUpParameters as MakeUpParameters
from longreach_dynamics.hydraulics.parameters import OilParameters as OilParameters
from longreach_dynamics.hydraulics.parameters import PumpParameters as PumpParameters
from longreach_dynamics.hydraulics.parameters import ReliefParameters as ReliefParameters
from longreach_dynamics.hydraulics.parameters import StopParameters as StopParameters
from longreach_dynamics.hydraulics.parameters import ValveParameters as ValveParameters
from longreach_dynamics.hydraulics.valves import chamber_pressure as chamber_pressure
from longreach_dynamics.hydraulics.valves import oil_share as oil_share
from longreach_dynamics.hydraulics.valves import pilot_opening as pilot_opening
from longreach_dynamics.hydraulics.valves import pressure_rates as pressure_rates
from longreach_dynamics.hydraulics.valves import signed_root as signed_root
from longreach_dynamics.hydraulics.valves import valve_flows as valve_flows
from longreach_dynamics.hydraulics.valves import valve_opening as valve_opening
