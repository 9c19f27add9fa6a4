//! A client that shows what is on the wire.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::soon;

#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) headers: Vec<(String, String)>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Asserts that this is a problem document with this status and code.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let document = self.json();
        assert_eq!(document["code"], code, "{document}");
        assert_eq!(document["status"], status);
        assert_eq!(document["type"], format!("urn:tenaz:{code}"));
        assert!(document["detail"].as_str().is_some_and(|text| !text.is_empty()));
        if matches!(status, 429 | 503) {
            assert!(self.headers["retry-after"].parse::<u32>().is_ok_and(|seconds| seconds > 0));
        }
        document
    }

    /// Asserts success.
    #[track_caller]
    pub(crate) fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }
}

impl Client {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self { address, headers: Vec::new() }
    }

    /// The same client with one more header.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send("GET", path, b"").await
    }

    pub(crate) async fn delete(&self, path: &str) -> Response {
        self.send("DELETE", path, b"").await
    }

    pub(crate) async fn put(&self, path: &str, body: &[u8]) -> Response {
        self.send("PUT", path, body).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Response {
        self.send("POST", path, body.to_string().as_bytes()).await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &[u8]) -> Response {
        let mut stream = self.open(method, path, body).await;
        let body = soon(format!("the body of {method} {path}"), stream.rest()).await;
        Response { status: stream.status, headers: stream.headers, body }
    }

    /// Sends a request and reads the head of the response.
    pub(crate) async fn open(&self, method: &str, path: &str, body: &[u8]) -> Stream {
        let mut socket = self.begin(method, path, body.len()).await;
        // A server that refuses may not read everything.
        let _ = socket.write_all(body).await;
        soon(format!("{method} {path}"), Stream::read(socket)).await
    }

    /// Sends the head of a request.
    pub(crate) async fn begin(&self, method: &str, path: &str, length: usize) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let own = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<String>();
        let host =
            if own.to_lowercase().contains("host:") { String::new() } else { format!("Host: {}\r\n", self.address) };
        let head =
            format!("{method} {path} HTTP/1.1\r\n{host}Content-Length: {length}\r\nConnection: close\r\n{own}\r\n");
        socket.write_all(head.as_bytes()).await.unwrap();
        socket
    }
}

/// A response that may go on for a while.
pub(crate) struct Stream {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    reader: BufReader<TcpStream>,
    buffer: Vec<u8>,
    ended: bool,
}

impl Stream {
    pub(crate) async fn read(socket: TcpStream) -> Self {
        let mut reader = BufReader::new(socket);
        let mut line = String::new();
        reader.read_line(&mut line).await.unwrap();
        let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no status in {line:?}")).parse().unwrap();
        let mut headers = BTreeMap::new();
        loop {
            line.clear();
            reader.read_line(&mut line).await.unwrap();
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        Self { status, headers, reader, buffer: Vec::new(), ended: false }
    }

    /// More of the body; false at its end. A chunked body that is cut off is a failure.
    async fn more(&mut self) -> bool {
        if self.ended {
            return false;
        }
        if !self.headers.contains_key("transfer-encoding") {
            let length: usize = self.headers.get("content-length").map_or(0, |length| length.parse().unwrap());
            let mut body = vec![0; length];
            self.reader.read_exact(&mut body).await.unwrap();
            self.buffer.extend(body);
            self.ended = true;
            return true;
        }
        let mut line = String::new();
        self.reader.read_line(&mut line).await.unwrap();
        let length = usize::from_str_radix(line.trim(), 16).unwrap_or_else(|_| panic!("cut off: {line:?}"));
        let mut piece = vec![0; length + 2];
        self.reader.read_exact(&mut piece).await.unwrap();
        self.buffer.extend_from_slice(&piece[..length]);
        self.ended = length == 0;
        !self.ended
    }

    /// The next line, without its end; `None` after the last.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(String::from_utf8(line[..end].to_vec()).unwrap());
            }
            if !self.more().await {
                assert!(self.buffer.is_empty(), "the last line has no end");
                return None;
            }
        }
    }

    /// The next server-sent event: name, id, data. Comments are skipped.
    pub(crate) async fn event(&mut self) -> Option<(String, Option<u64>, Value)> {
        let (mut name, mut id, mut data) = (String::new(), None, Value::Null);
        loop {
            let line = self.line().await?;
            match line.split_once(": ") {
                Some(("event", text)) => name = text.to_owned(),
                Some(("id", text)) => id = Some(text.parse().unwrap()),
                Some(("data", text)) => data = serde_json::from_str(text).unwrap(),
                _ if line.is_empty() && !name.is_empty() => return Some((name, id, data)),
                _ => {}
            }
        }
    }

    /// Whether the chunked body is cut off before its end, which is waited for.
    pub(crate) async fn is_cut_off(&mut self) -> bool {
        loop {
            let mut line = String::new();
            let read = self.reader.read_line(&mut line).await;
            let Some(length) = read.ok().and_then(|_| usize::from_str_radix(line.trim(), 16).ok()) else { return true };
            let mut piece = vec![0; length + 2];
            if self.reader.read_exact(&mut piece).await.is_err() {
                return true;
            }
            if length == 0 {
                return false;
            }
        }
    }

    /// The rest of the body.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        while self.more().await {}
        std::mem::take(&mut self.buffer)
    }
}
