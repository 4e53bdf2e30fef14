"""Progress: a bar on a terminal, lines in a log."""

from lla_fusion_ros.cli.training_progress import TrainingProgress
from lla_fusion_ros.cli.work_progress import WorkProgress
from lla_fusion_ros.training.train import Progress


def test_a_log_gets_one_line_per_epoch_with_the_time_left(capsys):
    with TrainingProgress() as progress:
        progress.stage("loading toys")
        progress.tracks(3, 10)
        progress.report(Progress(0, 1, 2, 5, 20, 1.25, 0.5, last_of_epoch=False))
        progress.report(Progress(0, 1, 2, 10, 20, 1.25, 0.5, last_of_epoch=True))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].endswith("loading toys")
    assert "network 1, epoch 1/2: loss 1.250  accuracy 0.500" in lines[1] and lines[1].endswith("s left")


def test_a_terminal_gets_a_bar_that_says_what_is_done(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with WorkProgress() as progress:
        progress.tracks(3, 10)
        progress.crops_expected(100)
        progress.crops(40)
        progress.part("fusers", 2, 7)
    shown = capsys.readouterr().err
    assert "fusers" in shown and "2/7" in shown


def test_a_log_is_spared_the_steps_in_between(capsys):
    with WorkProgress() as progress:
        for _ in range(1000):
            progress.crops(1)
    assert capsys.readouterr().err == ""
