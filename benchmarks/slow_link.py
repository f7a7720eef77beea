"""Hosts on this machine with slow links between them, without the kernel's netem: for root, on Linux with a C compiler.

Each host is a network namespace with a TUN device, and slow_link.c carries the packets among the devices: every host
sends through a line of its own, which has a rate and a delay. Nothing leaves the machine. Everything ends with the
block, with the process that made it, and after a limit of time.

    with Hosts(2, Line(bits=1e9, delay=0.01)) as hosts:
        hosts.check()  # the round trip and the rate that two processes see
        subprocess.run([*hosts.inside(0), "ping", "-c", "3", hosts.address(1)])
"""

from __future__ import annotations

import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Kernel settings of a host: windows that hold the bytes on their way, which only grow, as no packet is lost. cubic,
#: the default of most machines, cannot be set in a namespace unless it is allowed on the whole machine; reno can.
SETTINGS = {
    "net.ipv4.tcp_congestion_control": "reno",
    "net.ipv4.tcp_rmem": "4096 131072 33554432",
    "net.ipv4.tcp_wmem": "4096 65536 33554432",
    "net.ipv6.conf.all.disable_ipv6": "1",
}
MTU = 1500
PORT = 29499
#: Round trips of a check, and the bytes of its two transfers: the first one opens the window of TCP.
TRIPS, OPENING, BULK = 50, 32_000_000, 128_000_000


@dataclass(frozen=True)
class Line:
    """What a host sends through.

    Parameters
    ----------
    bits : float
        Per second.
    delay : float
        Seconds that a packet is on its way, in one direction.
    """

    bits: float
    delay: float


class Hosts:
    """Network namespaces whose packets reach each other through slow lines.

    Parameters
    ----------
    count : int
        Hosts, from 2 to 16.
    line : Line
    limit : int, default 1800
        Seconds after which the packets stop.

    Attributes
    ----------
    carried : dict
        After the block: packets and bytes, lost packets, and the seconds of a processor that carrying them took.
    """

    def __init__(self, count: int, line: Line, limit: int = 1800) -> None:
        self.count, self._line, self._limit = count, line, limit
        self.names = [f"gce-host-{os.getpid()}-{rank}" for rank in range(count)]
        self.carried: dict[str, Any] = {}
        self._relay: subprocess.Popen[str] | None = None

    def __enter__(self) -> Hosts:
        remove_abandoned()
        try:
            for name in self.names:
                run("ip", "netns", "add", name)
            with tempfile.TemporaryDirectory() as folder:
                self._relay = self._started(Path(folder))
            for rank in range(self.count):
                self._configure(rank)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _started(self, folder: Path) -> subprocess.Popen[str]:
        program = folder / "slow_link"
        run("cc", "-O2", "-o", str(program), str(Path(__file__).with_suffix(".c")))
        numbers = [self._line.bits / 8, round(self._line.delay * 1e9), self._limit]
        command = [str(program), *map(str, numbers), *self.names]
        relay = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert relay.stdout is not None
        if relay.stdout.readline() != "ready\n":
            raise RuntimeError(f"{' '.join(command)} ended with status {relay.wait()}: it needs root and /dev/net/tun")
        # a packet must not wait for the time slice of a process that computes
        os.sched_setscheduler(relay.pid, os.SCHED_FIFO, os.sched_param(1))
        return relay

    def _configure(self, rank: int) -> None:
        inside, device = self.inside(rank), self.device(rank)
        run(*inside, "sysctl", "-q", *(f"{name}={value}" for name, value in SETTINGS.items()))
        run(*inside, "ip", "address", "add", f"{self.address(rank)}/24", "dev", device)
        run(*inside, "ip", "link", "set", "lo", "up")
        run(*inside, "ip", "link", "set", device, "mtu", str(MTU), "up")

    def __exit__(self, *error: object) -> None:
        try:
            if self._relay is not None:
                self.carried = self._ended(self._relay)
        finally:
            for name in self.names:
                remove(name)

    def _ended(self, relay: subprocess.Popen[str]) -> dict[str, Any]:
        relay.send_signal(signal.SIGTERM)
        told, _ = relay.communicate(timeout=10)
        if relay.returncode:
            raise RuntimeError(f"the process that carries packets ended with status {relay.returncode}")
        packets, size, lost, busy = map(int, told.split())
        return {"packets": packets, "bytes": size, "lost": lost, "processor_seconds": busy / 1e6}

    def inside(self, rank: int) -> list[str]:
        """The words before a command that runs on a host."""
        return ["ip", "netns", "exec", self.names[rank]]

    def address(self, rank: int) -> str:
        """The address of a host."""
        return f"10.77.0.{rank + 1}"

    def device(self, rank: int) -> str:
        """The network device of a host."""
        return f"gce{rank}"

    def check(self) -> dict[str, float]:
        """The round trip of a byte, in seconds, and the bytes per second of a long transfer, as TCP sees them."""
        own = [sys.executable, __file__]
        answering = [*self.inside(1), *own, "answer", self.address(1)]
        asking = [*self.inside(0), *own, "ask", self.address(1)]
        with subprocess.Popen(answering, stdout=subprocess.PIPE) as other:
            try:
                assert other.stdout is not None
                other.stdout.readline()
                done = subprocess.run(asking, stdout=subprocess.PIPE, check=True, timeout=120)
                other.wait(timeout=10)
            finally:
                other.kill()
        return json.loads(done.stdout)


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def remove(name: str) -> None:
    subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL, check=False)


def remove_abandoned() -> None:
    """Remove hosts of processes that were killed."""
    for path in Path("/run/netns").glob("gce-host-*-*"):
        if not Path("/proc", path.name.split("-")[2]).exists():
            remove(path.name)


def answer(address: str) -> None:
    """Answer each byte with one, then each transfer with one byte."""
    with socket.create_server((address, PORT)) as server:
        os.write(1, b"ready\n")
        connection, _ = server.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(TRIPS):
                receive(connection, 1)
                connection.sendall(b"x")
            for size in (OPENING, BULK):
                receive(connection, size)
                connection.sendall(b"x")


def ask(address: str) -> None:
    """Print the median of the round trips, and the rate of the second transfer without the way of its answer."""
    with socket.create_connection((address, PORT), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        trips = [timed(connection, 1) for _ in range(TRIPS)]
        timed(connection, OPENING)
        trip, seconds = statistics.median(trips), timed(connection, BULK)
    os.write(1, json.dumps({"round_trip": trip, "rate": BULK / (seconds - trip)}).encode())


def timed(connection: socket.socket, size: int) -> float:
    sent, began = bytes(size), time.perf_counter()
    connection.sendall(sent)
    receive(connection, 1)
    return time.perf_counter() - began


def receive(connection: socket.socket, size: int) -> None:
    buffer = bytearray(min(size, 1 << 20))
    while size:
        got = connection.recv_into(buffer, min(size, len(buffer)))
        if not got:
            raise ConnectionError("the other host closed the connection")
        size -= got


if __name__ == "__main__":
    {"answer": answer, "ask": ask}[sys.argv[1]](sys.argv[2])
