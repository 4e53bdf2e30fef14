"""`python -m lla_fusion_ros VERB` is the same as `lla-fusion VERB`."""

import sys

from lla_fusion_ros.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
