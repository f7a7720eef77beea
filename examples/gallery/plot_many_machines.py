"""
Many machines
=============

Rows in Parquet files, fitted by one process and by two: the same model to the bit. What runs here on one machine runs
in the same way on many, under ``torchrun``, Ray, Spark or SLURM.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gce

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
for part in range(4):
    rows = pd.DataFrame(rng.normal(size=(500, 4)), columns=list("abcd"))
    rows["y"] = np.sin(2 * rows["a"]) + rows["b"] * rows["c"] + 0.1 * rng.normal(size=500)
    rows.to_parquet(folder / f"rows-{part}.parquet", row_group_size=125)

# %%
# ``Shards`` are rows that stay in files. They are read by row groups, never all at once.

shards = gce.Shards(str(folder / "rows-*.parquet"), target="y")
one = gce.GCERegressor(basis="tree", random_state=0).fit(shards)
print(one.n_samples_fit_, "rows,", len(one.weights_), "atoms")

# %%
# The program for several processes differs in one line. Each process reads its own row groups; sums of gradients are
# integers, which have no order, so that the trees cannot depend on who added them up.

(folder / "train.py").write_text("""
import gce
from gce.distributed import process_group

with process_group(timeout=60) as world:
    model = gce.GCERegressor(basis="tree", random_state=0).fit(gce.Shards("rows-*.parquet", target="y"))
    if world.rank == 0:
        model.save("model.safetensors")
""")
launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
subprocess.run([*launcher, "train.py"], cwd=folder, check=True, capture_output=True)
two = gce.load(folder / "model.safetensors")

# %%
new = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
difference = two.predict(new) - one.predict(new)
print("largest difference on new rows:", np.abs(difference).max())

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.scatter(new["a"], one.predict(new) - new["b"] * new["c"], s=40, color="0.8", label="one process")
ax.scatter(new["a"], two.predict(new) - new["b"] * new["c"], s=8, label="two processes")
ax.plot(grid := np.linspace(-3, 3, 200), np.sin(2 * grid), color="0.3", linewidth=1, label="sin 2a")
ax.set(xlabel="a", ylabel="prediction - b c")
ax.legend()
plt.show()
