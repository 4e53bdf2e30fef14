#!/bin/sh
# Finds a Python that is new enough and hands over to setup_venv.py. Plain sh, because an old Python could not even
# read that file to say what is wrong. PYTHON=/path/to/python chooses one.
set -u
here=$(dirname "$0")

new_enough() {
    command -v "$1" >/dev/null 2>&1 && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}

# A sourced ROS 2 is bound to the system's python3; without ROS the newest tested one is looked for too.
if [ -n "${PYTHON:-}" ]; then candidates=$PYTHON
elif [ -n "${ROS_DISTRO:-}" ]; then candidates=python3
else candidates="python3 python3.11 python3.12 python3.13 python3.10"
fi
for python in $candidates; do
    if new_enough "$python"; then exec "$python" "$here/setup_venv.py" "$@"; fi
done
found=$("${PYTHON:-python3}" --version 2>&1) || found="none"
echo "Set-up failed: Python 3.10 or newer is needed and $found was found; install one (Debian, Ubuntu:" \
    "sudo apt install python3 python3-venv python3-dev) or name it, as in: make setup PYTHON=/path/to/python3" >&2
exit 1
