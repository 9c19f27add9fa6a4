//! A pretended engine behind a Unix socket: it gives recorded answers and keeps what was asked.
#![allow(clippy::unwrap_used, unreachable_pub)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// What to answer to `GET /containers/json`, without its query.
pub type Answers = Box<dyn Fn(&str) -> Answer + Send + Sync>;

pub enum Answer {
    /// A status and a body.
    Body(u16, String),
    /// Pieces of a body, one for each ring of the bell, without an end.
    Pieces(Arc<Notify>, Vec<String>),
    /// The connection is closed without an answer.
    Nothing,
}

impl Answer {
    pub fn json(body: &str) -> Self {
        Self::Body(200, body.to_owned())
    }
}

pub struct Engine {
    pub socket: PathBuf,
    asked: Arc<Mutex<Vec<String>>>,
    server: JoinHandle<()>,
    _dir: tempfile::TempDir,
}

impl Engine {
    pub fn start(answers: Answers) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("engine.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, answers) = (asked.clone(), Arc::new(answers));
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, log.clone(), answers.clone()));
            }
        });
        Self { socket, asked, server, _dir: dir }
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Takes out what was asked since the last call: `POST /containers/abc/kill?signal=SIGKILL`, decoded.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(mut stream: UnixStream, asked: Arc<Mutex<Vec<String>>>, answers: Arc<Answers>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let mut words = head.split_whitespace();
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    asked.lock().unwrap().push(format!("{method} {}", decoded(target)));
    let path = target.split('?').next().unwrap();
    match answers(&format!("{method} {path}")) {
        Answer::Body(status, body) => {
            let length = body.len();
            let kind = "Content-Type: application/json\r\nConnection: close";
            let text = format!("HTTP/1.1 {status} X\r\n{kind}\r\nContent-Length: {length}\r\n\r\n{body}");
            let _ = stream.write_all(text.as_bytes()).await;
        }
        Answer::Pieces(bell, pieces) => {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
            let _ = stream.write_all(head.as_bytes()).await;
            for piece in pieces {
                bell.notified().await;
                let _ = stream.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).await;
            }
            std::future::pending::<()>().await;
        }
        Answer::Nothing => {}
    }
}

/// Percent signs and plusses of a query undone.
fn decoded(target: &str) -> String {
    let bytes = target.as_bytes();
    let mut text = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                text.push(u8::from_str_radix(&target[at + 1..at + 3], 16).unwrap());
                at += 2;
            }
            b'+' => text.push(b' '),
            byte => text.push(byte),
        }
        at += 1;
    }
    String::from_utf8(text).unwrap()
}
