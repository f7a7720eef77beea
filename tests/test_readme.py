"""The README's Python runs as it is pasted."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_ten_lines_run():
    (program,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    names = {}
    exec(program, names)
    assert names["accuracy"] > 0.95
    assert abs(float(names["weights"].sum()) - 1) < 1e-12
    assert {"risk", "validation", "gap_lower", "size", "seconds"} <= names["last"].keys()
