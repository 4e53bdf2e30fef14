"""The toy tracks as a folder of images."""

from __future__ import annotations

from pathlib import Path

import cv2

from support.toy_tracks import toy_tracks


def write_toy_folder(root: Path, per_class: int = 14) -> Path:
    """<class>/<track>_<frame>.png, and tracks.csv with a column `site`: three tracks a site."""
    lines = ["file,class,track,frame,site"]
    for number, track in enumerate(toy_tracks(per_class=per_class).tracks):
        name = track.id.split("/")[0]
        (root / name).mkdir(exist_ok=True)
        for step, frame in enumerate(track.frames):
            file = f"{name}/{number:05d}_{step:05d}.png"
            cv2.imwrite(str(root / file), frame.image[..., ::-1])
            lines.append(f"{file},{name},{number},{step},{number // 3}")
    (root / "list.csv").write_text("\n".join(lines) + "\n")
    return root
