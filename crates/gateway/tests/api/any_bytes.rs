//! Any bytes at a gateway's door: answered or sent away, and the gateway goes on.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::{soon, with_broker};

const JOB: &[u8] = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 41\r\n\r\n{\"workload\":{\"file\":\"a.toml\",\"toml\":\"\"}}";
const LIST: &[u8] = b"GET /v1/jobs?limit=3 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
const CHUNK: &[u8] =
    b"PUT /v1/jobs/0123456789abcdef/tables/t/chunks/0 HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\
    Content-Encoding: gzip\r\nExpect: 100-continue\r\n\r\n4\r\n1,a\n\r\n0\r\n\r\n";
const RANGE: &[u8] = b"HEAD /v1/jobs/x%2f/results/%00?format=csv&from=-1 HTTP/1.0\r\nAuthorization: Bearer \xff\r\nRange: bytes=9-1\r\n\r\n";

#[test]
fn any_bytes_are_answered_or_sent_away_and_the_gateway_goes_on() {
    with_broker(async |deployment| {
        let gateway = deployment.gateway().await;
        let address = gateway.gateway.local_addr();
        let (handle, panics) = (tokio::runtime::Handle::current(), count_panics());
        let trying = tokio::task::spawn_blocking(move || {
            let target = tenaz_fuzz::Target::new("http", env!("CARGO_MANIFEST_DIR")).up_to(64 << 10);
            let target = [JOB, LIST, CHUNK, RANGE].into_iter().fold(target, |target, seed| target.seed(seed));
            target.run(|input| {
                let answer = handle.block_on(exchange(address, input));
                assert_eq!(panics(), 0, "a panic inside of the gateway");
                let status = answer.get(9..12).map(|status| String::from_utf8_lossy(status).into_owned());
                assert_ne!(status.as_deref(), Some("500"), "{}", String::from_utf8_lossy(&answer));
                status
            })
        });
        soon("trying bytes", trying).await.unwrap();
        assert_eq!(gateway.get("/healthz").await.status, 200);
        gateway.stop().await;
    });
}

/// What a gateway answers to bytes behind which nothing comes.
async fn exchange(address: std::net::SocketAddr, input: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let _ = socket.write_all(input).await;
    let _ = socket.shutdown().await;
    let mut answer = Vec::new();
    // A connection that is reset was sent away, too.
    let _ = soon("an answer to any bytes", socket.read_to_end(&mut answer)).await;
    answer
}

/// Counts panics of the gateway's threads, which would end one connection only and be seen by nobody.
fn count_panics() -> impl Fn() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name().is_some_and(|name| name.starts_with("tokio")) {
            PANICS.fetch_add(1, Ordering::Relaxed);
        }
        before(panic);
    }));
    || PANICS.load(Ordering::Relaxed)
}
