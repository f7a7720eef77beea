"""The compiled kernels: one shared library per instruction set, all from the sources in native/.

Everything else about the package is in pyproject.toml. The libraries have no Python interface of their own:
``gce._utils.native`` picks the one that suits the processor and calls it by ctypes.
"""

from __future__ import annotations

import platform
import sys
import sysconfig
from copy import copy
from pathlib import Path

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


class SeparateObjects(build_ext):
    """Each extension has object files of its own: the same sources are compiled by other flags, at once by ``-j``."""

    def build_extension(self, ext: Extension) -> None:
        own = copy(self)
        own.build_temp = str(Path(self.build_temp) / ext.name)
        build_ext.build_extension(own, ext)


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
    cmdclass={"build_ext": SeparateObjects},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
)
