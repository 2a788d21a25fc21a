"""RViz's views and what they show, as files: empty or narrow pictures, impossible bodies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

VIEWS = sorted((Path(__file__).resolve().parent.parent / 'rviz').glob('*.rviz'))


def entries(tree: Any, name: str) -> Iterator[Any]:
    """Yield the values of all keys of some name."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key == name:
                yield value
            yield from entries(value, name)
    elif isinstance(tree, list):
        for item in tree:
            yield from entries(item, name)


@pytest.mark.parametrize('path', VIEWS, ids=lambda path: path.stem)
def test_a_view_works_in_any_namespace_and_leaves_room_for_the_machine(path: Path) -> None:
    view = yaml.safe_load(path.read_text())
    # The Time panel docks left with a width of 1000 pixels.
    assert [panel['Class'] for panel in view['Panels']] == ['rviz_common/Displays']
    geometry = view['Window Geometry']
    assert (geometry['Width'], geometry['Height']) == (1200, 800)
    # RViz reads these into a variable that it does not set otherwise.
    assert (geometry['Hide Left Dock'], geometry['Hide Right Dock']) == (False, False)
    manager = view['Visualization Manager']
    topics = [
        d[k]['Value']
        for d in manager['Displays']
        for k in ('Topic', 'Description Topic')
        if k in d
    ]
    assert 'robot_description' in topics
    assert not [topic for topic in topics if topic.startswith('/')]
    frames = [*entries(view, 'Reference Frame'), *entries(view, 'Target Frame')]
    assert frames
    assert set(frames) == {'<Fixed Frame>'}
    assert set(entries(view, 'TF Prefix')) == {''}


def test_windows_of_a_site_have_different_titles() -> None:
    for path in VIEWS[0].parent.parent.glob('launch/*.launch.xml'):
        for node in ElementTree.parse(path).getroot().iter('node'):
            if node.attrib['exec'] == 'rviz2':
                assert '-t RViz:{NAMESPACE} ' in node.attrib['args']
