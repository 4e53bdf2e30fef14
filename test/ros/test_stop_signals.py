"""Signals that strike where nobody expects them: the process ends, without a word."""

from __future__ import annotations

import pytest

# An object file of C reads its tables in code that swallows exceptions and prints them.
IN_C = """
import os, signal, sys
from scipy.stats import qmc
from lla_fusion_ros.ros.stop_signals import STOP

def strike(frame, event, argument):
    if frame.f_code.co_name == "read_array":
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGTERM)

STOP.install()
try:
    with STOP.interrupts():
        sys.setprofile(strike)
        qmc.Sobol(2)
        print("went on")
except KeyboardInterrupt:
    print("ended")
"""
IN_A_DESTRUCTOR = """
import os, signal
from lla_fusion_ros.ros.stop_signals import STOP

class Freed:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

STOP.install()
try:
    with STOP.interrupts():
        freed = Freed()
        del freed
        print("went on")
except KeyboardInterrupt:
    print("ended")
"""
BEFORE_ROS = """
import os, signal
import rclpy
from lla_fusion_ros.ros.process_life import begin
from lla_fusion_ros.ros.stop_signals import STOP

STOP.install()
os.kill(os.getpid(), signal.SIGINT)
begin()
print("went on")
print("spins for ever" if rclpy.ok() else "ended")
"""


@pytest.mark.parametrize("source", [IN_C, IN_A_DESTRUCTOR, BEFORE_ROS], ids=["C", "destructor", "before ROS"])
def test_a_signal_is_neither_lost_nor_told_where_it_strikes_at_an_odd_moment(ros_process, source):
    process = ros_process(source)
    assert process.wait() == 0, process.log
    assert process.log.split("\n") == ["went on", "ended", ""], process.log
