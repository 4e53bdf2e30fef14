"""Progress: a bar on a terminal, lines in a log."""

from lla_fusion_ros.calibration.workload import CHOICE, SCORES, WARNINGS, StageWork, Workload
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


def seconds_left(line):
    minutes, _, seconds = line.rpartition("about ")[2].removesuffix(" s left").rpartition(" min ")
    return 60 * int(minutes or 0) + int(seconds)


def test_the_time_left_covers_calibration_and_goes_on_within_its_stages(capsys, monkeypatch):
    now = iter(range(0, 100000, 5)).__next__  # every look at the clock is five seconds later
    monkeypatch.setattr("time.monotonic", now)
    stages = {CHOICE: StageWork(fits=7), WARNINGS: StageWork(crops=100_000), SCORES: StageWork(crops=1000)}
    work = Workload(stages, networks=2, logits=1_000_000)
    with TrainingProgress() as progress:
        progress.expect(work, trained_crops=5000)
        for step in range(1, 11):
            progress.report(Progress(0, 1, 1, step, 10, 1.25, 0.5, last_of_epoch=step == 10))
        for done in range(0, 100_000, 10_000):
            progress.stage(WARNINGS, done, 100_000)
        progress.stage(SCORES, 1000, 1000)
    trained, *calibrated = [line for line in capsys.readouterr().err.splitlines() if "left" in line]
    assert "epoch 1/1" in trained and seconds_left(trained) > 60, "nothing of calibration is done yet"
    assert len(calibrated) >= 5 and "warning models: 20000 of 100000" in " ".join(calibrated)
    left = [seconds_left(line) for line in calibrated]
    assert left == sorted(left, reverse=True) and left[-1] == 0


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
