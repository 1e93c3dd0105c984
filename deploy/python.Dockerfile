# The image of deploy/kuberay.yaml: Python, Ray, the package bem and the program. UNTESTED: nobody has built this file yet.
#
#   docker build -f deploy/python.Dockerfile -t bem-python:0.1.0 .
#
# The processor must have AVX2 (.cargo/config.toml), and every node the same version of Ray as rayVersion in kuberay.yaml.
FROM rust:1-bookworm AS built
RUN apt-get update && apt-get install --yes --no-install-recommends g++ python3 python3-pip \
    && pip install --break-system-packages "maturin>=1.9,<2"
COPY . /bem
WORKDIR /bem
RUN cargo build --release --package bem && maturin build --release --manifest-path crates/bem-python/Cargo.toml --out /wheels

FROM rayproject/ray:2.60.0-py311
USER root
COPY --from=built /bem/target/release/bem /usr/local/bin/bem
COPY --from=built /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl
USER ray
