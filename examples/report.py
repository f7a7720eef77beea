"""A report about a fitted model, from a table with text and missing values.

    python examples/report.py [--out out] [--pictures docs/images]

Fits a classifier to the breast cancer data of scikit-learn, with one column turned into text and 5 % of the values
removed. ``--pictures`` also takes the screenshots of the documentation, with Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from gce import GCEClassifier

SCREENS = {"wide": (1280, 2320), "narrow": (390, 2400)}
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync", "--hide-scrollbars")


def load() -> tuple[pd.DataFrame, np.ndarray]:
    """Rows with 30 columns, and whether a tumour is malignant or benign."""
    data = load_breast_cancer(as_frame=True)
    X = data.data
    X["mean texture"] = pd.cut(X["mean texture"], [0, 16, 20, 50], labels=["fine", "medium", "coarse"]).astype(object)
    X = X.mask(np.random.default_rng(0).random(X.shape) < 0.05)
    return X, np.asarray(data.target_names)[data.target]


def photograph(page: Path, folder: Path) -> None:
    """Screenshots of the top of the page, on a wide and on a narrow screen."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        sys.exit("pictures need Chromium, and none was found")
    for name, (width, height) in SCREENS.items():
        with tempfile.TemporaryDirectory() as profile:
            # windows have a minimum width, frames do not
            frame = Path(profile) / "frame.html"
            size = f"width={width} height={height}"
            frame.write_text(f"<body style='margin:0'><iframe style='border:0' {size} src='{page.resolve().as_uri()}'>")
            command = [chromium, *FLAGS, f"--user-data-dir={profile}/profile", f"--window-size={width},{height}"]
            shot = f"--screenshot={(folder / f'report_{name}.png').resolve()}"
            subprocess.run([*command, shot, frame.as_uri()], check=True, stderr=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--pictures", type=Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    X_train, X_test, y_train, y_test = train_test_split(*load(), test_size=0.3, random_state=0)
    model = GCEClassifier(random_state=0).fit(X_train, y_train)
    page = given.out / "report.html"
    model.report(page, X_test, y_test)
    error = 100 * (1 - model.score(X_test, y_test))
    Console().print(
        f"{error:.1f} % of {len(y_test)} test rows wrong. Report: {page}, {page.stat().st_size // 1000} kB."
    )
    if given.pictures is not None:
        photograph(page, given.pictures)


if __name__ == "__main__":
    main()
