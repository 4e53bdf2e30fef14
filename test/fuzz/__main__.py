"""Fuzzes every parser of bytes from outside with atheris (libFuzzer), a bounded time each.

The targets are those of test/fuzz/targets.py, which `make test` runs under hypothesis. atheris is installed
into a virtual environment of its own, outside the repository, that sees the packages of this one. What is
found is kept; move the smallest such file to test/fuzz/corpus/<target>/ with the repair, and `make test`
replays it for ever.

example: make fuzz SECONDS=60 ARGS="detections bag_mcap"
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

ATHERIS = "atheris==3.0.0"
REPOSITORY = Path(__file__).resolve().parents[2]
RUN = REPOSITORY / "test" / "fuzz" / "atheris_run.py"
SLOWEST_INPUT = 10  # seconds; longer is a hang
MOST_MEMORY = 2000  # MB; more is a bomb that went off
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}


@dataclass(frozen=True)
class Outcome:
    """What fuzzing one target gave."""

    target: str
    runs: int
    coverage: int
    finds: list[Path]
    ended_well: bool
    story: str


def set_up(place: Path) -> Path:
    """The Python that has atheris, made where it is not there yet."""
    python = place / "bin" / "python"
    done = place / "installed"
    if not done.exists() or done.read_text() != ATHERIS:
        venv.create(place, with_pip=True, clear=True)
        site = subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        (Path(site) / "this_environment.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", ATHERIS], check=True)
        done.write_text(ATHERIS)
    return python


def target_names(python: Path) -> list[str]:
    code = "from fuzz.targets import TARGETS; print(*TARGETS)"
    listed = subprocess.run(
        [python, "-c", code], check=True, capture_output=True, text=True, env=_environment()
    )
    return listed.stdout.split()


def fuzz(python: Path, target: str, seconds: int, cache: Path) -> Outcome:
    """Run one target for its time, on the seeds, the old finds and what earlier runs have learnt."""
    corpus, finds = cache / "corpus" / target, cache / "finds" / target
    for folder in (corpus, finds):
        folder.mkdir(parents=True, exist_ok=True)
    kept = REPOSITORY / "test" / "fuzz" / "corpus" / target
    before = set(finds.iterdir())
    command = [
        str(python),
        str(RUN),
        target,
        str(finds),
        str(corpus),
        f"-max_total_time={seconds}",
        f"-timeout={SLOWEST_INPUT}",
        f"-rss_limit_mb={MOST_MEMORY}",
        "-max_len=20000",
        "-print_final_stats=1",
        f"-artifact_prefix={finds}/",
        *([str(kept)] if kept.is_dir() else []),
    ]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=_environment())
    story = done.stdout + done.stderr
    runs = re.findall(r"stat::number_of_executed_units:\s+(\d+)", story)
    coverage = re.findall(r"cov: (\d+)", story)
    return Outcome(
        target=target,
        runs=int(runs[-1]) if runs else 0,
        coverage=int(coverage[-1]) if coverage else 0,
        finds=sorted(set(finds.iterdir()) - before),
        ended_well=done.returncode == 0,
        story=story,
    )


def _environment() -> dict[str, str]:
    paths = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "test")])
    return {**os.environ, **ENVIRONMENT, "PYTHONPATH": paths}


def _why(story: str) -> str:
    """The lines of libFuzzer's output that tell what happened."""
    told = story.partition("=== Uncaught Python exception: ===")[2] or story
    noise = ("INFO:", "WARNING:", "#")  # what libFuzzer tells of itself
    lines = [line for line in told.strip().splitlines() if not line.startswith(noise)]
    return "\n".join(lines[:40])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", help="default: all")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default 60)")
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lla_fusion_ros" / "fuzz"
    parser.add_argument("--cache", type=Path, default=default, help=f"default {default}")
    args = parser.parse_args()
    try:
        python = set_up(args.cache / "atheris")
        known = target_names(python)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"fuzz: atheris cannot be set up: {error}", file=sys.stderr)
        return 2
    unknown = sorted(set(args.targets) - set(known))
    if unknown:
        print(f"fuzz: unknown targets {', '.join(unknown)}; there are {', '.join(known)}")
        return 2
    bad = 0
    for number, target in enumerate(args.targets or known, start=1):
        print(f"[{number}/{len(args.targets or known)}] {target} … ", end="", flush=True)
        outcome = fuzz(python, target, args.seconds, args.cache)
        print(f"{outcome.runs} inputs, coverage {outcome.coverage}, {len(outcome.finds)} finds")
        if outcome.finds or not outcome.ended_well:
            bad += 1
            print(_why(outcome.story))
            print(*(f"kept: {file}" for file in outcome.finds), sep="\n")
    return 1 if bad else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
