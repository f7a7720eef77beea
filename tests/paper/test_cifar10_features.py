"""The features of CIFAR-10, on a made-up archive of a few images and a small network."""

import hashlib
import io
import tarfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from gce import datasets
from gce.datasets import registry
from gce.datasets.registry import Source
from paper import cifar10_features as script
from paper.cifar10_features import DenseNet, Settings

TINY = Settings(depth=10, growth=4, epochs=4, batch=8)
CPU = torch.device("cpu")
TRAIN, TEST = 20, 6


def records(n, rng):
    """Images whose brightness tells their class."""
    labels = rng.integers(0, 10, n)
    pixels = np.clip(labels[:, None] * 22 + rng.normal(20, 8, (n, 3072)), 0, 255)
    return np.concatenate([labels[:, None], pixels], axis=1).astype(np.uint8)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A data folder with a made-up archive; ``home.train`` and ``home.test`` are its records."""
    rng = np.random.default_rng(0)
    train, test = records(TRAIN, rng), records(TEST, rng)
    path = tmp_path / CIFAR
    with tarfile.open(path, "w:gz") as archive:
        batches = {f"data_batch_{i + 1}": train[4 * i : 4 * i + 4] for i in range(5)} | {"test_batch": test}
        for name, rows in batches.items():
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}.bin")
            info.size = rows.nbytes
            archive.addfile(info, io.BytesIO(rows.tobytes()))
    digest = f"md5:{hashlib.md5(path.read_bytes()).hexdigest()}"
    monkeypatch.setattr(script, "CIFAR10", Source(CIFAR, ("http://127.0.0.1:9/",), digest))
    return tmp_path


CIFAR = registry.CIFAR10.file


def test_the_papers_network_has_342_features_and_the_known_size():
    model = DenseNet(Settings())
    assert model.head.in_features == 342 == registry.SPECS["cifar10_f"].columns

    # "0.8M" in Table 2 of Huang et al.; by hand: the stem, 48 layers, 2 transitions, the last norm, the head
    def layer(c):
        return 2 * c + 48 * c + 2 * 48 + 48 * 12 * 9

    widths = [[first + 12 * i for i in range(16)] for first in (24, 108, 150)]
    count = 3 * 24 * 9 + sum(layer(c) for block in widths for c in block)
    count += sum(2 * c + c * c // 2 for c in (216, 300)) + 2 * 342 + 343 * 10
    assert sum(p.numel() for p in model.parameters()) == count == 769_162


def test_images_are_read_plane_by_plane(home):
    training, test = script.read_images(home / CIFAR)
    rng = np.random.default_rng(0)
    expected = records(TRAIN, rng)
    assert training.pixels.shape == (TRAIN, 3, 32, 32)
    assert test.pixels.shape == (TEST, 3, 32, 32)
    np.testing.assert_array_equal(training.labels, expected[:, 0])
    assert int(training.pixels[7, 1, 3, 5]) == expected[7, 1 + 1024 + 3 * 32 + 5]


def test_augmentation_shifts_and_mirrors():
    x = torch.rand(5, 3, 32, 32)
    shift = torch.tensor([[4, 4], [0, 4], [4, 8], [4, 4], [7, 1]])
    mirror = torch.tensor([False, False, False, True, True])
    out = script.augmented(x, shift, mirror)
    torch.testing.assert_close(out[0], x[0])
    torch.testing.assert_close(out[1, :, 4:], x[1, :, :-4])
    assert not out[1, :, :4].any()
    torch.testing.assert_close(out[2, :, :, :-4], x[2, :, :, 4:])
    torch.testing.assert_close(out[3], x[3].flip(2))
    moved = torch.zeros(3, 32, 32)
    moved[:, :-3, 3:] = x[4, :, 3:, :-3]
    torch.testing.assert_close(out[4], moved.flip(2))


def test_the_rate_drops_at_one_half_and_three_quarters():
    rates = [Settings(epochs=8).rate_of(epoch) for epoch in range(8)]
    np.testing.assert_allclose(rates, [0.1] * 4 + [0.01] * 2 + [0.001] * 2)
    np.testing.assert_allclose([Settings().rate_of(e) for e in (149, 150, 224, 225)], [0.1, 0.01, 0.01, 0.001])


def run(images, path, stop=None, settings=TINY):
    """Train; with ``stop``, give up after so many epochs as a kill would."""
    model, losses = DenseNet(settings), []
    for epoch, loss in script.train(model, images, settings, path):
        losses.append(loss)
        if stop is not None and epoch + 1 == stop:
            break
    return model, losses


def test_a_resumed_training_equals_an_uninterrupted_one(home, tmp_path):
    images, _ = script.read_images(home / CIFAR)
    whole, losses = run(images, tmp_path / "a")
    _, before = run(images, tmp_path / "b", stop=1)
    _, between = run(images, tmp_path / "b", stop=3)
    resumed, after = run(images, tmp_path / "b")
    assert [len(part) for part in (before, between, after)] == [1, 2, 1]
    assert before + between + after == losses
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name
    first, second = (load_file(tmp_path / name) for name in "ab")
    assert any(name.startswith("momentum.") for name in first)
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())
    assert run(images, tmp_path / "b")[1] == []


def test_training_learns(home, tmp_path):
    images, _ = script.read_images(home / CIFAR)
    _, losses = run(images, tmp_path / "c", settings=replace(TINY, epochs=12))
    assert min(losses[-3:]) < 0.7 * losses[0]


def test_a_checkpoint_of_other_settings_is_refused(home, tmp_path):
    images, _ = script.read_images(home / CIFAR)
    run(images, tmp_path / "a", stop=1)
    other = replace(TINY, seed=1)
    with pytest.raises(ValueError, match="move it away"):
        next(script.train(DenseNet(other), images, other, tmp_path / "a"))


def test_features_are_what_the_head_sees(home):
    training, test = script.read_images(home / CIFAR)
    model = DenseNet(TINY)
    mean, deviation = training.unit()
    pixels = training.pixels.float()
    torch.testing.assert_close(mean.flatten(), pixels.mean(dim=(0, 2, 3)), rtol=1e-5, atol=0)
    torch.testing.assert_close(deviation.flatten(), pixels.transpose(0, 1).flatten(1).std(dim=1), rtol=1e-5, atol=0)
    seen = script.features(model, test, (mean, deviation), 4)
    assert (seen >= 0).all()
    assert not model.training
    torch.testing.assert_close(model.head(seen), model((test.pixels.float() - mean) / deviation))


def test_the_file_it_writes_is_loaded(home, monkeypatch, caplog):
    caplog.set_level("INFO")
    settings = replace(TINY, epochs=1)
    path = script.make(home, settings, CPU)
    assert "epoch 1 of 1" in caplog.text
    assert "test error" in caplog.text
    width = DenseNet(settings).head.in_features
    with np.load(path, allow_pickle=False) as file:
        assert file["X"].shape == (TRAIN + TEST, width)
        assert file["X"].dtype == np.float16
        _, test = script.read_images(home / CIFAR)
        np.testing.assert_array_equal(file["y"][TRAIN:], test.labels)
    spec = replace(registry.SPECS["cifar10_f"], rows=TRAIN + TEST, columns=width, test_from=TRAIN)
    monkeypatch.setitem(registry.SPECS, "cifar10_f", spec)
    data = datasets.load("cifar10_f", data_home=home)
    assert (len(data.y_train), len(data.y_val), len(data.y_test)) == (16, 4, 6)
    with pytest.raises(FileExistsError, match="move it away"):
        script.make(home, settings, CPU)


def test_the_command_line_says_what_is_missing(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(script, "CIFAR10", Source("images.tar.gz", ("http://127.0.0.1:9/images",), "md5:0"))
    assert script.main(["--data-home", str(tmp_path)]) == 1
    assert str(tmp_path / "images.tar.gz") in caplog.text
    with pytest.raises(SystemExit):
        script.main(["--epochs", "0"])


def test_a_depth_that_makes_no_blocks_is_refused():
    with pytest.raises(ValueError, match="got 12"):
        DenseNet(replace(TINY, depth=12))
