"""Write ONNX graphs of golden models, which every later runtime must run.

Run as ``python tests/make_onnx_files.py``; only graphs that are missing are written.
"""

import gce
from make_model_files import FOLDER

#: Golden models of format 7: every family and kind of output.
NAMES = ("gce_classifier", "gce_poisson", "gce_quantiles", "gce_ordinal", "gce_labels", "nn_regressor")


def main():
    for name in NAMES:
        path = FOLDER / f"v7_{name}.onnx"
        if not path.exists():
            gce.load(FOLDER / f"v7_{name}.safetensors").to_onnx(path)


if __name__ == "__main__":
    main()
