"""What the package exports; ``__init__.py`` reads it."""

from longreach_control.benchmark import CONTROLLERS as CONTROLLERS
from longreach_control.benchmark import damping_ratio as damping_ratio
from longreach_control.benchmark import run_case as run_case
from longreach_control.cases import Case as Case
from longreach_control.cases import postures as postures
from longreach_control.controller import DampingController as DampingController
from longreach_control.controller import Measured as Measured
from longreach_control.controller import Wanted as Wanted
from longreach_control.modal import ModalFeedback as ModalFeedback
from longreach_control.plant import Plant as Plant
from longreach_control.plant import Situation as Situation
from longreach_control.predictive import PredictiveControl as PredictiveControl
from longreach_control.pressure import PressureFeedback as PressureFeedback
from longreach_control.shaping import InputShaping as InputShaping
from longreach_control.tip import TipControl as TipControl
