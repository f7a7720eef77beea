"""
Checkpoint and resume
=====================

A fit with ``checkpoint=folder`` writes each round. Whatever ends the process, the same call goes on from the last round,
and the model is the same to the bit as if nothing had happened.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import gce

folder = Path(tempfile.mkdtemp())

# %%
# A program that fits, as it would run on a server:

(folder / "train.py").write_text("""
import gce
from sklearn.datasets import load_diabetes

X, y = load_diabetes(return_X_y=True)
gce.GCERegressor(basis="neural", max_iter=12, cv=5, random_state=0).fit(X, y, checkpoint="rounds")
""")


def rounds():
    """Rounds that are on disk."""
    return len(list(folder.glob("rounds/round-*.safetensors")))


# %%
# It is killed after four rounds, with the signal that no program can catch, and started again.

killed = subprocess.Popen([sys.executable, "train.py"], cwd=folder)
while rounds() < 4 and killed.poll() is None:
    time.sleep(0.01)
killed.kill()
print(f"ended with code {killed.wait()}, {rounds()} rounds on disk")
subprocess.run([sys.executable, "train.py"], cwd=folder, check=True)
print(f"after the second call: {rounds()} rounds on disk")

# %%
# The same call here reads the finished fit from the folder; a fit without any folder, from the start, is compared.

X, y = load_diabetes(return_X_y=True)
settings = {"basis": "neural", "max_iter": 12, "cv": 5, "random_state": 0}
resumed = gce.GCERegressor(**settings).fit(X, y, checkpoint=folder / "rounds")
alone = gce.GCERegressor(**settings).fit(X, y)
print("equal to the bit:", np.array_equal(resumed.predict(X), alone.predict(X)))

# %%
# The history has the rounds of both processes, one after another.

fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for name, model, style in [("killed and resumed", resumed, "-"), ("never stopped", alone, "o")]:
    ax.plot(
        [entry["t"] for entry in model.history_], [entry["validation"] for entry in model.history_], style, label=name
    )
ax.set(xlabel="round", ylabel="mean squared error of held-out rows")
ax.legend()
plt.show()
