"""What the package exports; ``__init__.py`` reads it."""

from longreach_identification.dynamics import Settings as Settings
from longreach_identification.dynamics import identify as identify
from longreach_identification.machine import FreeParameter as FreeParameter
from longreach_identification.machine import Identifiable as Identifiable
from longreach_identification.machine import MeasuredSignal as MeasuredSignal
from longreach_identification.machine import Recording as Recording
from longreach_identification.machine import Signal as Signal
from longreach_identification.recordings import column_map as column_map
from longreach_identification.recordings import read_csv as read_csv
from longreach_identification.statics import Nuisance as Nuisance
from longreach_identification.statics import StaticPose as StaticPose
from longreach_identification.statics import identify_statics as identify_statics
from longreach_identification.statics import still_poses as still_poses
from longreach_identification.stillness import Mean as Mean
from longreach_identification.stillness import Motion as Motion
from longreach_identification.stillness import StillStretch as StillStretch
