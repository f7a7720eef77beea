"""The recipe for Spark of docs/scaling.md: run by ``make distributed``, in an environment that has Spark."""

import shutil
import sys

import pytest

pytest.importorskip("pyspark")

import recipes

pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="no Java here")
#: A cluster of this machine.
PLACE = {
    "PYSPARK_PYTHON": sys.executable,
    "PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell",
    "SPARK_LOCAL_IP": "127.0.0.1",
}


@pytest.mark.parametrize("local", [True, False], ids=["driver", "executors"])
def test_the_recipe_gives_the_model_of_one_process(tmp_path, monkeypatch, local):
    text = recipes.recipe("pyspark")
    assert text.count("local_mode=False") == 1
    monkeypatch.setattr(recipes, "recipe", lambda package: text.replace("local_mode=False", f"local_mode={local}"))
    said = recipes.run(tmp_path, "pyspark", **PLACE)
    assert f"Finished {'local' if local else 'distributed'} training with 2" in said
