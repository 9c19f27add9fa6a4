//! The interactive shell of `tenaz sql`, through a pseudo-terminal: what is typed, and what stands on the screen.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod program;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A program on a terminal of its own.
struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<(Mutex<String>, Condvar)>,
    /// Where on the screen the next expectation begins.
    seen: usize,
}

fn pseudo_terminal() -> (File, OwnedFd) {
    let (mut master, mut slave) = (-1, -1);
    let size = libc::winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: both integers and the size live through the call; the two descriptors are ours.
    unsafe {
        let (name, modes) = (std::ptr::null_mut(), std::ptr::null());
        assert_eq!(libc::openpty(&raw mut master, &raw mut slave, name, modes, &raw const size), 0);
        (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave))
    }
}

impl Terminal {
    fn new(arguments: &[&str], history: &str) -> Self {
        let (master, slave) = pseudo_terminal();
        let mut command = program::command(arguments);
        command.env("TENAZ_HISTORY", history).env("TERM", "xterm");
        let end = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: both calls may be made between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        drop(slave);
        let screen = Arc::new((Mutex::new(String::new()), Condvar::new()));
        let (mut output, shared) = (master.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal whose program has ended gives an error.
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                shared.0.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
                shared.1.notify_all();
            }
        });
        Self { child, keyboard: master, screen, seen: 0 }
    }

    fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    fn appears(&mut self, text: &str, within: Duration) -> bool {
        let end = Instant::now() + within;
        let mut screen = self.screen.0.lock().unwrap();
        loop {
            if let Some(at) = screen[self.seen..].find(text) {
                self.seen += at + text.len();
                return true;
            }
            let Some(left) = end.checked_duration_since(Instant::now()) else { return false };
            screen = self.screen.1.wait_timeout(screen, left).unwrap().0;
        }
    }

    #[track_caller]
    fn shows(&mut self, text: &str) {
        let shown = self.appears(text, Duration::from_secs(120));
        assert!(shown, "{text:?} does not appear:\n{}", &self.screen.0.lock().unwrap()[self.seen..]);
    }

    /// Whether the program has left the terminal's lines to the terminal: a question runs.
    fn is_busy(&self) -> bool {
        // SAFETY: the descriptor is open, and all bits of the answer are set before it is read.
        unsafe {
            let mut modes: libc::termios = std::mem::zeroed();
            libc::tcgetattr(self.keyboard.as_raw_fd(), &raw mut modes) == 0 && modes.c_lflag & libc::ICANON != 0
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn questions_commands_history_completion_and_ctrl_c() {
    let dir = tempfile::tempdir().unwrap();
    let mut orders = String::from("order_id,customer,amount\n");
    (1..=2_000).for_each(|n| orders.push_str(&format!("{n},c{},{n}\n", n % 7)));
    std::fs::write(dir.path().join("orders.csv"), orders).unwrap();
    let history = dir.path().join("state/history");
    let mut shell = Terminal::new(&["sql", "--data", dir.path().to_str().unwrap()], history.to_str().unwrap());
    shell.shows("orders (orders.csv");
    shell.shows("customer");
    shell.shows("tenaz> ");
    // A question over two lines.
    shell.types("SELECT count(*) AS n\r");
    shell.shows("   ... ");
    shell.types("FROM orders;\r");
    shell.shows("2000");
    shell.shows("tenaz> ");
    shell.types(".schema orders\r");
    shell.shows("order_id");
    shell.shows("tenaz> ");
    shell.types(".format csv\r.help\r");
    shell.shows("leaves");
    shell.types("SELECT sum(amount) AS total FROM orders;\r");
    shell.shows("total\r\n");
    shell.shows("2001000\r\n");
    // Tab completes what can be one thing only.
    shell.types("SELECT max(cust\t) AS last FROM orders;\r");
    shell.shows("max(customer) AS last");
    shell.shows("last\r\n");
    shell.shows("c6\r\n");
    // A mistake is told, and the shell goes on; the line comes back with the arrow, to be mended.
    shell.types("SELECT nope FROM orders;\r");
    shell.shows("there is no column \"nope\"");
    shell.types(
        "\u{1b}[A\u{1}\u{1b}[C\u{1b}[C\u{1b}[C\u{1b}[C\u{1b}[C\u{1b}[C\u{1b}[C\u{b}min(amount) AS least FROM orders;\r",
    );
    shell.shows("least\r\n");
    shell.shows("1\r\n");
    // A view stays for later questions.
    shell.types("CREATE VIEW large AS SELECT * FROM orders WHERE amount > 1990;\r");
    shell.types("SELECT count(*) AS many FROM large;\r");
    shell.shows("many\r\n");
    shell.shows("10\r\n");
    // Before the prompt the terminal is as busy as with a question, and a Ctrl-C would drop what is typed next.
    shell.shows("tenaz> ");
    // Ctrl-C ends the question that runs.
    shell.types("SELECT sum(a.amount + b.amount) AS endless FROM orders a, orders b, orders c WHERE a.amount + b.amount <> c.amount;\r");
    let end = Instant::now() + Duration::from_secs(120);
    let mut is_stopped = false;
    while !is_stopped && Instant::now() < end {
        if shell.is_busy() {
            shell.types("\u{3}");
        }
        is_stopped = shell.appears("stopped", Duration::from_secs(10));
    }
    assert!(is_stopped, "{}", shell.screen.0.lock().unwrap());
    shell.shows("tenaz> ");
    // Ctrl-C drops what was typed.
    shell.types("SELECT nonsense\u{3}SELECT 40 + 2 AS answer;\r");
    shell.shows("answer\r\n");
    shell.shows("42\r\n");
    shell.types(".quit\r");
    let end = Instant::now() + Duration::from_secs(60);
    let code = loop {
        match shell.child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if Instant::now() > end => panic!("it does not leave"),
            None => std::thread::yield_now(),
        }
    };
    assert_eq!(code, Some(0));
    let kept = std::fs::read_to_string(history).unwrap();
    assert!(kept.contains("FROM orders;\n") && kept.contains(".quit\n"), "{kept}");
}

#[test]
fn without_a_terminal_tables_are_listed_and_nothing_waits() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.csv"), "a,b\n1,2\n").unwrap();
    let done = program::tenaz(["sql", "--data", dir.path().to_str().unwrap()]).must(0);
    assert!(done.text().starts_with("t (t.csv") && !done.text().contains("tenaz>"), "{}", done.text());
}
