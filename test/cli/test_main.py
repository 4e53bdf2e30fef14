"""The dispatcher of the command line."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lla_fusion_ros.cli import main as cli
from lla_fusion_ros.cli.main import Verb, find_verbs
from lla_fusion_ros.cli.options import join_json_file
from support.processes import RosProcess, child_environment


def make_verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> Verb:
    """A verb in a module of its own, whose `run` has the given body."""
    name = f"verb_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(
        'NAME = "try"\nHELP = "try something"\nEXAMPLE = "lla-fusion try --twice"\n'
        "def add_arguments(parser):\n    parser.add_argument('--twice', action='store_true')\n"
        f"def run(args):\n    {body}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return Verb("try", "try something", "lla-fusion try --twice", name)


def test_help_lists_every_verb_without_importing_torch_numpy_or_ros():
    code = (
        "import sys; from lla_fusion_ros.cli.main import main; assert main(['--help']) == 0; "
        "print('heavy:', sorted({'torch', 'numpy', 'cv2', 'rclpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=child_environment()
    )
    assert done.stdout.endswith("heavy: []\n"), done.stdout + done.stderr
    for verb in find_verbs().values():
        assert f"  {verb.name}" in done.stdout and verb.help in done.stdout


@pytest.mark.parametrize("verb", find_verbs().values(), ids=lambda verb: verb.name)
def test_every_verb_has_help_with_an_example_of_itself(verb, capsys):
    with pytest.raises(SystemExit) as leaving:
        cli.main([verb.name, "--help"])
    assert leaving.value.code == 0
    assert verb.help and f"lla-fusion {verb.name}" in verb.example
    assert "example:" in capsys.readouterr().out


def test_the_module_can_be_run_like_the_command():
    command = [sys.executable, "-m", "lla_fusion_ros", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, env=child_environment())
    assert done.returncode == 0 and done.stdout.startswith("lla-fusion ")


def test_an_unknown_verb_is_answered_with_the_nearest_one(capsys, monkeypatch):
    monkeypatch.setattr(cli, "find_verbs", lambda: {"train": Verb("train", "", "", "")})
    assert cli.main(["trian"]) == 2
    assert "there is no verb 'trian'; did you mean 'train'?" in capsys.readouterr().err


def test_a_verb_near_none_is_answered_with_all_of_them(capsys):
    assert cli.main(["zebra"]) == 2
    assert f"there is no verb 'zebra'; choose one of {', '.join(find_verbs())}" in capsys.readouterr().err


WITH_RESULTS = [verb for verb in find_verbs().values() if verb.name != "completion"]


@pytest.mark.parametrize("verb", WITH_RESULTS, ids=lambda verb: verb.name)
def test_json_is_one_option_with_one_meaning_in_every_verb(verb, tmp_path):
    option = next(action for action in cli.parser_of(verb)._actions if action.dest == "json")
    parser = argparse.ArgumentParser()
    parser._add_action(option)
    for words, place in (
        (["--json"], "-"),
        (["--json", "-"], "-"),
        (["--json", "drive"], "-"),
        (["--json", f"{tmp_path}/x.json"], f"{tmp_path}/x.json"),
        ([], None),
    ):
        assert parser.parse_known_args(join_json_file(words))[0].json == place


def test_no_verb_at_all_prints_the_help_and_fails(capsys):
    assert cli.main([]) == 2
    assert "verbs:" in capsys.readouterr().out


def test_an_error_of_the_package_is_one_sentence_and_exit_code_one(tmp_path, monkeypatch, capsys):
    body = "from lla_fusion_ros.types.errors import BagError; raise BagError(\"bag 'x' is empty\")"
    assert cli.run_verb(make_verb(tmp_path, monkeypatch, body), []) == 1
    assert capsys.readouterr().err == "lla-fusion: try: bag 'x' is empty\n"


def test_a_missing_ros_is_explained(tmp_path, monkeypatch, capsys):
    body = 'raise ModuleNotFoundError("No module named rclpy", name="rclpy")'
    assert cli.run_verb(make_verb(tmp_path, monkeypatch, body), []) == 1
    assert "needs ROS 2" in capsys.readouterr().err


def test_a_mistake_in_the_code_keeps_its_traceback(tmp_path, monkeypatch):
    with pytest.raises(ZeroDivisionError):
        cli.run_verb(make_verb(tmp_path, monkeypatch, "return 1 // 0"), [])


def test_the_exit_code_is_what_the_verb_returns(tmp_path, monkeypatch):
    verb = make_verb(tmp_path, monkeypatch, "return 7 if args.twice else 0")
    assert cli.run_verb(verb, ["--twice"]) == 7
    assert cli.run_verb(verb, []) == 0


def process_source(verb: Verb, folder: Path) -> str:
    """Source of a process that runs the verb as the command line would."""
    return f"""
import sys
sys.path.insert(0, {str(folder)!r})
from lla_fusion_ros.cli.main import Verb, run_verb
sys.exit(run_verb(Verb("try", "", "", {verb.module!r}), []))
"""


def test_ctrl_c_ends_quietly_with_130(tmp_path, monkeypatch):
    verb = make_verb(tmp_path, monkeypatch, 'import time; print("running", flush=True); time.sleep(60)')
    command = [sys.executable, "-c", process_source(verb, tmp_path)]
    process = RosProcess(command, "lla-fusion try", tmp_path / "log", child_environment())
    process.wait_for_log("running\n")
    assert process.stop(signal.SIGINT) == 130
    assert process.log == "running\nlla-fusion: try: interrupted\n"


def test_a_reader_that_closes_the_pipe_early_causes_no_traceback(tmp_path, monkeypatch):
    verb = make_verb(tmp_path, monkeypatch, '[print("line", flush=True) for _ in range(10000)]')
    command = ["sh", "-c", '"$0" -c "$1" | head -n 1', sys.executable, process_source(verb, tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=child_environment())
    assert done.stdout == "line\n"
    assert done.stderr == ""


def test_quiet_and_verbose_may_stand_before_the_verb(monkeypatch, capsys):
    given = []
    monkeypatch.setattr(cli, "run_verb", lambda verb, words: given.append((verb.name, words)) or 0)
    assert cli.main(["-q", "info", "x"]) == cli.main(["--verbose", "info"]) == 0
    assert given == [("info", ["-q", "x"]), ("info", ["--verbose"])]
    assert cli.main(["-q"]) == 2
    assert "-q needs a verb" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "says"), [("--quiet", 0), ("", 1), ("--verbose", 1)])
def test_quiet_says_only_results_and_verbose_tells_where_an_error_arose(
    option, says, tmp_path, monkeypatch, capsys
):
    body = (
        "from lla_fusion_ros.cli.progress import WorkProgress\n"
        "    from lla_fusion_ros.types.errors import InputError\n"
        "    with WorkProgress() as progress: progress._log('at work')\n"
        "    raise InputError('no good')"
    )
    verb = make_verb(tmp_path, monkeypatch, body)
    assert cli.run_verb(verb, [option] if option else []) == 1
    error = capsys.readouterr().err
    assert error.count("at work") == says and "lla-fusion: try: no good" in error
    assert ("Traceback" in error) == (option == "--verbose")
    cli.talk.level = 0
