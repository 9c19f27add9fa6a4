//! An HTTP server that misbehaves on demand, in ways that a real gateway cannot be brought to.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request, taken apart.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// With the query string.
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn is(&self, method: &str, path_end: &str) -> bool {
        self.method == method && self.path.ends_with(path_end)
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// What the server does.
pub(crate) enum Reply {
    /// Answers.
    Answer { status: u16, headers: Vec<(&'static str, String)>, body: Vec<u8> },
    /// Closes the connection without a word.
    Drop,
    /// Promises more bytes than it sends.
    Cut(Vec<u8>),
    /// Says nothing until the test ends.
    Hang,
}

impl Reply {
    pub(crate) fn json(status: u16, text: &str) -> Self {
        Self::Answer { status, headers: vec![], body: text.as_bytes().to_vec() }
    }

    pub(crate) fn bytes(body: Vec<u8>) -> Self {
        Self::Answer { status: 200, headers: vec![], body }
    }

    pub(crate) fn problem(status: u16, code: &str, retry_after: Option<u64>) -> Self {
        let body = format!(
            "{{\"type\":\"urn:tenaz:{code}\",\"title\":\"t\",\"status\":{status},\"detail\":\"this is {code}\",\"code\":\"{code}\"}}"
        );
        let headers = retry_after.map(|seconds| ("Retry-After", seconds.to_string())).into_iter().collect();
        Self::Answer { status, headers, body: body.into_bytes() }
    }
}

/// A server; it ends with the test.
pub(crate) struct Server {
    pub(crate) url: String,
    over: Arc<AtomicBool>,
}

impl Server {
    pub(crate) fn start(handler: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let over = Arc::new(AtomicBool::new(false));
        let (handler, ended) = (Arc::new(handler), Arc::clone(&over));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let (handler, ended) = (Arc::clone(&handler), Arc::clone(&ended));
                std::thread::spawn(move || serve(stream, &*handler, &ended));
            }
        });
        Self { url, over }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn serve(stream: TcpStream, handler: &dyn Fn(&Asked) -> Reply, over: &AtomicBool) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut writer = stream;
    loop {
        let asked = read(&mut reader)?;
        let (status, headers, body, promised) = match handler(&asked) {
            Reply::Answer { status, headers, body } => (status, headers, body.clone(), body.len()),
            Reply::Drop => return None,
            Reply::Cut(body) => (200, vec![], body.clone(), body.len() + 1000),
            Reply::Hang => {
                while !over.load(Ordering::Relaxed) {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                return None;
            }
        };
        let mut head = format!("HTTP/1.1 {status} X\r\nContent-Length: {promised}\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        writer.write_all(format!("{head}\r\n").as_bytes()).ok()?;
        writer.write_all(&body).ok()?;
        writer.flush().ok()?;
        if promised > body.len() {
            return None;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { method, path, headers, body })
}
