# A service for a gallery in /data: docker build -t simtree . && docker run -p 8000:8000 -v ./data:/data simtree
# The service runs as the user 10001, who has to own what it reads and writes there: sudo chown -R 10001 data
# The project has linted this file with hadolint, but has not built an image from it.

FROM python:3.12-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels ".[service]"

FROM python:3.12-slim-bookworm
RUN useradd --system --create-home --uid 10001 simtree
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index /wheels/*.whl && rm -r /wheels
USER 10001
ENV NUMBA_CACHE_DIR=/home/simtree/.cache/numba
VOLUME /data
EXPOSE 8000
# The certificate may be for another name than localhost, and nothing secret is asked for.
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s CMD ["python", "-c", "import ssl, urllib.request as r; r.urlopen('https://localhost:8000/readyz', context=ssl._create_unverified_context())"]
ENTRYPOINT ["simtree", "serve"]
CMD ["/data/people.gallery", "--host", "0.0.0.0", "--keys", "/data/keys.json", "--tls-cert", "/data/tls.pem", "--tls-key", "/data/tls.key"]
