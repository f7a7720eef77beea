"""Any number of processes fits the model of one, to the bit."""

import numpy as np
import pytest

import gce
from gce.estimators import _shard_choice
from test_shard_encodings import people
from test_sharded_fits import FEW, described, ended, mixed, start, written

SIZES = (1, 2, 3)


def all_families(folder):
    """Trees, a forest and networks; categories with statistics, dates and missing values."""
    frame, y = mixed(900)
    given = {"parameters": FEW, "files": written(folder / "data", frame, y), "most_rows": 1 << 18}
    return given, mixed(200, seed=5)[0]


def sampled(folder):
    """The same for classes, of a sample of the rows."""
    frame, y = mixed(900)
    files = written(folder / "data", frame, np.where(y > 1, "high", "low"))
    return {"parameters": FEW, "files": files, "classes": True, "most_rows": 150}, mixed(200, seed=5)[0]


def encoded(folder):
    """Weights, and groups: the two others have inner folds by what rows hold."""
    frame, y = people(1500, 400)
    rng = np.random.default_rng(0)
    columns = {"w": rng.exponential(size=len(y)), "g": rng.integers(0, 200, len(y))}
    files = written(folder / "data", frame, y, group=170, **columns)
    names = {"sample_weight": "w", "groups": "g"}
    return {"parameters": {**FEW, "basis": "tree"}, "files": files, "shards": names, "most_rows": 150}, frame[:200]


def fit_alone(given):
    """The fit of this process."""
    kind = gce.GCEClassifier if given.get("classes") else gce.GCERegressor
    with pytest.MonkeyPatch.context() as patched:
        for name in ("MOST_ROWS", "FEWEST_ROWS"):
            patched.setattr(_shard_choice, name, given["most_rows"])
        shards = gce.Shards(given["files"], target="y", **given.get("shards", {}))
        return kind(random_state=0, **given["parameters"]).fit(shards)


def test_any_number_of_processes_gives_the_same_model(tmp_path):
    """All fits by the same processes: to start one takes longer than to fit."""
    alone, folders = [], {size: [] for size in SIZES}
    for case in (all_families, sampled, encoded):
        folder = tmp_path / case.__name__
        folder.mkdir()
        given, new = case(folder)
        new.to_parquet(folder / "rows.parquet")
        model = fit_alone(given)
        assert model.table_.statistics is not None
        alone.append((model.table_, model.raw_predict(new).numpy()))
        for size in SIZES:
            folders[size].append(described(folder, f"of-{size}", rows=folder / "rows.parquet", **given))
    for size in SIZES:
        ended(start(size, *folders[size]))
        for out, (table, scores) in zip(folders[size], alone, strict=True):
            for rank in range(size):
                np.testing.assert_array_equal(np.load(out / f"scores-{rank}.npy"), scores, err_msg=str(out))
                found = gce.load(out / f"model-{rank}.safetensors").table_
                assert found.columns == table.columns
                assert found.statistics.equals(table.statistics)
