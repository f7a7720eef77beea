"""The README's Python runs as it is pasted."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]


def test_the_readmes_lines_run(tmp_path, monkeypatch):
    [program] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    subprocess.run([sys.executable, str(ROOT / "examples" / "make_table.py"), str(tmp_path)], check=True)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(program, names)
    assert names["error"] < 0.25
    np.testing.assert_allclose(names["proba"].sum(1), 1, atol=1e-12)
    assert abs(float(names["model"].ensemble_.weights.sum()) - 1) < 1e-12
    assert {"m.safetensors", "m.onnx", "r.html"} <= {path.name for path in tmp_path.iterdir()}
