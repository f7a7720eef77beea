"""What a fit draws and logs, read from a pseudo-terminal: a bar over all families that never runs backwards."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

import numpy as np
import pytest

FAMILIES = ["tree", "symmetric", "forest", "neural"]
HANGS = 300


def drawn(command, width=80, **environment):
    """Run a command in a terminal of its own: its exit code, and what it wrote there without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, width, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS"}}
    env.update(TERM="xterm-256color", **environment)
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, close_fds=True) as process:
        os.close(theirs)
        written, end = b"", time.monotonic() + HANGS
        while select.select([ours], [], [], max(0, end - time.monotonic()))[0]:
            try:
                written += os.read(ours, 1 << 16)
            except OSError:  # the other side is closed
                break
        else:
            process.kill()
        os.close(ours)
    return process.returncode, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode())


def python(program, **given):
    return drawn([sys.executable, "-W", "error", "-c", program], **given)


def bars(text, family=r"(\w+) (\d)/(\d)"):
    """Each picture of a bar that has rounds: what the family column says, rounds done, and rounds at most."""
    found = re.findall(family + r"\s+\S*[━╸╺]\S*\s+(\d+)/(\d+|\?) ", text)
    return [(*rest, int(done), None if most == "?" else int(most)) for *rest, done, most in found]


def assert_rises(pictures, rounds):
    done = [picture[-2] for picture in pictures]
    assert done == sorted(done)
    assert all(most is None or most >= own for *_, own, most in pictures)
    assert pictures[-1][-2:] == (rounds, rounds)


FIT = """
from sklearn.datasets import load_iris
from gce import GCEClassifier
given = {given!r}
model = GCEClassifier(random_state=0, max_iter=3, n_iter_no_change=None, **given)
model.fit(*load_iris(return_X_y=True))
print("rounds", [entry["family"] for entry in model.history_])
"""


@pytest.mark.parametrize(("limit", "width"), [(None, 80), (600, 120)])
def test_a_default_fit_draws_all_families(limit, width):
    code, text = python(FIT.format(given={"verbose": True, "time_limit": limit}), width=width)
    assert code == 0, text
    assert "Traceback" not in text
    pictures = bars(text)
    assert [list(dict.fromkeys(column)) for column in zip(*[p[:3] for p in pictures], strict=True)] == [
        FAMILIES,
        ["1", "2", "3", "4"],
        ["4"],
    ]
    assert_rises(pictures, 3 + 3 + 1 + 3)
    assert ("3 families to come" in text) == (limit is None)
    # the clock bounds all families from the start on
    assert bool(re.search(r"tree 1/4 .* at most (10:00|9:\d\d) left", text)) == (limit is not None)
    assert ("members" in text) == (width == 120)


@pytest.fixture
def table(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    rows = np.column_stack([X, X[:, 0] - X[:, 1] ** 2])
    np.savetxt(tmp_path / "train.csv", rows, delimiter=",", header="a,b,y", comments="")
    return tmp_path / "train.csv"


@pytest.mark.parametrize("limit", [[], ["--time-limit", "600"]], ids=["no limit", "limit"])
def test_the_command_line_draws_all_families(table, limit):
    few = ["--set", "max_iter=3", "--set", "n_iter_no_change=None"]
    code, text = drawn([sys.executable, "-m", "gce", "fit", str(table), "--target", "y", *few, *limit])
    assert code == 0, text
    assert "Traceback" not in text
    assert list(dict.fromkeys(picture[0] for picture in bars(text))) == FAMILIES
    assert_rises(bars(text), 10)
    assert "fitted in" in text


def test_the_command_line_can_do_without(table):
    few = ["--set", "max_iter=2", "--set", "basis=tree"]
    command = [sys.executable, "-m", "gce", "fit", str(table), "--target", "y", *few]
    code, text = drawn([*command, "--set", "verbose=false"])
    assert code == 0, text
    assert "fitted in" in text
    assert not bars(text, r"(gce)")


OTHERS = """
import numpy as np
from joblib import parallel_config
from sklearn.model_selection import cross_val_score
import gce
X = np.random.default_rng(0).normal(size=(60, 2))
y = X[:, 0] - X[:, 1] ** 2
for kind in (gce.NGCERegressor, gce.NNRegressor):
    kind(hidden=3, max_epochs=3, random_state=0).fit(X, y)
greedy = gce.GCERegressor(basis=["tree", "forest"], max_iter=2, random_state=0)
print("stack:")
gce.ConvexStackingRegressor([("a", greedy)], cv=2).fit(X, y)
print("threads:")
with parallel_config("threading"):
    cross_val_score(greedy, X, y, cv=2, n_jobs=2)
print("processes:")
cross_val_score(greedy, X, y, cv=2, n_jobs=2)
print("done")
"""


def test_other_models_in_a_terminal():
    code, text = python(OTHERS)
    assert code == 0, text
    assert "Traceback" not in text
    assert not bars(text[: text.index("stack:")])
    stacked, alone = text[: text.index("threads:")], text[text.index("threads:") :]
    # a fit for each fold and one for all rows, one after another
    assert [picture[-2:] for picture in bars(stacked)].count((3, 3)) >= 3
    # bars of workers would be drawn over each other
    assert not bars(alone)
    assert alone.rstrip().endswith("done")


def test_verbose_asks_for_rich(monkeypatch):
    from gce import GCERegressor

    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(ModuleNotFoundError, match=r'is not installed: pip install "greedy-convex-ensemble\[rich'):
        GCERegressor(verbose=True).fit(None, None)  # before anything else is looked at
    with pytest.raises(
        ValueError, match=r"verbose must be 'auto', True, False, an integer of at least 0 or None, got 'no'"
    ):
        GCERegressor(verbose="no").fit(None, None)
