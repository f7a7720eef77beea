"""cifar10_f from CIFAR-10: train a DenseNet-BC, keep what its last layer sees.

    python -m paper.cifar10_features [--data-home FOLDER] [--device cuda]

The network is that of Huang et al., "Densely Connected Convolutional Networks" (depth 100, growth 12: 342 channels in
its last layer), trained as they do it: images shifted by up to four pixels and mirrored, SGD with Nesterov momentum,
300 epochs of batches of 64, learning rate 0.1 divided by ten at one half and at three quarters, weight decay 1e-4. The
features are the 342 channels after the last normalisation and ReLU, averaged over the image. The paper's network has
95.16 % accuracy on the test images.

The folder gets ``cifar10_f.npz`` (float16, the 50,000 training images first) with its checksum, and a checkpoint an
epoch: kill the script and start it again, and it goes on where it was. Everything random in an epoch comes from (seed,
epoch), so that a resumed training is the same as one that was never interrupted (on a GPU up to the order of its sums).
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn import functional

from gce.datasets import files
from gce.datasets.download import obtain
from gce.datasets.registry import CIFAR10

logger = logging.getLogger("paper.cifar10_features")

SIDE = 32
CLASSES = 10
MARGIN = 4


@dataclass(frozen=True)
class Settings:
    """What decides the result; the defaults are those of the network's paper.

    Parameters
    ----------
    depth, growth : int
        Layers (six times some number, and four) and channels each adds.
    epochs, batch : int
    rate, momentum, decay : float
    seed : int
    """

    depth: int = 100
    growth: int = 12
    epochs: int = 300
    batch: int = 64
    rate: float = 0.1
    momentum: float = 0.9
    decay: float = 1e-4
    seed: int = 0

    def rate_of(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0."""
        return self.rate * 0.1 ** ((2 * epoch >= self.epochs) + (4 * epoch >= 3 * self.epochs))


class Layer(nn.Module):
    """Normalise, ReLU, 1x1 to ``4 growth`` channels, normalise, ReLU, 3x3 to ``growth``; appended to the input."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(4 * growth)
        self.narrow = nn.Conv2d(channels, 4 * growth, 1, bias=False)
        self.grow = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.narrow(functional.relu(self.norm1(x)))
        return torch.cat([x, self.grow(functional.relu(self.norm2(inner)))], dim=1)


class Transition(nn.Module):
    """Half the channels, half the height and width."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.halve = nn.Conv2d(channels, channels // 2, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return functional.avg_pool2d(self.halve(functional.relu(self.norm(x))), 2)


class DenseNet(nn.Module):
    """DenseNet-BC for images of 32 x 32: three blocks of ``(depth - 4) / 6`` layers, two transitions.

    Parameters
    ----------
    settings : Settings
        Its depth, growth and seed: weights are drawn from a generator of their own.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        layers, rest = divmod(settings.depth - 4, 6)
        if rest or layers < 1:
            raise ValueError(f"depth must be 4 and a multiple of 6, such as 40 or 100; got {settings.depth}")
        channels = 2 * settings.growth
        parts: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1, bias=False)]
        for block in range(3):
            if block:
                parts.append(Transition(channels))
                channels //= 2
            for _ in range(layers):
                parts.append(Layer(channels, settings.growth))
                channels += settings.growth
        self.body = nn.Sequential(*parts, nn.BatchNorm2d(channels), nn.ReLU())
        self.head = nn.Linear(channels, CLASSES)
        self._draw(torch.Generator().manual_seed(settings.seed))

    def _draw(self, generator: torch.Generator) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                fan = module.out_channels * module.kernel_size[0] * module.kernel_size[1]
                nn.init.normal_(module.weight, std=(2 / fan) ** 0.5, generator=generator)
        bound = self.head.in_features**-0.5
        nn.init.uniform_(self.head.weight, -bound, bound, generator=generator)
        nn.init.zeros_(self.head.bias)

    def features(self, x: Tensor) -> Tensor:
        """``(n, 3, 32, 32) -> (n, channels)``."""
        return self.body(x).mean(dim=(2, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


@dataclass(frozen=True)
class Images:
    """Images as bytes and their classes.

    Parameters
    ----------
    pixels : tensor of shape (n, 3, 32, 32), uint8
    labels : tensor of shape (n,), int64
    """

    pixels: Tensor
    labels: Tensor

    def to(self, device: torch.device) -> Images:
        """The same on a device."""
        return Images(self.pixels.to(device), self.labels.to(device))

    def unit(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of each channel, ``(1, 3, 1, 1)``."""
        # one channel at a time: all as doubles would take 1.2 GB
        pairs = [torch.std_mean(self.pixels[:, c].double()) for c in range(3)]
        deviation, mean = (torch.stack(numbers).float().view(1, 3, 1, 1) for numbers in zip(*pairs, strict=True))
        return mean, deviation


def read_images(path: Path) -> tuple[Images, Images]:
    """Training and test images of the binary archive."""
    with tarfile.open(path, "r:gz") as archive:
        batches = [_batch(archive, name) for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]]
    return _images(np.concatenate(batches[:-1])), _images(batches[-1])


def _batch(archive: tarfile.TarFile, name: str) -> NDArray[np.uint8]:
    member = archive.extractfile(f"cifar-10-batches-bin/{name}.bin")
    if member is None:
        raise ValueError(f"{name}.bin is no file in the archive")
    return np.frombuffer(member.read(), dtype=np.uint8).reshape(-1, 1 + 3 * SIDE * SIDE)


def _images(records: NDArray[np.uint8]) -> Images:
    """A record is a byte of class, then red, green and blue, each row by row."""
    pixels = np.ascontiguousarray(records[:, 1:]).reshape(-1, 3, SIDE, SIDE)
    return Images(torch.from_numpy(pixels), torch.from_numpy(records[:, 0].astype(np.int64)))


def augmented(x: Tensor, shift: Tensor, mirror: Tensor) -> Tensor:
    """Images moved by ``shift - 4`` pixels, zeros beyond the border, some mirrored.

    Parameters
    ----------
    x : tensor of shape (n, 3, 32, 32)
    shift : tensor of shape (n, 2)
        Rows and columns, 0 to 8.
    mirror : tensor of shape (n,), bool
    """
    steps = torch.arange(SIDE, device=x.device)
    row, column = shift[:, :1] + steps, shift[:, 1:] + torch.where(mirror[:, None], steps.flip(0), steps)
    wide = functional.pad(x, (MARGIN,) * 4)
    n, c = (torch.arange(size, device=x.device) for size in x.shape[:2])
    return wide[n[:, None, None, None], c[None, :, None, None], row[:, None, :, None], column[:, None, None, :]]


def train(model: DenseNet, images: Images, settings: Settings, checkpoint: Path) -> Iterator[tuple[int, float]]:
    """Train from the checkpoint's epoch to the last; yield each epoch and its mean loss once its checkpoint is written.

    Model and images are on one device.
    """
    optimizer = torch.optim.SGD(
        model.parameters(), settings.rate, settings.momentum, weight_decay=settings.decay, nesterov=True
    )
    mean, deviation = images.unit()
    device = images.pixels.device
    for epoch in range(resume(model, optimizer, settings, checkpoint), settings.epochs):
        for group in optimizer.param_groups:
            group["lr"] = settings.rate_of(epoch)
        rng, n = np.random.default_rng([settings.seed, epoch]), len(images.labels)
        order = torch.from_numpy(rng.permutation(n)).to(device)
        shift = torch.from_numpy(rng.integers(0, 2 * MARGIN + 1, (n, 2))).to(device)
        mirror = torch.from_numpy(rng.random(n) < 0.5).to(device)
        total = torch.zeros((), device=device)
        model.train()
        for first in range(0, n, settings.batch):
            batch = slice(first, first + settings.batch)
            x = (images.pixels[order[batch]].float() - mean) / deviation
            loss = functional.cross_entropy(
                model(augmented(x, shift[batch], mirror[batch])), images.labels[order[batch]]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(x)
        keep(model, optimizer, settings, checkpoint, epoch + 1)
        yield epoch, float(total) / n


def keep(model: DenseNet, optimizer: torch.optim.SGD, settings: Settings, path: Path, epochs: int) -> None:
    """Write weights, running means and momenta after so many epochs; a kill leaves the last checkpoint."""
    momenta = (optimizer.state[parameter]["momentum_buffer"] for parameter in model.parameters())
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"momentum.{i}": tensor for i, tensor in enumerate(momenta)}
    with files.written(path) as file:
        file.write(save(tensors, {"epochs": str(epochs), "settings": json.dumps(asdict(settings))}))


def resume(model: DenseNet, optimizer: torch.optim.SGD, settings: Settings, path: Path) -> int:
    """Take up a checkpoint where there is one; the epochs that it has behind it."""
    if not path.exists():
        return 0
    with safe_open(path, framework="pt") as file:
        about = file.metadata()
        if json.loads(about["settings"]) != asdict(settings):
            raise ValueError(
                f"{path} was made with {about['settings']}, not {json.dumps(asdict(settings))}: move it away"
            )
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  not a dict
    model.load_state_dict({name[6:]: tensor for name, tensor in tensors.items() if name.startswith("model.")})
    for i, parameter in enumerate(model.parameters()):
        optimizer.state[parameter]["momentum_buffer"] = tensors[f"momentum.{i}"].to(parameter.device)
    return int(about["epochs"])


@torch.no_grad()
def features(model: DenseNet, images: Images, unit: tuple[Tensor, Tensor], batch: int) -> Tensor:
    """Features of images, ``(n, channels)``, scaled by the training images' unit and not augmented."""
    mean, deviation = unit
    model.eval()
    return torch.cat([model.features((part.float() - mean) / deviation) for part in images.pixels.split(batch)])


def make(home: Path, settings: Settings, device: torch.device) -> Path:
    """Train, extract, write; the path of the prepared file."""
    target = home / "cifar10_f.npz"
    if target.exists():
        raise FileExistsError(f"{target} is there already: move it away to make it anew")
    training, test = (images.to(device) for images in read_images(obtain(CIFAR10, home)))
    model = DenseNet(settings).to(device)
    for epoch, loss in train(model, training, settings, home / "cifar10_densenet.safetensors"):
        logger.info("epoch %d of %d: loss %.4f", epoch + 1, settings.epochs, loss)
    seen = [features(model, images, training.unit(), settings.batch) for images in (training, test)]
    wrong = (model.head(seen[1]).argmax(dim=1) != test.labels).double().mean()
    logger.info("test error %.2f %%", 100 * float(wrong))
    X = torch.cat(seen).half().cpu().numpy()
    y = torch.cat([training.labels, test.labels]).cpu().numpy().astype(np.uint8)
    files.write_npz(target, {"X": X, "y": y})
    return target


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--data-home", help="folder of CIFAR-10 and of the result; default GCE_DATA_HOME or a cache folder"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--epochs", type=int, default=Settings.epochs)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    given = parser.parse_args(arguments)
    if given.epochs < 1:
        parser.error(f"--epochs must be 1 or more; got {given.epochs}")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    settings = Settings(epochs=given.epochs, seed=given.seed)
    try:
        path = make(files.data_home(given.data_home), settings, torch.device(given.device))
    except (files.MissingDataError, FileExistsError, ValueError) as error:
        logger.error("%s", error)
        return 1
    logger.info("%s", path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
