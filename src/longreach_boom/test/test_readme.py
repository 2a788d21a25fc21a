"""
The tables of parameters in the package's README are those of the nodes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from longreach_boom.controller_node import ControllerNodeParameters
from longreach_boom.plant_node import PlantParameters
from longreach_dynamics.parameters import Parameters
from longreach_node.parameters import table

README = Path(__file__).resolve().parent.parent / 'README.md'


@pytest.mark.parametrize('cls', [PlantParameters, ControllerNodeParameters])
def test_readme_has_the_table_of_a_node(cls: type[Parameters]) -> None:
    assert table(cls) in README.read_text(encoding='utf-8')
