"""The data sets: task, sizes, sources, and the sizes in the paper."""

from __future__ import annotations

from dataclasses import dataclass

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_FIGSHARE = "https://ndownloader.figshare.com/files"


@dataclass(frozen=True)
class Source:
    """A file to download.

    Parameters
    ----------
    file : str
        Its name in the data folder.
    addresses : tuple of str
        Tried in turn: the original first, then copies with the same checksum.
    digest : str
        ``"sha256:..."`` or ``"md5:..."`` as published. If empty, the digest of the first download is recorded and
        required from then on.
    """

    file: str
    addresses: tuple[str, ...]
    digest: str = ""


@dataclass(frozen=True)
class Spec:
    """One data set.

    Parameters
    ----------
    name : str
        The paper's name.
    task : {"regression", "classification"}
    rows, columns, classes : int
        Of the file, before text columns become indicators; ``classes`` is 0 for regression.
    paper : tuple of int
        Training, validation and test rows of the paper's table.
    file : str
        Stem of its ``.npz`` in the data folder; empty if scikit-learn includes the data.
    digest : str
        sha256 of the prepared ``.npz`` that is known to be right; empty: none is known.
    values : str
        sha256 of the right ``X`` and ``y``, see ``gce.datasets.files.values_of``: verified after the conversion of
        sources without a published checksum. Empty: none is known.
    sources : tuple of Source
        What the ``.npz`` is converted from; empty: nothing to download.
    validation_from, test_from : int or None
        Row of the file where a predefined part begins; None: the part is a random split.
    rule : str
        How columns are scaled, a key of ``gce.datasets.scaling.RULES``.
    numeric : int or None
        Columns that are scaled, the first so many; None: all.
    constants : tuple or None
        Shifts and divisors that the reference split uses in place of measured ones.
    origin : int
        Subtracted from the targets: covertype counts its classes from 1, msd its years from 1967.
    stand_in : str
        The data set that is loaded if only its files are present.
    note : str
        Part of the loaded set's note.
    """

    name: str
    task: str
    rows: int
    columns: int
    classes: int
    paper: tuple[int, int, int]
    file: str = ""
    digest: str = ""
    values: str = ""
    sources: tuple[Source, ...] = ()
    validation_from: int | None = None
    test_from: int | None = None
    rule: str = "columns"
    numeric: int | None = None
    constants: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    origin: int = 0
    stand_in: str = ""
    note: str = ""

    @property
    def metric(self) -> str:
        """The metric of the paper: mean absolute error or misclassification rate."""
        return "mae" if self.task == "regression" else "error"


# No checksum of StatLib's file was found published, and it comes by plain http: its numbers are checked when they are
# converted. The right ones are those of the prepared file. In float32 they are also those of boston_house_prices.csv in
# scikit-learn 1.1, which was compared with StatLib's (scikit-learn's issue 10801).
_BOSTON = Source("boston", ("http://lib.stat.cmu.edu/datasets/boston",))

# Checksums of the next four: scikit-learn's source (_california_housing.py, _covtype.py and _kddcup99.py in its
# datasets), which takes the copies on figshare.
_CALIFORNIA = Source(
    "cal_housing.tgz",
    ("https://www.dcc.fc.up.pt/~ltorgo/Regression/cal_housing.tgz", f"{_FIGSHARE}/5976036"),
    "sha256:aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",
)
_COVERTYPE = Source(
    "covtype.data.gz",
    (f"{_UCI}/covtype/covtype.data.gz", f"{_FIGSHARE}/5976039"),
    "sha256:614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
)
_KDD = Source(
    "kddcup.data.gz",
    (f"{_UCI}/kddcup99-mld/kddcup.data.gz", f"{_FIGSHARE}/5976045"),
    "sha256:3b6c942aa0356c0ca35b7b595a26c89d343652c9db428893e7494f837b274292",
)
_KDD_TENTH = Source(
    "kddcup.data_10_percent.gz",
    (f"{_UCI}/kddcup99-mld/kddcup.data_10_percent.gz", f"{_FIGSHARE}/5976042"),
    "sha256:8045aca0d84e70e622d1148d7df782496f6333bf6eb979a1b0837c42a9fd9561",
)

# No published checksum was found. UCI's two addresses may differ in their bytes: whichever came first is recorded.
_MSD = Source(
    "YearPredictionMSD.txt.zip",
    (f"{_UCI}/00203/YearPredictionMSD.txt.zip", "https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip"),
)


def _mnist(file: str, md5: str) -> Source:
    """One of the four files; addresses and md5 as in torchvision's source (torchvision/datasets/mnist.py)."""
    homes = ("http://yann.lecun.com/exdb/mnist", "https://ossci-datasets.s3.amazonaws.com/mnist")
    return Source(file, tuple(f"{home}/{file}" for home in homes), f"md5:{md5}")


_MNIST = (
    _mnist("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
    _mnist("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
    _mnist("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
    _mnist("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
)

#: The images behind cifar10_f. The binary form: the Python form is a pickle. md5 as on the authors' page.
CIFAR10 = Source(
    "cifar-10-binary.tar.gz",
    ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
    "md5:c32a1d4ab5d03f1284b67883e8d87530",
)

# Mean and standard deviation of the ten measured columns over all 581,012 rows, in the two decimals of UCI's
# covtype.info (cut off, not rounded); computed from the data they are the same to 0.01.
_COVERTYPE_CONSTANTS = (
    (2959.36, 155.65, 14.10, 269.43, 46.42, 2350.15, 212.15, 223.32, 142.53, 1980.29),
    (279.98, 111.91, 7.49, 212.55, 58.30, 1559.25, 26.77, 19.77, 38.27, 1324.19),
)

# The reference's two numbers. They are those of all 70,000 raw images (33.38596 and 78.65437), before deskewing.
_MNIST_CONSTANTS = ((33.386,), (78.654,))

_KDD_TENTH_SPEC = Spec(
    "kddcup99", "classification", 494_021, 41, 23, (2_645_152, 661_288, 1_591_991),
    file="kddcup99_10pct", digest="36d56d9c39fe30c686906ed12878d9e199d7c23e761d241baba946965b112d8d",
    sources=(_KDD_TENTH,), numeric=38, note="10 % of the rows",
)  # fmt: skip

_ALL = (
    Spec("diabetes", "regression", 442, 10, 0, (282, 71, 89)),
    Spec(
        "boston", "regression", 506, 13, 0, (323, 81, 102),
        file="boston", digest="dff39b59efe2924a970470c0acdb3af9d4cc518ddeb528a2f6fe3744d9435ee2",
        values="209f4611240a6c1ef2a04fbe5e03878e8a08992eae88046f2a4fc0f650b264aa", sources=(_BOSTON,),
    ),
    Spec(
        "ca_housing", "regression", 20_640, 8, 0, (13_209, 3_303, 4_128),
        file="california", digest="0577c6d218aef07a0ca2d558e13db2fce746d0eb4fb1c3b6b9a91af47b2609c3",
        sources=(_CALIFORNIA,),
    ),
    Spec(
        "msd", "regression", 515_345, 90, 0, (296_777, 74_195, 144_373),
        file="msd", sources=(_MSD,), test_from=463_715, rule="timbre", origin=1967,
    ),
    Spec("iris", "classification", 150, 4, 3, (96, 24, 30)),
    Spec("wine", "classification", 178, 13, 3, (113, 29, 36)),
    Spec("breast_cancer", "classification", 569, 30, 2, (364, 91, 114)),
    Spec("digits", "classification", 1_797, 64, 10, (1_149, 288, 360)),
    Spec(
        "cifar10_f", "classification", 60_000, 342, 10, (32_000, 8_000, 20_000),
        file="cifar10_f", digest="3b0f9768a16b08703542c71ed091c2a2c7d305a8769e1177e3452e4165557e44", test_from=50_000,
    ),
    Spec(
        "mnist", "classification", 70_000, 784, 10, (38_400, 9_600, 22_000),
        file="mnist", digest="c7b204b9bf8d4cbf1f60997c3d5e4e18647f07fe0114da744000099412c49239", sources=_MNIST,
        test_from=60_000, rule="common", constants=_MNIST_CONSTANTS,
    ),
    Spec(
        "covertype", "classification", 581_012, 54, 7, (11_340, 2_268, 569_672),
        file="covertype", digest="44d50dc83ad14da583626d8d05f6f2a9400e02c55fd26f878bcdcc6d3241b0a5",
        sources=(_COVERTYPE,), validation_from=11_340, test_from=15_120, numeric=10, constants=_COVERTYPE_CONSTANTS,
        origin=1,
    ),
    Spec(
        "kddcup99", "classification", 4_898_431, 41, 23, (2_645_152, 661_288, 1_591_991),
        file="kddcup99", sources=(_KDD,), numeric=38, stand_in="kddcup99_10pct",
    ),
)  # fmt: skip

#: The twelve, in the paper's order.
NAMES: tuple[str, ...] = tuple(spec.name for spec in _ALL)

#: Those with fewer than 10,000 training rows, which the paper tunes more.
SMALL: tuple[str, ...] = ("diabetes", "boston", "iris", "wine", "breast_cancer", "digits")

#: By the paper's name, and the tenth of kddcup99 by its own.
SPECS: dict[str, Spec] = {**{spec.name: spec for spec in _ALL}, "kddcup99_10pct": _KDD_TENTH_SPEC}

_ALIASES = {"california": "ca_housing"}


def find(name: str) -> Spec:
    """The specification of a data set, by its name in the paper or in the data folder."""
    key = _ALIASES.get(name, name)
    if key not in SPECS:
        names = ", ".join([*NAMES, *_ALIASES, "kddcup99_10pct"])
        raise ValueError(f"unknown data set {name!r}: expected one of {names}")
    return SPECS[key]
