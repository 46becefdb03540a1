FROM python:3.13-slim AS build
# pip compiles what it installs; nothing is compiled at start
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/ctxr
WORKDIR /src
COPY requirements.lock .
RUN /opt/ctxr/bin/pip install --require-hashes --requirement requirements.lock
COPY . .
RUN pip wheel --no-deps --wheel-dir /wheels . && /opt/ctxr/bin/pip install --no-deps /wheels/*.whl

FROM python:3.13-slim
RUN useradd --create-home --uid 10001 ctxr \
    && install --directory --owner ctxr --group ctxr /var/lib/ctxr
COPY --from=build /opt/ctxr /opt/ctxr
ENV PATH=/opt/ctxr/bin:$PATH PYTHONDONTWRITEBYTECODE=1 CTXR_HOME=/var/lib/ctxr CTXR_HOST=0.0.0.0
# Publish it on this machine alone (-p 127.0.0.1:8765:8765): the log shows a link that signs in; elsewhere set both anew.
ENV CTXR_PUBLIC_URL=http://127.0.0.1:8765 CTXR_LOCAL_SECRET=on
USER ctxr
VOLUME /var/lib/ctxr
EXPOSE 8765
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/health', timeout=2)"]
CMD ["ctxr", "serve"]
