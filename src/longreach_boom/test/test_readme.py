"""
The tables of parameters in the package's README are those of the nodes and of the boom file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from longreach_boom.controller_node import ControllerNodeParameters
from longreach_boom.parameters import BoomParameters
from longreach_boom.plant_node import PlantParameters
from longreach_boom.results import columns_of
from longreach_dynamics.parameters import Parameters
from longreach_node.parameters import file_table, table

README = Path(__file__).resolve().parent.parent / 'README.md'


@pytest.mark.parametrize('cls', [PlantParameters, ControllerNodeParameters])
def test_readme_has_the_table_of_a_node(cls: type[Parameters]) -> None:
    assert table(cls) in README.read_text(encoding='utf-8')


def test_readme_has_the_table_of_the_boom_file() -> None:
    expected = file_table(BoomParameters)
    assert expected in README.read_text(encoding='utf-8'), f'the table shall be\n{expected}'


def test_readme_has_the_table_of_the_columns_of_a_csv_file(boom: BoomParameters) -> None:
    expected = columns_of(boom).markdown()
    assert expected in README.read_text(encoding='utf-8'), f'the table shall be\n{expected}'
