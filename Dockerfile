# tenaz as an image: `docker build -t tenaz:0.1.0 .` builds it from this tree (a quarter of an hour on two cores, the first time).

FROM rust:1.95.0-slim-bookworm AS build
WORKDIR /src
# From what changes seldom to what changes often. rust-toolchain.toml stays outside: the image is that toolchain, and the file
# would only make rustup fetch tools that a build does not need.
COPY Cargo.toml Cargo.lock ./
COPY workloads workloads
COPY crates crates
# Dependencies and their builds are kept between builds, and are in no layer.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --package tenaz \
    && install -D target/release/tenaz /out/tenaz

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="tenaz" \
      org.opencontainers.image.description="Answers analytical questions over large CSV exports" \
      org.opencontainers.image.licenses="Apache-2.0"
# Certificates for amqps:// and https://.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    # The number is fixed, because files that are handed in (secrets) must belong to it.
    && groupadd --gid 10001 tenaz \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/tenaz --shell /usr/sbin/nologin tenaz \
    && install -d -o 10001 -g 10001 -m 0700 /var/lib/tenaz
COPY --from=build /out/tenaz /usr/local/bin/tenaz
USER 10001:10001
WORKDIR /var/lib/tenaz
STOPSIGNAL SIGTERM
# Who is asked for health, and how often, is for compose and Kubernetes to say: the image runs every kind of process.
HEALTHCHECK NONE
ENTRYPOINT ["tenaz"]
CMD ["--help"]
