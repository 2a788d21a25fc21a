"""The tables of parameters in the package's README are those of nodes and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from longreach_dynamics.parameters import Parameters
from longreach_excavator.columns import COLUMNS
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.plant_node import PlantParameters
from longreach_excavator.scenario import Scenario
from longreach_excavator.teleoperation import TeleoperationParameters
from longreach_node.operator_node import OperatorParameters
from longreach_node.parameters import file_table, table

README = Path(__file__).resolve().parent.parent / 'README.md'


@pytest.mark.parametrize('cls', [PlantParameters, OperatorParameters])
def test_readme_has_the_table_of_a_node(cls: type[Parameters]) -> None:
    assert table(cls) in README.read_text(encoding='utf-8')


@pytest.mark.parametrize('cls', [ExcavatorParameters, Scenario, TeleoperationParameters])
def test_readme_has_the_table_of_a_file(cls: type[Parameters]) -> None:
    expected = file_table(cls)
    assert expected in README.read_text(encoding='utf-8'), f'the table shall be\n{expected}'


def test_readme_has_the_table_of_the_columns_of_a_csv_file() -> None:
    expected = COLUMNS.markdown()
    assert expected in README.read_text(encoding='utf-8'), f'the table shall be\n{expected}'
