"""The tables in the package's README are those of files and columns."""

from pathlib import Path

import pytest

from longreach_dynamics.teleoperation import SticksParameters
from longreach_harvester.control import ControllerParameters
from longreach_harvester.controller_node import ControllerNodeParameters
from longreach_harvester.parameters import HarvesterParameters
from longreach_harvester.plant_node import PlantParameters
from longreach_harvester.scenario import Scenario
from longreach_harvester.sensors import SensorParameters
from longreach_harvester.simulation import (
    COLUMNS,
    HEAD_COLUMNS,
    LOG_COLUMNS,
    PORT_COLUMNS,
    PUMP_COLUMNS,
)
from longreach_node.operator_node import OperatorParameters
from longreach_node.parameters import file_table, table

README = (Path(__file__).resolve().parent.parent / 'README.md').read_text(encoding='utf-8')


@pytest.mark.parametrize('cls', [PlantParameters, ControllerNodeParameters, OperatorParameters])
def test_readme_has_the_table_of_a_node(cls):
    assert table(cls) in README, f'the table shall be\n{table(cls)}'


@pytest.mark.parametrize(
    'cls',
    [HarvesterParameters, Scenario, ControllerParameters, SticksParameters, SensorParameters],
)
def test_readme_has_the_table_of_a_file(cls):
    assert file_table(cls) in README, f'the table shall be\n{file_table(cls)}'


@pytest.mark.parametrize(
    'columns', [COLUMNS, HEAD_COLUMNS, PORT_COLUMNS, PUMP_COLUMNS, LOG_COLUMNS]
)
def test_readme_has_the_table_of_the_columns(columns):
    assert columns.markdown() in README, f'the table shall be\n{columns.markdown()}'
