# An image without shell and packages, with Slabyard for the malloc of its program. BASE is the image
# with glibc, to which you add your program.
#     docker build -f distroless.Dockerfile --build-arg BASE=distroless/cc-debian12 build/packages/out
ARG BASE
FROM debian:bookworm-slim AS packages
COPY libslabyard-malloc1_*.deb /packages/
RUN dpkg-deb -x /packages/libslabyard-malloc1_*.deb /unpacked
RUN mkdir /library && cp /unpacked/usr/lib/*/libslabyard-malloc.so.1 /library
FROM $BASE
COPY --from=packages /library/libslabyard-malloc.so.1 /usr/lib/
ENV LD_PRELOAD=/usr/lib/libslabyard-malloc.so.1
