# The service with Icarus Verilog 12, as an ordinary user, without build tools.
#   docker build -t verilog-taskapp .
#   docker run --rm -p 8103:8103 -e ENVIRONMENT_API_KEY=... verilog-taskapp
FROM debian:trixie-slim AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY verilog_taskapp verilog_taskapp
COPY rubrics rubrics
RUN python3 -m venv /opt/verilog-taskapp \
 && /opt/verilog-taskapp/bin/pip install --no-cache-dir --disable-pip-version-check . \
 && /opt/verilog-taskapp/bin/pip uninstall --yes pip

FROM debian:trixie-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 iverilog ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 taskapp \
 && useradd --uid 10001 --gid taskapp --create-home --home-dir /var/lib/verilog-taskapp --shell /usr/sbin/nologin taskapp
COPY --from=build /opt/verilog-taskapp /opt/verilog-taskapp
ENV PATH=/opt/verilog-taskapp/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    VERILOG_HOST=0.0.0.0 \
    VERILOG_PORT=8103 \
    VERILOG_CACHE_DIR=/var/lib/verilog-taskapp/cache
USER 10001:10001
WORKDIR /var/lib/verilog-taskapp
EXPOSE 8103
HEALTHCHECK --interval=15s --timeout=3s --start-period=10s \
  CMD ["python3", "-c", "import os, urllib.request as u; u.urlopen(f'http://127.0.0.1:{os.environ[\"VERILOG_PORT\"]}/ready', timeout=2)"]
STOPSIGNAL SIGTERM
CMD ["verilog-taskapp", "serve"]
