"""Tests of numerics as other processors run them: BLAS, torch, numpy and compiled loops are told to use less.

``make processors`` runs all of ``FILES`` (six minutes on 16 cores with ``PYTEST_ADDOPTS="-n 14"``, far longer on two);
``make processors ARGS="inference same_bits"`` runs some.
A processor can only be imitated by one that knows its instructions: settings beyond this one's are left out by the
libraries themselves.
"""

import logging
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FILES = [
    "same_bits", "inference", "networks", "oracles", "trees_checkpoints", "trees_files", "trees_inference",
    "tree_properties", "estimators", "algorithms", "active_set", "splits", "checkpoints", "model_files", "sparse",
    "losses", "calibration", "simplex", "simplex_optimum", "editing", "editing_external", "mixed_models",
    "sign_trees", "parallel", "joint_training", "stacking", "theory", "union", "monotone",
    "line_search", "qp", "elimination", "extreme_numbers", "sparse_families", "log_probabilities",
    "shapley", "shap_values", "importances",
]  # fmt: skip
#: Each with its instruction sets for torch, MKL, OpenBLAS, the kernels of native/ and numpy, and its number of threads.
PROCESSORS = {
    "sse4, one thread": ("default", "SSE4_2", "COMPATIBLE", "Nehalem", "baseline", "X86_V3 X86_V4 AVX512_ICL", 1),
    "avx2, one thread": ("avx2", "AVX2", "AVX2", "Haswell", "avx2", "X86_V4 AVX512_ICL", 1),
    "avx2, two threads": ("avx2", "AVX2", "AUTO", "Zen", "avx2", "X86_V4 AVX512_ICL", 2),
    "avx512, two threads": ("avx512", "AVX512", "AVX512", "SkylakeX", "avx512", "", 2),
}

logger = logging.getLogger("processors")


def environment(torch, mkl, reproducible, openblas, kernels, without, threads):
    """Variables under which a process believes in another processor."""
    return {
        "ATEN_CPU_CAPABILITY": torch,
        "MKL_ENABLE_INSTRUCTIONS": mkl,
        "MKL_CBWR": reproducible,
        "OPENBLAS_CORETYPE": openblas,
        "GCE_CPU": kernels,
        "NPY_DISABLE_CPU_FEATURES": without,
        **{f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "MKL", "OPENBLAS")},
    }


def main(names):
    files = [str(HERE / f"test_{name}.py") for name in names or FILES]
    red = []
    for name, settings in PROCESSORS.items():
        logger.info("%s", name)
        given = {**os.environ, **environment(*settings)}
        if subprocess.run([sys.executable, "-m", "pytest", *files], env=given, cwd=HERE.parent).returncode:
            red.append(name)
    if red:
        logger.error("red: %s", "; ".join(red))
    return len(red)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    sys.exit(main(sys.argv[1:]))
