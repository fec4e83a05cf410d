# Debian with the tool, and with Slabyard for the malloc of every program of the image.
#     docker build -f debian.Dockerfile build/packages/out
FROM debian:bookworm-slim
COPY slabyard_*.deb libslabyard-malloc1_*.deb /packages/
RUN apt-get update && apt-get install -y --no-install-recommends /packages/*.deb && rm -rf /packages /var/lib/apt/lists/*
ENV LD_PRELOAD=libslabyard-malloc.so.1
