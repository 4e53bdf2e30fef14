"""Inject every fault into real nodes while a drive plays, and tell what came out.

Example:
    make faults                                         # all faults, once
    make faults ARGS="--runs 3 --json docs/results/faults.json"
    make faults ARGS="--only bursts duplicates"
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.machine import machine
from faults.campaign import run_campaign
from faults.outcome import ALWAYS, Outcome
from faults.registry import Fault, all_faults
from lla_fusion_ros import __version__


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1, help="consecutive runs (default 1)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these faults; --list names them")
    parser.add_argument("--bounded", action="store_true", help="only the part that `make test` runs")
    parser.add_argument("--json", type=Path, help="write the result here")
    parser.add_argument("--list", action="store_true", help="say what the faults are and what must happen")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    unknown = set(options.only or ()) - {fault.name for fault in all_faults()}
    if unknown:
        parser.error(f"no fault is called {', '.join(sorted(unknown))}; see --list")
    return options


def document(faults: list[Fault], outcomes: list[list[Outcome]]) -> dict[str, Any]:
    """The result of all runs, by fault."""
    return {
        "version": __version__,
        "machine": machine(),
        "runs": len(outcomes),
        "always": list(ALWAYS),
        "faults": [
            {
                "name": fault.name,
                "injects": fault.injects,
                "expects": fault.expects,
                "runs": [found.record() for run in outcomes for found in run if found.name == fault.name],
            }
            for fault in faults
        ],
    }


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    faults = [
        fault
        for fault in all_faults()
        if (not options.only or fault.name in options.only) and (fault.bounded or not options.bounded)
    ]
    console = Console(highlight=False)
    if options.list:
        for fault in faults:
            console.print(f"{fault.name:28} {fault.injects}: {fault.expects}", soft_wrap=True)
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the nodes end with us, whoever ends us
    outcomes: list[list[Outcome]] = []
    begun = time.monotonic()
    try:
        for number in range(options.runs):
            console.print(f"run {number + 1} of {options.runs}: {len(faults)} faults")
            outcomes.append([])
            share = 0.2 if options.bounded else 1.0
            with console.status("starting") as status:

                def tell(fault: Fault, status: Any = status) -> None:
                    status.update(f"{fault.name}: {fault.injects}")

                for found in run_campaign(faults, tell, share):
                    outcomes[-1].append(found)
                    console.print(f"  {_line(found)}", soft_wrap=True)
    except KeyboardInterrupt:
        console.print("\nstopped; all processes have been ended")
        return 130
    if options.json:
        options.json.write_text(json.dumps(document(faults, outcomes), indent=1, ensure_ascii=False) + "\n")
    bad = sum(not found.good for run in outcomes for found in run)
    injected = sum(found.injected for run in outcomes for found in run)
    seconds = time.monotonic() - begun
    console.print(f"{injected} faults injected, {bad} unexplained failures, {seconds:.0f} s")
    return 1 if bad else 0


def _line(found: Outcome) -> str:
    if found.not_possible:
        return f"{found.name:28} not possible here: {found.not_possible}"
    state = "held" if found.good else "FAILED: " + "; ".join(found.failures)
    if found.recovery is not None:
        state = f"answers after {found.recovery:.2f} s, {state}"
    return (
        f"{found.name:28} x{found.injected:<6} {found.checks:4} checks {found.growth_mb:6.1f} MB "
        f"{found.seconds:5.1f} s  {state}"
    )


if __name__ == "__main__":
    sys.exit(main())
