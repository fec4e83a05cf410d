# Alpine with the tool, which starts the command of the container with Slabyard for its malloc.
#     docker build -f alpine.Dockerfile build/packages/out
FROM alpine:3.20
COPY slabyard-*-musllinux_1_2_x86_64.whl /packages/
RUN unzip -q -j /packages/*.whl '*/scripts/slabyard' -d /usr/bin && chmod +x /usr/bin/slabyard && rm -r /packages
ENTRYPOINT ["slabyard", "run", "--"]
