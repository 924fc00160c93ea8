# Duckflow in a container: docs/ci.md says how to use it.
FROM python:3.13-slim

RUN apt-get update -q \
    && apt-get install -y -q --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/*

COPY . /tmp/duckflow
RUN python -m venv /opt/duckflow \
    && /opt/duckflow/bin/pip install --no-cache-dir --disable-pip-version-check '/tmp/duckflow[providers,mcp,pdf]' \
    && rm -rf /tmp/duckflow \
    && useradd --create-home --uid 1000 duck

# Tools of your project go here, so that Duckflow can run its tests.

ENV PATH=/opt/duckflow/bin:$PATH
USER duck
WORKDIR /work
ENTRYPOINT ["duckflow"]
