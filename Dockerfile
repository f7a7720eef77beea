# gce's command line, warm: `docker build -t gce .`, then `docker run --rm -v "$PWD:/data" gce fit train.csv ...`.
# Another Python: --build-arg PYTHON=3.13; torch for NVIDIA GPUs: --build-arg TORCH=https://pypi.org/simple.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS build
RUN apt-get update \
 && apt-get install --yes --no-install-recommends g++ \
 && rm -rf /var/lib/apt/lists/*
# builds of torch without CUDA, which are a tenth of the size
ARG TORCH=https://download.pytorch.org/whl/cpu
ENV PIP_EXTRA_INDEX_URL=${TORCH} PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/gce
COPY constraints.txt /source/
RUN /opt/gce/bin/pip install --constraint /source/constraints.txt torch==2.13.0
COPY . /source
# an environment without the compiler, the sources and what built them
RUN /opt/gce/bin/pip install --constraint /source/constraints.txt "/source[cli,onnx,arrow]"

FROM python:${PYTHON}-slim
COPY --from=build /opt/gce /opt/gce
ENV PATH=/opt/gce/bin:$PATH
RUN useradd --create-home gce && install --directory --owner=gce /data
RUN gce warmup
USER gce
WORKDIR /data
ENTRYPOINT ["gce"]
