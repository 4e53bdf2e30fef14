"""Write docs/models.md from the bundles in models/ and the evaluation records in docs/results/.

Example: python tools/make_model_cards.py
Every number of the page comes from a file; the commands that made the files stand on the page.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import model_card_tables as tables
import protocol_numbers

from lla_fusion_ros.bundle import load_bundle

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"

HEAD = """# Model cards

Made by `python tools/make_model_cards.py` from the bundles in `models/` and the records in `docs/results/`;
do not edit. Intervals are 95%, by bootstrap over tracks. *clean*, *hard* and *mixed* are the regimes of
METHOD 8: as recorded; dark, blurred, noisy and badly boxed; and 40% of the frames covered, smeared or off
target. L is the number of frames fused.
"""

CARDS: tuple[dict[str, Any], ...] = (
    {
        "title": "`models/gtsrb.safetensors`: German traffic signs, 43 classes",
        "file": "gtsrb.safetensors",
        "record": "gtsrb.json",
        "compression": "compression.json",
        "precision": "precision_gtsrb.json",
        "use": """\
Use it for tracked German (and, with care, other European) traffic signs: a detector and tracker give boxes
with ids, this bundle gives the class. The class index is GTSRB's ClassId.""",
        "limits": """\
- The training images are at most 40 px on their longer side, from one camera in one region of Germany,
  by day.
- It was trained on the data set's images (PPM). Below a JPEG quality of about 90 far signs are taken for
  unknown objects more often than stated (table above); classes hardly suffer.
- Boxes are expected tight around the sign, as GTSRB annotates them.
- Signs that GTSRB does not have are unknown to it. The warning finds most of them after a few frames, not all
  (next card).
- Test tracks come from the same drives as the training tracks; another country or camera will score lower.
  Fine-tune with `lla-fusion train --start models/gtsrb.safetensors`.""",
    },
    {
        "title": "The protocol ensemble: GTSRB with 8 classes held out",
        "file": None,
        "record": "models_gtsrb_protocol_split1.json",
        "errors": "errors_protocol.json",
        "numbers": (
            ("seed 0, the fifth training scored on it", "models_gtsrb_protocol.json"),
            ("seed 1, trained and scored once", "models_gtsrb_protocol_split1.json"),
        ),
        "use": """\
Not shipped: it exists to measure what the warnings find. Classes 6, 12, 13, 15, 17, 32, 38 and 40 were never
seen in training or calibration; here they are the outside world. It was trained by

```
lla-fusion train --dataset gtsrb --root data/GTSRB --holdout 6,12,13,15,17,32,38,40 --split-seed 1 \\
  --size 40 --channels 24,64,128,128 --stem pool --epochs 15 --batch 96 --outliers 0.2 --balance 0.5 \\
  --faded 0.4 --relit 0.5 --draws 4 --half-weights --threads 1 --out gtsrb35.safetensors
```

Five trainings were scored on the test tracks of the split with seed 0 before this recipe was settled on (14
epochs, 26, 14 balanced, 10 more with faded colours, this recipe), which made them no fresh test any more.
Hence the same recipe once again on a split that had never been used, with seed 1: the recipe, the fusers of
the table and ten draws of the degradations were settled before it was scored, and it was scored once. In
between `dual_pool` had got its correction for rarity (docs/fusers.md), on validation tracks of other bundles;
the rows of seed 0 are without it. The default reaches all numbers at once on the fresh split; on the other
one, among whose test tracks is a dark *speed limit 60* that every network reads as an 80, no fuser does.""",
        "limits": "",
    },
    {
        "title": "`models/belgium.safetensors`: Belgian traffic signs, 62 classes",
        "file": "belgium.safetensors",
        "record": "belgium.json",
        "use": """\
Use it for Belgian traffic signs seen by several cameras at a time. The class index is that of BelgiumTSC's
folders; the names are ours, since the set only numbers them.""",
        "limits": """\
- A track of BelgiumTSC is one sign at one moment, in three views mostly: L above is the number of views.
  All that is fitted (fusers, thresholds of the warnings) knows no longer tracks, and none were measured.
- On the test signs `pool` is ahead of the default, which the validation signs chose (NLL .217 and .227 in
  the hard regime; [evidence.md](evidence.md#which-fuser-deserves-to-be-the-default)).
- A third of the classes has five training signs or fewer. Numbers on signs (speed, weight, height) are not
  read: all speed limits are one class.
- The training images are at most 40 px on their longer side, from one van.
- Between the second and the third command its file was renamed; `--own-test` splits like `--option part=train
  --fractions 0.8,0.2,0` and knows its test signs.""",
    },
    {
        "title": "`models/signworld.safetensors`: the built-in sign world, 17 classes",
        "file": "signworld.safetensors",
        "record": "signworld.json",
        "precision": "precision_signworld.json",
        "drives": "false_alarms.json",
        "use": "Use it for the demo, for tests and to try the package. It knows rendered signs only.",
        "limits": """\
- It says nothing about real roads: use `gtsrb` or your own training there.
- A far sign that is mostly covered is often taken for an unknown object (table above).""",
    },
)


def main() -> None:
    parts = [HEAD]
    for card in CARDS:
        parts.append(_card(card))
    parts.append(tables.repulsion(RESULTS / "repulsion.json"))
    (ROOT / "docs" / "models.md").write_text("\n".join(part for part in parts if part), encoding="utf-8")


def _card(card: dict[str, Any]) -> str:
    lines = [f"## {card['title']}", "", card["use"], ""]
    if card["file"]:
        path = ROOT / "models" / card["file"]
        lines += tables.bundle_rows(load_bundle(path), path.stat().st_size)
        lines += tables.own_scores(load_bundle(path))
    if card.get("numbers"):
        lines += protocol_numbers.table(
            [(title, tables.read(RESULTS / name)) for title, name in card["numbers"]]
        )
    record = RESULTS / card["record"]
    if record.exists():
        evaluation = tables.read(record)
        lines += tables.evaluation(evaluation)
        lines += tables.switch(evaluation)
    if card.get("drives"):
        lines += tables.drives(RESULTS / card["drives"])
    if card.get("compression"):
        lines += tables.compression(RESULTS / card["compression"])
    if card.get("errors"):
        lines += tables.errors(RESULTS / card["errors"])
    if card.get("precision"):
        lines += tables.precision(RESULTS / card["precision"])
    if card["limits"]:
        lines += ["Limits:", "", card["limits"], ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
