# docker build -t concordant . && docker run --rm -v "$PWD:/data" concordant rank votes.csv
# With a model: docker run --rm -p 8000:8000 -v "$PWD:/data" concordant serve --model model --host 0.0.0.0
FROM python:3.13-slim AS built
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
COPY tools ./tools
RUN python -m venv /opt/concordant \
    && /opt/concordant/bin/pip install --no-cache-dir -c constraints.txt ".[fast,serve,sklearn]"

FROM python:3.13-slim
LABEL org.opencontainers.image.title="concordant" \
      org.opencontainers.image.description="From a log of who preferred what to a ranking, or a scoring function, that can be trusted" \
      org.opencontainers.image.licenses="BSD-3-Clause AND CC-BY-4.0 AND Apache-2.0 AND 0BSD"
# OpenMP: scikit-learn's wheels bring their own, LightGBM, where an image built on this one adds it, takes the system's
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home concordant
COPY --from=built /opt/concordant /opt/concordant
ENV PATH=/opt/concordant/bin:$PATH \
    PYTHONUNBUFFERED=1
USER 10001
WORKDIR /data
EXPOSE 8000
ENTRYPOINT ["concordant"]
CMD ["--help"]
