"""The tables in the package's README are those of nodes and columns."""

from pathlib import Path

import pytest

from longreach_links.controller_node import ControllerNodeParameters
from longreach_links.plant_node import PlantParameters
from longreach_node.parameters import table
from longreach_symbolic.links import load_links
from longreach_symbolic.simulation import columns_of

README = (Path(__file__).resolve().parent.parent / 'README.md').read_text(encoding='utf-8')


@pytest.mark.parametrize('cls', [PlantParameters, ControllerNodeParameters])
def test_readme_has_the_table_of_a_node(cls):
    assert table(cls) in README, f'the table shall be\n{table(cls)}'


def test_readme_has_the_table_of_the_columns():
    expected = columns_of(load_links()).markdown()
    assert expected in README, f'the table shall be\n{expected}'
