"""A headless Chromium, spoken to through a pipe: pages are opened and asked, and what they complain of is kept.

The protocol is JSON messages that end in a zero byte, written to the browser's descriptor 3 and read from its 4.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
]  # fmt: skip
#: Seconds to wait for a word from it: a slow machine starts it in five.
PATIENCE = 60
# puts the pipes' ends where the protocol wants them; they may stand in each other's way
LAUNCHER = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for end, place in zip(ends, (3, 4)):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A context manager around one browser and one page.

    Attributes
    ----------
    complaints : list of str
        Errors and warnings of the page opened last, from its console, its script and its policy.
    asked : list of str
        Addresses the page opened last has asked for.
    """

    def __enter__(self):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", LAUNCHER, str(to_browser), str(from_browser), *command],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._next, self._session = b"", 0, None
        self.complaints, self.asked = [], []
        try:
            self._attach()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _attach(self):
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._send(f"{domain}.enable")

    def __exit__(self, *_):
        os.close(self._out)
        self._process.terminate()
        self._process.wait(20)
        os.close(self._in)
        self._profile.cleanup()

    def open(self, path, width=1400, height=1000, dark=False):
        """Open a file as a screen of that size would show it."""
        phone = width < 600
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self._send("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._send("Emulation.setEmulatedMedia", features=[scheme])
        self.complaints, self.asked = [], []
        self._loaded = False
        self._send("Page.navigate", url=path.resolve().as_uri())
        while not self._loaded:
            self._receive()

    def evaluate(self, script):
        """The value of an expression, as JSON knows it."""
        answer = self._send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def screenshot(self):
        """What the screen shows, as the bytes of a PNG."""
        return base64.b64decode(self._send("Page.captureScreenshot", format="png")["data"])

    def _send(self, method, **params):
        self._next += 1
        wanted = self._next
        message = {"id": wanted, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == wanted:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _receive(self):
        while b"\0" not in self._buffer:
            there, _, _ = select.select([self._in], [], [], PATIENCE)
            piece = os.read(self._in, 1 << 16) if there else b""
            if not piece:
                raise RuntimeError("the browser has gone" if there else f"the browser said nothing for {PATIENCE} s")
            self._buffer += piece
        line, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(line)
        self._note(message.get("method"), message.get("params"))
        return message

    def _note(self, event, given):
        if event == "Page.loadEventFired":
            self._loaded = True
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(str(given["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(given["args"]))
        elif event == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.complaints.append(given["entry"]["text"])
        elif event == "Network.requestWillBeSent":
            self.asked.append(given["request"]["url"])
