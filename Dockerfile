# The bridge in a container: docs/how-to/docker.md. /opt/msp-bridge runs in other Linux images too (COPY --from).
ARG PYTHON_IMAGE=python:3.13-slim

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore
WORKDIR /source
COPY constraints.txt forge_links.py LICENSE README.md pyproject.toml setup.py ./
COPY adapters adapters
COPY docs docs
COPY msp_bridge msp_bridge
RUN pip install --constraint constraints.txt --target /opt/msp-bridge/lib . \
    && rm -r /opt/msp-bridge/lib/bin
# orjson is the one dependency that is compiled for each version of Python by itself; their file names tell them apart.
RUN for version in 3.11 3.12 3.13 3.14; do \
        pip install --constraint constraints.txt --target "/tmp/$version" \
            --python-version "$version" --only-binary :all: --no-deps --quiet orjson \
        && cp "/tmp/$version"/orjson/*.so /opt/msp-bridge/lib/orjson/ \
        || exit 1; \
    done
COPY docker/launcher.py /opt/msp-bridge/bin/msp-bridge
COPY docker/health.py /opt/msp-bridge/bin/msp-bridge-health
RUN chmod 755 /opt/msp-bridge/bin/*

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="msp-bridge" \
      org.opencontainers.image.description="One mutation server for every editor and every mutation testing tool" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/msp-bridge /opt/msp-bridge
# Whoever runs it (`--user $(id -u)`) has a home, a name and a cache, also without an entry in /etc/passwd.
RUN ln -s /opt/msp-bridge/bin/msp-bridge /usr/local/bin/msp-bridge \
    && useradd --uid 1000 --create-home bridge \
    && mkdir --parents /var/cache/msp-bridge /project \
    && chmod 1777 /home/bridge /var/cache/msp-bridge
ENV HOME=/home/bridge \
    USER=bridge \
    MSP_BRIDGE_CACHE=/var/cache/msp-bridge
USER 1000
WORKDIR /project
HEALTHCHECK --interval=1m --timeout=10s --start-period=10s CMD ["/opt/msp-bridge/bin/msp-bridge-health"]
ENTRYPOINT ["msp-bridge"]
CMD ["serve", "stdio"]
