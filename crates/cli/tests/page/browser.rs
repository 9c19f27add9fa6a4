//! A browser that does what a test says: WebDriver is JSON over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longer than anything takes here, however loaded the machine is.
const PATIENCE: Duration = Duration::from_secs(90);

/// Browsers take memory and both cores: one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The name of the member that holds an element's id.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

pub(crate) struct Browser {
    driver: Child,
    _output: BufReader<ChildStdout>,
    session: String,
    agent: ureq::Agent,
    /// The profile; removed with the browser.
    _profile: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Browser {
    /// A fresh browser with an empty profile, or nothing where Chromium is not installed.
    pub(crate) fn start() -> Option<Self> {
        let Some((chromium, chromedriver)) = program("chromium").zip(program("chromedriver")) else {
            eprintln!("skipped: chromium or chromium-driver is not installed (scripts/test installs them)");
            return None;
        };
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let profile = tempfile::tempdir().unwrap();
        let mut driver = Command::new(chromedriver);
        driver.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = driver.spawn().unwrap();
        // Kept open: the driver may have more to say.
        let mut output = BufReader::new(driver.stdout.take().unwrap());
        let port = output.by_ref().lines().map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE));
        let mut browser = Self {
            driver,
            _output: output,
            session: format!("http://127.0.0.1:{}/session", port.expect("chromedriver says its port")),
            agent: config.build().into(),
            _profile: profile,
            _alone: alone,
        };
        let made = browser.post("", &browser.wanted(&chromium));
        browser.session = format!("{}/{}", browser.session, made["sessionId"].as_str().unwrap());
        Some(browser)
    }

    fn wanted(&self, chromium: &std::path::Path) -> Value {
        let profile = format!("--user-data-dir={}", self._profile.path().display());
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1280,800",
            &profile,
        ];
        json!({"capabilities": {"alwaysMatch": {
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"binary": chromium, "args": arguments},
        }}})
    }

    fn send(&self, request: ureq::http::request::Builder, body: Option<&Value>) -> Value {
        let path = request.uri_ref().map(ToString::to_string).unwrap_or_default();
        let body = body.map_or_else(String::new, Value::to_string);
        let response = self.agent.run(request.body(body).unwrap());
        let text = response.unwrap_or_else(|error| panic!("{path}: {error}")).body_mut().read_to_string().unwrap();
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        assert!(
            answer["value"]["error"].is_null(),
            "{path}: {}: {}",
            answer["value"]["error"],
            answer["value"]["message"]
        );
        answer["value"].take()
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.send(ureq::http::Request::post(format!("{}{path}", self.session)), Some(body))
    }

    fn get(&self, path: &str) -> Value {
        self.send(ureq::http::Request::get(format!("{}{path}", self.session)), None)
    }

    pub(crate) fn open(&self, url: &str) {
        self.post("/url", &json!({"url": url}));
    }

    pub(crate) fn reload(&self) {
        self.post("/refresh", &json!({}));
    }

    /// Runs a script in the page; `arguments` are its `arguments`.
    pub(crate) fn script(&self, script: &str, arguments: &[Value]) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": arguments}))
    }

    /// Waits until the expression is true, or an object or text, and returns it.
    pub(crate) fn wait_for(&self, what: &str, expression: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.script(&format!("return ({expression})"), &[]);
            if !matches!(found, Value::Null | Value::Bool(false)) {
                return found;
            }
            if Instant::now() > deadline {
                self.screenshot("failed");
                let text = self.script("return document.body.innerText", &[]);
                panic!("waited in vain: {what}\n{}\n{:#?}", text.as_str().unwrap_or_default(), self.messages());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until this text stands in the page.
    pub(crate) fn wait_for_text(&self, text: &str) {
        let quoted = json!(text);
        self.wait_for(text, &format!("document.body.innerText.includes({quoted})"));
    }

    fn element(&self, css: &str) -> String {
        self.wait_for(css, &format!("document.querySelector({}) !== null", json!(css)));
        let found = self.post("/element", &json!({"using": "css selector", "value": css}));
        found[ELEMENT].as_str().unwrap().to_owned()
    }

    /// Clicks as a mouse does: the element must be visible and nothing may lie above it.
    pub(crate) fn click(&self, css: &str) {
        let element = self.element(css);
        self.post(&format!("/element/{element}/click"), &json!({}));
    }

    /// Clicks the button or link with this text.
    pub(crate) fn click_text(&self, text: &str) {
        let mark = format!(
            "[...document.querySelectorAll('button, a, [role=tab]')].some((element) => {{ \
               const fits = element.textContent.trim().startsWith({0}); \
               if (fits) element.dataset.wanted = {0}; return fits; }})",
            json!(text)
        );
        self.wait_for(text, &mark);
        self.click(&format!("[data-wanted={}]", json!(text)));
    }

    /// Types into an element. For a file input, the path of a file.
    pub(crate) fn type_into(&self, css: &str, text: &str) {
        let element = self.element(css);
        self.post(&format!("/element/{element}/value"), &json!({"text": text}));
    }

    /// Presses keys, wherever the focus is: all but the last are held meanwhile.
    pub(crate) fn press(&self, keys: &[&str]) {
        let down = keys.iter().map(|key| json!({"type": "keyDown", "value": key}));
        let up = keys.iter().rev().map(|key| json!({"type": "keyUp", "value": key}));
        let actions: Vec<Value> = down.chain(up).collect();
        self.post("/actions", &json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}));
    }

    /// Types keys one after the other, wherever the focus is.
    pub(crate) fn type_keys(&self, text: &str) {
        text.chars().for_each(|key| self.press(&[&key.to_string()]));
    }

    /// The width and height of the window's inside.
    pub(crate) fn resize(&self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
    }

    pub(crate) fn prefer(&self, scheme: &str) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools("Emulation.setEmulatedMedia", &features);
    }

    fn devtools(&self, command: &str, parameters: &Value) {
        self.post("/goog/cdp/execute", &json!({"cmd": command, "params": parameters}));
    }

    /// Keeps what is seen in `target/screenshots/NAME.png`.
    pub(crate) fn screenshot(&self, name: &str) {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots");
        std::fs::create_dir_all(&dir).unwrap();
        let text = self.get("/screenshot");
        let bytes = from_base64(text.as_str().unwrap());
        std::fs::File::create(dir.join(format!("{name}.png"))).unwrap().write_all(&bytes).unwrap();
    }

    /// What the page and the browser wrote to the console since the last look.
    pub(crate) fn messages(&self) -> Vec<String> {
        let entries = self.post("/se/log", &json!({"type": "browser"}));
        let of_entry =
            |entry: &Value| format!("{} {}", entry["level"].as_str().unwrap(), entry["message"].as_str().unwrap());
        entries.as_array().unwrap().iter().map(of_entry).collect()
    }

    /// No script has thrown, and the policy had nothing to stop. Answers that are refusals are logged by the browser and are fine.
    #[track_caller]
    pub(crate) fn is_clean(&self) {
        let bad: Vec<String> = self.messages().into_iter().filter(|message| is_bad(message)).collect();
        assert!(bad.is_empty(), "{bad:#?}");
    }
}

fn is_bad(message: &str) -> bool {
    message.starts_with("SEVERE") && !message.contains("Failed to load resource")
        || message.contains("Content Security Policy")
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its Chromium ends with the session.
        let _ = self.agent.delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|program| program.is_file())
}

fn from_base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = four.iter().fold(0, |bits, byte| bits << 6 | digit(*byte)) << (6 * (4 - four.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}
