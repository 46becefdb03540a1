# The base by its exact version; by its digest as well where you keep one: --build-arg PYTHON=python@sha256:…
ARG PYTHON=python:3.13.7-slim-trixie

FROM ${PYTHON} AS build
# pip compiles what it installs; nothing is compiled at start
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/ctxr
WORKDIR /src
COPY requirements.lock .
RUN /opt/ctxr/bin/pip install --require-hashes --requirement requirements.lock
COPY . .
RUN pip wheel --no-deps --wheel-dir /wheels . && /opt/ctxr/bin/pip install --no-deps /wheels/*.whl

# What is in the image, for who looks for known holes: its bill of materials goes along.
FROM build AS materials
COPY requirements-sbom.lock .
RUN python -m venv /opt/sbom && /opt/sbom/bin/pip install --require-hashes --requirement requirements-sbom.lock \
    && /opt/sbom/bin/cyclonedx-py environment --output-reproducible --output-file /context-registry.cdx.json /opt/ctxr

FROM ${PYTHON}
RUN useradd --create-home --uid 10001 ctxr \
    && install --directory --owner ctxr --group ctxr /var/lib/ctxr
COPY --from=build /opt/ctxr /opt/ctxr
COPY --from=materials /context-registry.cdx.json /usr/share/sbom/
# Only the folder of CTXR_HOME and /tmp are written to: the rest may be read only (docker run --read-only --tmpfs /tmp).
ENV PATH=/opt/ctxr/bin:$PATH PYTHONDONTWRITEBYTECODE=1 CTXR_HOME=/var/lib/ctxr CTXR_HOST=0.0.0.0
# Publish it on this machine alone (-p 127.0.0.1:8765:8765): the log shows a link that signs in; elsewhere set both anew.
ENV CTXR_PUBLIC_URL=http://127.0.0.1:8765 CTXR_LOCAL_SECRET=on
USER ctxr
VOLUME /var/lib/ctxr
EXPOSE 8765
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/health', timeout=2)"]
CMD ["ctxr", "serve"]
