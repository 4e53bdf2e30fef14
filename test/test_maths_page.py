"""docs/maths.md names a home for every equation of the paper, and every home exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "maths.md"
LABELS = [
    "individual_pmf",
    "conditional_pmf",
    "fusion_weight",
    "mc_samp_fg_prod",
    "mc_samp_fg_prod_fusion",
    "basic_model_fm",
    "softmax_fm",
    "shifted_softmax",
    "pmf2find",
    "pmf2find_sample",
    "Laplace_fm",
    "posteriorLapalce",
    "lapalceParamCov",
    "crossentroAll_fm",
    "map_estimate_fm",
    "information_with_M_fm",
    "eta_fm",
    "linearize_fm",
    "biased_before_norem",
    "linearizeCov",
    "lla_for_one",
    "full_description_seq_multi",
    "fusion_prud_is",
    "fusion_prud_is_sample",
    "fusion_seq",
    "fusion_dist_fm",
    "gmarg_g_fusion",
    "multimodality",
    "entropy_fm",
    "decteionMeasure",
    "temp_scaling_fm",
]  # every \\label{eq:...} of the paper


def rows():
    table = PAGE.read_text().split("| equation | what it is | code |")[1]
    for line in table.strip().splitlines()[1:]:
        equation, _, code = (cell.strip() for cell in line.strip("|").split("|"))
        path, *names = re.findall(r"`([^`]+)`", code)
        yield equation, path, names


def test_every_equation_label_of_the_paper_has_a_home():
    assert set(LABELS) <= {equation for equation, _, _ in rows()}


def test_every_home_exists():
    for equation, path, names in rows():
        source = (ROOT / path).read_text()
        for name in names:
            assert re.search(rf"^\s*(def|class) {name}\b", source, re.M), (
                f"{equation}: {name} is not in {path}"
            )
