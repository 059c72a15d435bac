# The server alone: built in one image, run in another that has little besides.
#
#   docker build -t tollgate .
#   docker run -p 8655:8655 -v tollgate:/data -e TOLLGATE_TOKEN=… tollgate

FROM rust:1.95-slim-trixie AS build
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --release --locked -p tollgate-server && cp target/release/tollgate /tollgate

FROM debian:trixie-slim
RUN useradd --system --uid 65532 --no-create-home --shell /usr/sbin/nologin tollgate \
    && install -d -o tollgate -g tollgate -m 700 /data
COPY --from=build /tollgate /usr/local/bin/tollgate
USER tollgate
VOLUME /data
# Beyond loopback the server wants a token: TOLLGATE_TOKEN, or those of a file that TOLLGATE_CONFIG names.
ENV TOLLGATE_LISTEN=0.0.0.0:8655 TOLLGATE_DATA=/data TOLLGATE_LOG_FORMAT=json
EXPOSE 8655
# Not 200 means that nothing could be kept: the disk is full, or the server is going. By the shell, so that
# no client need be in the image; a server that talks TLS needs another.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 CMD ["bash", "-c", "\
    exec 3<>/dev/tcp/127.0.0.1/8655 \
    && printf 'GET /readyz HTTP/1.1\\r\\nhost: localhost\\r\\nconnection: close\\r\\n\\r\\n' >&3 \
    && head -n 1 <&3 | grep -q ' 200 '"]
# Answers under way get 10 s; `docker stop --time 30`, or `stop_grace_period`.
STOPSIGNAL SIGTERM
ENTRYPOINT ["tollgate"]
CMD ["serve"]
