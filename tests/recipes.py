"""The recipes of docs/scaling.md as programs of their own, on small files: what the tests of Ray and Spark run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import gce
from test_sharded_fits import FEW, numbers, written

PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"
#: What the recipes fit, and what is fitted here.
MODEL = "gce.GCERegressor(random_state=0)"


def recipe(package):
    """The block of the page that imports a package."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.S | re.M)
    (block,) = [text for text in blocks if package in text]
    return block


def run(folder, package, *, before="", model="", **environment):
    """Run a recipe on files in a folder, and compare its model with that of the same fit in this process.

    Parameters
    ----------
    folder : Path
        Stands for the folder that all machines share.
    package : str
        What the recipe imports.
    before : str
        Lines before it.
    model : str
        Parameters of the model besides those that keep it small.
    **environment
        Variables.

    Returns
    -------
    str
        What the program printed.
    """
    frame, y = numbers(600)
    files = written(folder / "data", frame, y)
    text = recipe(package)
    assert text.count("/shared/") >= 3
    assert text.count(MODEL) == 1
    text = text.replace("/shared/", f"{folder}/").replace(MODEL, f"{MODEL[:-1]}, **{FEW}, {model})")
    (folder / "program.py").write_text(before + text)
    # settings and results that these packages keep in the user's folder stay here
    own = {**os.environ, "HOME": str(folder), **environment}
    command = [sys.executable, str(folder / "program.py")]
    done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    new = numbers(200, seed=5)[0]
    alone = gce.GCERegressor(random_state=0, **FEW).fit(gce.Shards(files, target="y"))
    found = gce.load(folder / "m.safetensors").raw_predict(new).numpy()
    np.testing.assert_array_equal(found, alone.raw_predict(new).numpy())
    return done.stdout + done.stderr
