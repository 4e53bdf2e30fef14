"""The model file: one `.safetensors` in, its networks, posterior, fusers and warning models out.

`container` knows the file, `meta` its JSON, `bundle` what both mean, `score_bundle` one without networks,
`resources` where those that ship are. Imports networks, posterior, fusion, warnings and types; torch only
where networks are built.
"""

from lla_fusion_ros.bundle.bundle import Bundle, load_bundle, load_ensemble, make_bundle, save_bundle
from lla_fusion_ros.bundle.meta import BundleMeta

__all__ = ["Bundle", "BundleMeta", "load_bundle", "load_ensemble", "make_bundle", "save_bundle"]
