#!/bin/sh
# Installs the nodes on a computer with a sourced ROS 2, without root and without touching its Python: a virtual
# environment on top of ROS, in it what ROS does not bring, and colcon run by that environment's Python, so that
# `ros2 run` and `ros2 launch` start the nodes with it. From a workspace with this repository under src/:
#
#     sh src/lla_fusion_ros/tools/install.sh && . install/setup.sh
#
# ENGINE   what runs the networks. torch (default): its CPU build, unless there is one already, such as NVIDIA's on
#          a Jetson. cuda: PyPI's build of torch. onnxruntime: no torch at all. none: class_fusion only
# VENV     where the environment goes; fusion_venv in the workspace
# TORCH    pip's options for torch, in the place of --index-url https://download.pytorch.org/whl/cpu
set -eu
ENGINE=${ENGINE:-torch}
root=$(cd "$(dirname "$0")/.." && pwd)
workspace=${root%/src/*}
venv=${VENV:-$workspace/fusion_venv}
python=$venv/bin/python

fail() { echo "Not installed: $1" >&2; exit 1; }
has() { "$python" -c "import $1" 2>/dev/null; }
pip() { "$python" -m pip install --quiet --disable-pip-version-check --constraint "$venv/constraints.txt" "$@"; }

case ${ROS_DISTRO:-} in
    humble | jazzy | kilted | lyrical | rolling) ;;
    "") fail "no ROS 2 is sourced; try \`. /opt/ros/jazzy/setup.sh\` first" ;;
    *) fail "ROS 2 $ROS_DISTRO is not known to work; Humble, Jazzy, Kilted, Lyrical and Rolling are" ;;
esac
case $ENGINE in torch | cuda | onnxruntime | none) ;; *) fail "ENGINE=$ENGINE is not torch, cuda, onnxruntime or none" ;; esac
[ "$workspace" != "$root" ] || fail "$root is not under src/ of a workspace; clone it into WORKSPACE/src"
python3 -c "import vision_msgs.msg" 2>/dev/null || fail "vision_msgs is missing: sudo apt install ros-$ROS_DISTRO-vision-msgs"
python3 -m venv --system-site-packages "$venv" || fail "Python's venv is missing: sudo apt install python3-venv"
touch "$venv/COLCON_IGNORE"

echo "ROS 2 $ROS_DISTRO, $("$python" --version), packages into $venv"
# ROS's messages were compiled with this numpy
"$python" -c "import numpy; print(f'numpy=={numpy.__version__}')" >"$venv/constraints.txt"
has cv2 || pip opencv-python-headless
has scipy || pip scipy
has yaml || pip PyYAML
has safetensors || pip safetensors
has setuptools || pip "setuptools<80"
has colcon_core || pip colcon-ros colcon-package-selection
case $ENGINE in
    torch | cuda)
        if has torch; then
            echo "torch $("$python" -c "import torch; print(torch.__version__)") is here already and is used"
        elif [ -e /etc/nv_tegra_release ]; then
            fail "on a Jetson install NVIDIA's torch for your JetPack first, or use ENGINE=onnxruntime"
        elif [ "$ENGINE" = cuda ]; then
            pip torch
        else
            # shellcheck disable=SC2086
            pip ${TORCH---index-url https://download.pytorch.org/whl/cpu} torch
        fi
        "$python" -c "import torch, sys; sys.exit(tuple(map(int, torch.__version__.split('.')[:2])) < (2, 1))" ||
            fail "this torch is older than 2.1; remove it, or use ENGINE=onnxruntime"
        ;;
    onnxruntime) has onnxruntime || pip onnxruntime ;;
    none) ;;
esac

cd "$workspace"
"$python" -m colcon build --packages-select lla_fusion_ros
echo "Installed. Next:  . $workspace/install/setup.sh && ros2 launch lla_fusion_ros fusion.launch.py model:=gtsrb cameras:=front"
