"""Two computers on one: network namespaces joined by a veth pair, each with own addresses and /dev/shm."""

from __future__ import annotations

import ctypes
import os
import subprocess
from contextlib import ExitStack
from types import TracebackType

from faults.outcome import NotPossible
from support.waiting import wait_for

NETWORK = "10.231.0"
FAR_ADDRESS, OTHER_ADDRESS = f"{NETWORK}.2", f"{NETWORK}.77"
# The far computer's processes find no shared memory of the near one's.
OWN_MEMORY = "mount -t tmpfs -o size=1g tmpfs /dev/shm && echo ready && exec sleep infinity"
_LIBC = ctypes.CDLL(None, use_errno=True)


class Link:
    """Inside the block this thread, and whatever it starts, is on the near computer; `far` is a command that
    starts others on the far one.

    Taking the far interface down leaves the near one without a carrier, as a pulled cable does.
    """

    def __init__(self) -> None:
        self._near, self._far = f"lla_near_{os.getpid()}", f"lla_far_{os.getpid()}"
        self._exits = ExitStack()

    def __enter__(self) -> Link:
        try:
            for name in (self._near, self._far):
                _ip("netns", "add", name)
                self._exits.callback(_ip, "netns", "del", name)
                _ip("-n", name, "link", "set", "lo", "up")
            pair = ("type", "veth", "peer", "name", "eth0", "netns", self._far)
            _ip("link", "add", "eth0", "netns", self._near, *pair)
            _ip("-n", self._near, "addr", "add", f"{NETWORK}.1/24", "dev", "eth0")
            _ip("-n", self._near, "link", "set", "eth0", "up")
            self.set_address(FAR_ADDRESS)
            self.up()
            for name in (
                self._near,
                self._far,
            ):  # a process that starts before would never know the interface
                wait_for(
                    lambda name=name: "state UP" in _ip("-n", name, "link", "show", "eth0"), what="the link"
                )
            self.far = ["nsenter", "--target", str(self._far_computer()), "--net", "--mount"]
            home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
            self._exits.callback(os.close, home)
            near = os.open(f"/run/netns/{self._near}", os.O_RDONLY)
            self._exits.callback(os.close, near)
            _move_to(near)
            self._exits.callback(_move_to, home)
        except BaseException:
            self._exits.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def up(self) -> None:
        _ip("-n", self._far, "link", "set", "eth0", "up")

    def down(self) -> None:
        _ip("-n", self._far, "link", "set", "eth0", "down")

    def set_address(self, address: str) -> None:
        """The far computer's only one, as a DHCP server may change it."""
        _ip("-n", self._far, "addr", "flush", "dev", "eth0")
        _ip("-n", self._far, "addr", "add", f"{address}/24", "dev", "eth0")

    def _far_computer(self) -> int:
        """A process that keeps the far computer's namespaces."""
        command = ["nsenter", f"--net=/run/netns/{self._far}", "unshare", "--mount", "sh", "-c", OWN_MEMORY]
        holder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._exits.callback(holder.wait)
        self._exits.callback(holder.kill)
        assert holder.stdout is not None and holder.stderr is not None
        if holder.stdout.readline() != "ready\n":
            raise NotPossible(f"no second computer on this machine: {holder.stderr.read().strip()}")
        return holder.pid


def _ip(*words: str) -> str:
    try:
        done = subprocess.run(["ip", *words], capture_output=True, text=True)
    except OSError as error:
        raise NotPossible(f"`ip` cannot be run: {error}") from None
    if done.returncode:
        raise NotPossible(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def _move_to(namespace: int) -> None:
    """This thread, to another network namespace (os.setns is new in Python 3.12)."""
    if _LIBC.setns(namespace, 0):
        number = ctypes.get_errno()
        raise NotPossible(f"setns: {os.strerror(number)}")
