"""The table of data sets as a command."""

from gce import datasets
from paper.data_sets import main


def test_every_set_has_a_row(tmp_path, capsys):
    assert main(["--folder", str(tmp_path)]) == 0
    text = (tmp_path / "datasets.md").read_text()
    assert capsys.readouterr().out == text
    assert all(f"| {name}" in text for name in datasets.NAMES)
