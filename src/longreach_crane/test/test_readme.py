"""
The tables of parameters in the package's README are those of the nodes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from longreach_crane.controller_node import ControllerNodeParameters
from longreach_crane.markers_node import MarkersParameters
from longreach_crane.parameters import CraneParameters
from longreach_crane.plant_node import PlantParameters
from longreach_crane.results import columns_of
from longreach_dynamics.parameters import Parameters
from longreach_node.parameters import table

README = Path(__file__).resolve().parent.parent / 'README.md'


@pytest.mark.parametrize('cls', [PlantParameters, ControllerNodeParameters, MarkersParameters])
def test_readme_has_the_table_of_a_node(cls: type[Parameters]) -> None:
    assert table(cls) in README.read_text(encoding='utf-8')


def test_readme_has_the_table_of_the_columns_of_a_csv_file(crane: CraneParameters) -> None:
    expected = columns_of(crane).markdown()
    assert expected in README.read_text(encoding='utf-8'), f'the table shall be\n{expected}'
