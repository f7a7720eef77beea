"""The compiled kernels: one shared library per instruction set, all from the sources in native/.

Everything else about the package is in pyproject.toml. The libraries have no Python interface of their own:
``gce._utils.native`` picks the one that suits the processor and calls it by ctypes.
"""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).parent
SOURCES = sorted(str(path.relative_to(HERE)) for path in HERE.glob("native/*.cpp"))
#: Headers that kernels of GPUs share, which are compiled at run time, and come with the package.
SHARED = "src/gce/kernels"
HEADERS = sorted(str(path.relative_to(HERE)) for own in ("native", SHARED) for path in HERE.glob(f"{own}/*.hpp"))
#: Flags of each instruction set; products are fused where the source says so and nowhere else, so that all give the
#: same bits.
GNU = ["-std=c++17", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden"]
LEVELS = {
    "baseline": ["-march=x86-64"],
    "avx2": ["-march=x86-64-v3"],
    "avx512": ["-march=x86-64-v4"],
}
MSVC = ["/std:c++17", "/O2", "/fp:precise"]
MSVC_LEVELS = {"baseline": [], "avx2": ["/arch:AVX2"], "avx512": ["/arch:AVX512"]}

#: Python without a GIL has no stable interface before 3.15: there a wheel is for one version of Python.
STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")
INTERFACE = [("Py_LIMITED_API", "0x030B0000")] if STABLE else []


def processors() -> int:
    """How many sources are compiled at a time: MAX_JOBS, as for other packages, or the processors of this process."""
    given = os.environ.get("MAX_JOBS")
    if given is not None:
        if not given.isdecimal() or int(given) == 0:
            raise SystemExit(f"MAX_JOBS must be a positive integer, got {given!r}")
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ParallelBuild(build_ext):
    """Sources of all extensions are compiled at once, by ``--parallel`` or else by :func:`processors` compilers.

    Each extension has object files of its own: the same sources are compiled by other flags.
    """

    def build_extensions(self) -> None:
        jobs = processors() if self.parallel in (None, True) else int(self.parallel)
        # one thread for each extension waits for its sources, which share the compilers
        self.parallel = len(self.extensions)
        with ThreadPoolExecutor(jobs) as self.compilers:
            super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        own = copy(self)
        own.build_temp = str(Path(self.build_temp) / ext.name)
        # compilers make the folders of their object files themselves, but not at once
        for source in ext.sources:
            (Path(own.build_temp) / source).parent.mkdir(parents=True, exist_ok=True)
        own.compiler = copy(self.compiler)
        own.compiler.compile = self.compile_at_once
        build_ext.build_extension(own, ext)

    def compile_at_once(self, sources: list[str], **options: Any) -> list[str]:
        """Compile each source by a compiler of its own, the longest first; object files in the order of the sources."""
        longest_first = sorted(sources, key=lambda source: -Path(source).stat().st_size)
        begun = {source: self.compilers.submit(self.compiler.compile, [source], **options) for source in longest_first}
        return [name for source in sources for name in begun[source].result()]


def extensions() -> list[Extension]:
    windows = sys.platform == "win32"
    common, levels = (MSVC, MSVC_LEVELS) if windows else (GNU, LEVELS)
    if platform.machine().lower() not in ("x86_64", "amd64"):
        levels = {"baseline": []}
    return [
        Extension(
            f"gce._utils._native_{level}",
            SOURCES,
            depends=HEADERS,
            include_dirs=[SHARED],
            define_macros=[("GCE_MODULE", f"PyInit__native_{level}"), *INTERFACE],
            extra_compile_args=[*common, *flags],
            extra_link_args=["-s", "-pthread"] if sys.platform == "linux" else [],
            py_limited_api=STABLE,
        )
        for level, flags in levels.items()
    ]


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": ParallelBuild},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
)
