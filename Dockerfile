# syntax=docker/dockerfile:1
# One image for controllers, runners and the CLI: `docker build -t cronring .`

FROM python:3.13-slim AS build
WORKDIR /src
RUN python -m venv /opt/cronring
COPY pyproject.toml README.md LICENSE ./
COPY controller controller
COPY cronring cronring
COPY protos protos
COPY schema schema
COPY sdk sdk
COPY sql sql
RUN /opt/cronring/bin/pip install --no-cache-dir ./sdk .

FROM python:3.13-slim
# Whoever runs the image, and whom its runners have their verbs run as (--run-as verbs).
RUN useradd --system --uid 10001 --create-home cronring && useradd --system --uid 10002 --create-home verbs
COPY --from=build /opt/cronring /opt/cronring
ENV PATH=/opt/cronring/bin:$PATH \
    PYTHONUNBUFFERED=1
USER cronring
WORKDIR /home/cronring
# Volumes that are mounted here begin as this user's own.
RUN mkdir -m 0700 trust join
ENTRYPOINT ["cronring"]
CMD ["--help"]
