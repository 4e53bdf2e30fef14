"""Build of the package, for colcon (`ament_python`) and for pip. Pinned versions: constraints.txt."""

import re
import sys
from glob import glob
from pathlib import Path

from setuptools import find_packages, setup

NAME = "lla_fusion_ros"
VERSION = re.search(r'__version__ = "(.+?)"', Path(NAME, "__init__.py").read_text()).group(1)

# What the nodes do without; a verb of lla-fusion that misses one says which extra to install.
BAGS = ["rich>=11", "rosbags>=0.11"]  # info, replay, make-bag, demo, bag_player
FLEET = ["dask>=2024.1", "distributed>=2024.1", "pyarrow>=14"]  # replay of many bags, compare
WATCH = ["rich>=11", "rerun-sdk>=0.30"]  # recordings for Rerun, of watch and replay
TORCH = ["torch>=2.1"]  # networks on a vehicle, and all work on networks
LAB = [*TORCH, "matplotlib>=3.5", "rich>=11"]  # train, evaluate, reproduce
ONNX = ["onnxruntime>=1.16"]  # a vehicle whose bundle holds ONNX graphs
ONNX_TOOLS = [*ONNX, *LAB, "onnx>=1.15"]  # import, export
# `ros2 run lla_fusion_ros <name>`; a function of this name in lla_fusion_ros/ros/executables.py.
EXECUTABLES = ["bag_player", "class_fusion", "crop_classifier", "perception"]
# colcon puts executables into lib/<package>, on nobody's PATH; pip puts lla-fusion into bin by itself.
BY_PIP = {"bdist_wheel", "editable_wheel"} & set(sys.argv)
ON_PATH = [] if BY_PIP else [("bin", ["bin/lla-fusion"])]

setup(
    name=NAME,
    version=VERSION,
    description="Calibrated class distributions for tracked objects, over all cameras and all frames",
    maintainer="lla_fusion_ros maintainers",
    maintainer_email="maintainers@lla-fusion.invalid",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={NAME: ["py.typed"], f"{NAME}.report": ["*.css", "*.js"], f"{NAME}.watch": ["page.*"]},
    data_files=[
        *ON_PATH,
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/launch", sorted(glob("launch/*.launch.py"))),
        (f"share/{NAME}/config", sorted(path for path in glob("config/*") if Path(path).is_file())),
        (f"share/{NAME}/config/sros2", sorted(glob("config/sros2/*.xml"))),
        (f"share/{NAME}/models", sorted(glob("models/*.safetensors"))),
    ],
    install_requires=[
        "numpy>=1.21",
        "opencv-python-headless>=4.5",
        "PyYAML>=5.4",
        "safetensors>=0.4",
        "scipy>=1.8",
    ],
    extras_require={
        "bags": BAGS,
        "fleet": [*BAGS, *FLEET],
        "lab": LAB,
        "onnx": ONNX,
        "torch": TORCH,
        "watch": WATCH,
        "import": ONNX_TOOLS,
        "test": [
            *BAGS,
            *FLEET,
            *ONNX_TOOLS,
            *WATCH,
            "colcon-package-selection",
            "colcon-ros",
            "colcon-test-result",
            "hypothesis",
            "mypy",
            "psutil>=5.8",
            "pytest>=7.4",
            "pytest-timeout",
            "pytest-xdist",
            "ruff",
            "scikit-learn",
            "types-PyYAML",
        ],
    },
    zip_safe=True,
    entry_points={
        "console_scripts": [
            f"lla-fusion = {NAME}.cli.main:main",
            *(f"{name} = {NAME}.ros.executables:{name}" for name in EXECUTABLES),
        ],
    },
)
