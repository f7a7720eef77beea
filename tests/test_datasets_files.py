"""Files: downloads from a local server, checksums, and what a kill leaves behind."""

import hashlib
import http.server
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from gce import datasets
from gce.datasets import download, files, registry
from gce.datasets.registry import Source

ROWS = np.random.default_rng(0).uniform(0, 100, (506, 14)).round(3)


def statlib():
    """A made-up boston in StatLib's form."""
    lines = ["prose"] * 22
    for row in ROWS:
        lines += [" ".join(map(str, row[:11])), " ".join(map(str, row[11:]))]
    return ("\n".join(lines) + "\n").encode()


BODY = statlib()
DIGEST = hashlib.sha256(BODY).hexdigest()
VALUES = files.values_of({"X": ROWS[:, :13], "y": ROWS[:, 13]})


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path == "/missing":
            self.send_error(404)
            return
        body = b"another file" if self.path == "/wrong" else BODY
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.path == "/slow":
            self.wfile.write(body[:100])
            self.wfile.flush()
            self.server.released.wait(30)
            return
        self.wfile.write(body[: len(body) // 2] if self.path == "/truncated" else body)

    def log_message(self, *_):
        pass


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked, server.released = [], threading.Event()
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def address(server):
    return lambda path: f"http://127.0.0.1:{server.server_port}{path}"


@pytest.fixture
def offer(monkeypatch):
    """Make boston come from given addresses, with a published checksum or without."""

    def offer(*addresses, digest=f"sha256:{DIGEST}"):
        source = Source("boston", addresses, digest)
        spec = replace(registry.SPECS["boston"], sources=(source,), values=VALUES)
        monkeypatch.setitem(registry.SPECS, "boston", spec)

    return offer


def names(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_missing_file_is_downloaded_converted_and_kept(tmp_path, server, address, offer):
    home = tmp_path / "made" / "as needed"
    offer(address("/boston"))
    assert not datasets.present("boston", home)
    first = datasets.load("boston", data_home=home)
    assert names(home) == ["boston", "boston.npz", "boston.npz.sha256"]
    assert datasets.present("boston", home)
    again = datasets.load("boston", data_home=home, download=False)
    assert server.asked == ["/boston"]
    np.testing.assert_array_equal(first.X_test, again.X_test)
    y = np.concatenate([first.y_train, first.y_val, first.y_test])
    np.testing.assert_array_equal(np.sort(y), np.sort(ROWS[:, 13]))
    (home / "boston.npz").unlink()
    assert datasets.present("boston", home)
    np.testing.assert_array_equal(datasets.load("boston", data_home=home, download=False).X_test, first.X_test)


@pytest.mark.parametrize(
    ("path", "reason"),
    [("/missing", "HTTP 404"), ("/truncated", "ended after"), ("/wrong", "expected sha256 " + DIGEST)],
)
def test_a_bad_answer_leaves_nothing_and_the_next_address_is_tried(tmp_path, address, offer, path, reason):
    offer(address(path))
    with pytest.raises(datasets.MissingDataError) as error:
        datasets.load("boston", data_home=tmp_path)
    for part in (reason, address(path), str(tmp_path / "boston")):
        assert part in str(error.value)
    assert names(tmp_path) == []
    offer(address(path), address("/boston"))
    assert datasets.load("boston", data_home=tmp_path).name == "boston"


def test_a_truncated_answer_says_how_much_came(tmp_path, address, offer):
    offer(address("/truncated"), digest="")
    with pytest.raises(datasets.MissingDataError, match=f"ended after {len(BODY) // 2} of {len(BODY)} bytes"):
        datasets.load("boston", data_home=tmp_path)
    assert names(tmp_path) == []


def test_offline_gives_the_address_and_the_place(tmp_path, offer):
    offer("http://127.0.0.1:9/boston")  # nobody listens on the discard port
    for allowed in (True, False):
        with pytest.raises(datasets.MissingDataError) as error:
            datasets.load("boston", data_home=tmp_path, download=allowed)
        message = str(error.value)
        assert "http://127.0.0.1:9/boston" in message
        assert str(tmp_path) in message
        assert "\n" not in message
        assert ("refused" in message) == allowed


def test_features_that_no_address_gives_away_are_explained(tmp_path):
    with pytest.raises(
        datasets.MissingDataError, match=r"cifar10_f\.npz is not in .* python -m paper\.cifar10_features"
    ):
        datasets.load("cifar10_f", data_home=tmp_path)


def test_a_file_put_there_by_hand_is_used(tmp_path, offer):
    offer("http://127.0.0.1:9/boston")
    (tmp_path / "boston").write_bytes(BODY)
    assert datasets.present("boston", tmp_path)
    assert len(datasets.load("boston", data_home=tmp_path, download=False).y_test) == 102


@pytest.mark.parametrize("spoil", [lambda body: body[:-7], lambda body: body.replace(b"5", b"6", 1)])
def test_a_spoilt_source_is_refused_and_kept(tmp_path, offer, spoil):
    offer("http://127.0.0.1:9/boston")
    (tmp_path / "boston").write_bytes(spoil(BODY))
    with pytest.raises(datasets.CorruptDataError) as error:
        datasets.load("boston", data_home=tmp_path)
    found = hashlib.sha256(spoil(BODY)).hexdigest()
    assert all(part in str(error.value) for part in (str(tmp_path / "boston"), DIGEST, found))
    assert (tmp_path / "boston").read_bytes() == spoil(BODY)


def test_without_a_published_checksum_the_first_one_is_recorded_and_kept_to(tmp_path, address, offer):
    offer(address("/boston"), digest="")
    datasets.load("boston", data_home=tmp_path)
    assert (tmp_path / "boston.sha256").read_text() == f"{DIGEST}  boston\n"
    (tmp_path / "boston.npz").unlink()
    (tmp_path / "boston").write_bytes(BODY[:-3])
    with pytest.raises(datasets.CorruptDataError, match=rf"{DIGEST}.*and boston\.sha256 too"):
        datasets.load("boston", data_home=tmp_path)
    (tmp_path / "boston").unlink()
    offer(address("/wrong"), digest="")
    with pytest.raises(datasets.MissingDataError, match=rf"{DIGEST}.*recorded in boston\.sha256.*move that away"):
        datasets.load("boston", data_home=tmp_path)
    assert (tmp_path / "boston.sha256").read_text().startswith(DIGEST)


def test_a_source_that_changed_is_taken_once_both_files_are_moved_as_told(tmp_path, address):
    changed, source = Source("boston", (address("/wrong"),)), Source("boston", (address("/boston"),))
    download.obtain(source, tmp_path)
    (tmp_path / "boston").unlink()
    with pytest.raises(datasets.MissingDataError):
        download.obtain(changed, tmp_path)
    (tmp_path / "boston.sha256").unlink()
    assert download.obtain(changed, tmp_path).read_bytes() == b"another file"


def test_other_numbers_than_bostons_are_refused_on_first_sight(tmp_path):
    (tmp_path / "boston").write_bytes(BODY)
    with pytest.raises(datasets.CorruptDataError, match=rf"boston does not hold the numbers of boston.*{VALUES}"):
        datasets.load("boston", data_home=tmp_path, download=False)
    assert names(tmp_path) == ["boston", "boston.sha256"]


def test_values_are_the_numbers_not_their_form():
    X, y = ROWS[:, :13], ROWS[:, 13]
    same = {"X": np.asfortranarray(X.astype(">f4")), "y": y.astype(np.float32), "feature_names": np.array(["a"])}
    assert files.values_of(same) == VALUES
    little = b"".join(struct.pack("<f", x) for x in [*X.ravel(), *y])
    assert hashlib.sha256(little).hexdigest() == VALUES
    assert files.values_of({"X": np.nextafter(np.float32(X), np.float32(0)), "y": y}) != VALUES


def test_a_page_in_place_of_the_file_is_refused(tmp_path, offer):
    offer("http://127.0.0.1:9/boston", digest="")
    (tmp_path / "boston").write_text("<html>moved</html>\n" * 50)
    with pytest.raises(datasets.CorruptDataError, match="could not be read as boston"):
        datasets.load("boston", data_home=tmp_path)
    (tmp_path / "boston").write_bytes(b"\n".join(BODY.splitlines()[:-2]))
    (tmp_path / "boston.sha256").unlink()
    with pytest.raises(datasets.CorruptDataError, match=r"\(505, 13\)"):
        datasets.load("boston", data_home=tmp_path)
    assert "boston.npz" not in names(tmp_path)


@pytest.mark.parametrize("spoil", [lambda data: data[:-100], lambda data: data[:-1] + bytes([data[-1] ^ 1])])
def test_a_spoilt_prepared_file_is_refused_and_kept(tmp_path, address, offer, spoil):
    offer(address("/boston"))
    datasets.load("boston", data_home=tmp_path)
    path = tmp_path / "boston.npz"
    good = path.read_bytes()
    path.write_bytes(spoil(good))
    with pytest.raises(datasets.CorruptDataError) as error:
        datasets.load("boston", data_home=tmp_path)
    expected, found = (hashlib.sha256(data).hexdigest() for data in (good, spoil(good)))
    assert all(part in str(error.value) for part in (str(path), expected, found))
    assert path.read_bytes() == spoil(good)


def test_a_prepared_file_of_unknown_origin_is_refused_until_vouched_for(tmp_path, monkeypatch):
    path = tmp_path / "msd.npz"
    rows = np.ones((10, 90), dtype=np.float32) * np.arange(10, dtype=np.float32)[:, None]
    np.savez(path, X=rows, y=np.arange(1990, 2000))
    spec = replace(registry.SPECS["msd"], rows=10, test_from=8)
    monkeypatch.setitem(registry.SPECS, "msd", spec)
    with pytest.raises(datasets.CorruptDataError, match=r"msd\.npz\.sha256, which does not exist"):
        datasets.load("msd", data_home=tmp_path)
    (tmp_path / "msd.npz.sha256").write_text(hashlib.sha256(path.read_bytes()).hexdigest())
    np.testing.assert_array_equal(datasets.load("msd", data_home=tmp_path).y_test, [31.0, 32.0])


def test_the_known_checksum_vouches_for_a_prepared_file(tmp_path, monkeypatch):
    np.savez(tmp_path / "boston.npz", X=ROWS[:, :13], y=ROWS[:, 13])
    known = files.digest_of(tmp_path / "boston.npz")
    monkeypatch.setitem(registry.SPECS, "boston", replace(registry.SPECS["boston"], digest=known))
    assert len(datasets.load("boston", data_home=tmp_path).y_train) == 323


def test_a_folder_that_cannot_be_written_is_read(tmp_path, offer, monkeypatch):
    offer("http://127.0.0.1:9/boston", digest="")
    (tmp_path / "boston").write_bytes(BODY)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert len(datasets.load("boston", data_home=tmp_path).y_train) == 323
    assert names(tmp_path) == ["boston"]


KILLED = """
import sys
from pathlib import Path
from gce.datasets.download import obtain
from gce.datasets.registry import Source
obtain(Source("boston", (sys.argv[1],)), Path(sys.argv[2]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_kill_midway_leaves_no_file_under_its_name_and_no_part_for_good(tmp_path, address):
    process = subprocess.Popen([sys.executable, "-c", KILLED, address("/slow"), str(tmp_path)])
    try:
        deadline = time.monotonic() + 60
        while not names(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    left = names(tmp_path)
    assert len(left) == 1
    assert left[0].startswith(".boston.")
    assert left[0].endswith(".part")
    other = tmp_path / ".boston.npz.1-0123abcd.part"  # begins alike, but is another file's
    other.touch()
    source, yesterday = Source("boston", (address("/boston"),)), time.time() - 90_000
    download.obtain(source, tmp_path)
    assert names(tmp_path) == sorted([*left, other.name, "boston", "boston.sha256"])  # a young part may be in use
    for part in (tmp_path / left[0], other):
        os.utime(part, (yesterday, yesterday))
    (tmp_path / "boston").unlink()
    assert download.obtain(source, tmp_path).read_bytes() == BODY
    assert names(tmp_path) == sorted([other.name, "boston", "boston.sha256"])


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def interrupted():
        with files.written(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]
    with files.written(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"


def test_progress_is_shown_on_a_terminal_only(tmp_path, address, monkeypatch, capsys):
    source = Source("boston", (address("/boston"),))
    download.obtain(source, tmp_path / "quiet")
    assert capsys.readouterr().err == ""
    pytest.importorskip("rich")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    download.obtain(source, tmp_path / "shown")
    assert "boston" in capsys.readouterr().err


def test_progress_does_without_rich(tmp_path, address, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    download.obtain(Source("boston", (address("/boston"),)), tmp_path)
    assert capsys.readouterr().err == ""


def test_the_data_folder_is_given_or_set_or_a_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("GCE_DATA_HOME", str(tmp_path / "set"))
    assert files.data_home(tmp_path / "given") == tmp_path / "given"
    assert files.data_home() == tmp_path / "set"
    monkeypatch.delenv("GCE_DATA_HOME")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert files.data_home() == tmp_path / "cache" / "gce"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.data_home() == tmp_path / ".cache" / "gce"
