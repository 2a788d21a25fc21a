"""``render`` and ``simulate``: occluders, and what stays of a run that ends."""

import pytest
from small_commands import FRAMES, call, printed, rendering
from small_rig import small_rig

from longreach_dynamics.tables import read_table
from longreach_vision.commands import vision_commands
from longreach_vision.io import picture_files
from longreach_vision.io.bag_files import read_tracks
from longreach_vision.simulator.camera_simulator import drawn_pictures


def test_the_summary_says_why_a_marker_was_not_tracked(capsys, scene, tmp_path):
    # A bar over all of one in both images for some of the time.
    rig = small_rig()
    bars = []
    for name, mounted in rig.cameras.items():
        u, v = mounted.camera.project(mounted.pose.to_camera((-0.5, 0.0, 0.1)))
        bars.append(
            f'  - {{start: [{u:.1f}, {v - 40:.1f}], end: [{u:.1f}, {v + 40:.1f}], width: 60,'
            f' camera: {name}, appears: 0.1, vanishes: 0.3}}\n'
        )
    look = tmp_path / 'look.yaml'
    look.write_text('clutter: 0\noccluders:\n' + ''.join(bars))
    out = tmp_path / 'out'
    words = ('simulate', scene / 'path.csv', '--rig', scene / 'rig.yaml', '--look', look)
    told = printed(capsys, *words, '--out', out)
    one, two = told['markers']
    assert two['reasons'] == []
    assert one['lost'] == 3
    assert sum(row['images'] for row in one['reasons']) == one['lost'] + one['uncertain']
    counts = [row['images'] for row in one['reasons']]
    assert counts == sorted(counts, reverse=True)
    assert all(row['reason'] for row in one['reasons'])
    # The bag has them, and the table none: it is of numbers.
    recorded = [row['reasons'] for row in read_tracks(out / 'tracks').summary()]
    assert recorded == [one['reasons'], []]
    assert len(read_table(out / 'tracks.csv', gaps=True)['time']) == FRAMES
    capsys.readouterr()
    call(*words)
    text = capsys.readouterr().out
    assert 'not tracked, by reason:' in text
    for row in one['reasons']:
        assert f'  one, {row["images"]} images: {row["reason"]}\n' in text
    # Hidden markers say nothing about left and right.
    assert told['advice'] == ''


# --- what stays of a run that ends ------------------------------------------------------------


@pytest.mark.parametrize('kind', [KeyboardInterrupt, SystemExit])
def test_an_interrupted_run_leaves_nothing(monkeypatch, scene, tmp_path, kind):
    def interrupted(*arguments):
        for number, picture in enumerate(drawn_pictures(*arguments)):
            if number == 9:
                # The bag and the pictures are there, under other names.
                begun = ('.mcap', '.jpg', '.avi', '.png')
                assert [one for one in tmp_path.rglob('*.*') if one.suffix in begun]
                raise kind
            yield picture

    for module in (vision_commands, picture_files):
        monkeypatch.setattr(module, 'drawn_pictures', interrupted)
    path = (scene / 'path.csv', *rendering(scene))
    out, mine = tmp_path / 'new/run', tmp_path / 'mine'
    for words in (
        ('simulate', *path, '--out', out, '--overlay', tmp_path / 'seen'),
        ('simulate', *path, '--overlay', tmp_path / 'seen.avi', '--csv', tmp_path / 'a.csv'),
        ('render', *path, '--out', out),
    ):
        with pytest.raises(kind):
            call(*words)
        assert not list(tmp_path.iterdir())
    mine.mkdir()
    with pytest.raises(kind):
        call('simulate', *path, '--bag', tmp_path / 'bag', '--out', mine, '--csv', '/dev/null')
    assert sorted(path.name for path in tmp_path.rglob('*')) == ['mine']
