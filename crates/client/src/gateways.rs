//! Which gateway is asked, and what happens when it does not answer.
//!
//! ```text
//!  ask ──▶ the current gateway ──answer──▶ done
//!              │ no connection, no answer in time, the gateway's own fault: the next one becomes current
//!              │ the fault of the broker behind all gateways: wait as long as it says
//!              ▼
//!          again, until patience runs out (a full queue costs no patience: the job advances)
//! ```

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenaz_core::{CreationWatch, FaultClass, ProblemCode};
use ureq::http::{Method, Request, Response, StatusCode};
use ureq::{Agent, Body};

use crate::Error;
use crate::api::Problem;
use crate::limits::{ANSWER, CONNECT, MAX_END_BYTES, MAX_GATEWAYS, NOT_FOUND_GRACE, STREAM_SILENCE, TICK};
use crate::patience::{Trouble, Waits};
use crate::transport::Transport;

/// How to reach the gateways.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Their addresses.
    pub urls: Vec<String>,
    /// The token they ask for.
    pub token: Option<String>,
    /// How sure it must be of them.
    pub transport: Transport,
    /// How long none of them may be of use.
    pub patience: Duration,
    /// Requests at a time.
    pub parallel: usize,
    /// Set by whoever wants the client to stop.
    pub stop: Arc<AtomicBool>,
}

/// The gateways of a cluster. Any of them serves any request.
#[derive(Debug)]
pub struct Gateways {
    agent: Agent,
    urls: Vec<String>,
    token: Option<String>,
    patience: Duration,
    stop: Arc<AtomicBool>,
    current: AtomicUsize,
    /// Whether some gateway knew the job: then one that does not is behind.
    job_seen: AtomicBool,
    trouble: Mutex<Option<String>>,
    created: Mutex<Option<Creation>>,
}

/// The request by which a job was created.
#[derive(Debug, Clone)]
pub(crate) struct Creation {
    pub(crate) key: String,
    pub(crate) body: Arc<[u8]>,
}

impl Creation {
    pub(crate) fn ask(&self) -> Ask<'_> {
        let mut ask = Ask::new(Method::POST, "/v1/jobs".to_owned());
        ask.headers = vec![("Content-Type", "application/json".to_owned()), ("Idempotency-Key", self.key.clone())];
        ask.body = Some(&self.body);
        ask
    }
}

/// A request that may be repeated.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    /// Behind the gateway's address.
    pub(crate) path: String,
    /// The job in the path.
    pub(crate) job: Option<&'a str>,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Option<&'a [u8]>,
    /// Whether the answer is a stream of any length.
    pub(crate) stream: bool,
}

impl<'a> Ask<'a> {
    pub(crate) fn new(method: Method, path: String) -> Self {
        Self { method, path, job: None, headers: Vec::new(), body: None, stream: false }
    }

    /// A request about a job: `/v1/jobs/{job}{rest}`.
    pub(crate) fn job(method: Method, job: &'a str, rest: &str) -> Self {
        let path = format!("/v1/jobs/{}{rest}", percent_encoded(job));
        Self { job: Some(job), ..Self::new(method, path) }
    }
}

/// What becomes of one attempt.
enum Failed {
    Again(Trouble),
    Never(Error),
}

impl From<Trouble> for Failed {
    fn from(trouble: Trouble) -> Self {
        Self::Again(trouble)
    }
}

impl Gateways {
    /// The gateways, in a random order. Nothing is asked yet.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let mut urls = Vec::new();
        for url in &settings.urls {
            let url = checked(url)?;
            settings.transport.check_token(&url, settings.token.as_deref())?;
            urls.push(url);
        }
        urls.dedup();
        let wrong = |why: &str| Error::Address { url: settings.urls.join(","), why: why.to_owned() };
        if urls.is_empty() {
            return Err(wrong("there is none"));
        }
        if urls.len() > MAX_GATEWAYS {
            return Err(wrong(&format!("these are more than {MAX_GATEWAYS}")));
        }
        fastrand::shuffle(&mut urls);
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .tls_config(settings.transport.tls()?)
            .user_agent(concat!("tenaz/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_send_request(Some(ANSWER))
            .timeout_send_body(Some(ANSWER))
            .timeout_recv_response(Some(ANSWER))
            .timeout_recv_body(Some(ANSWER))
            .max_idle_connections(settings.parallel + 4)
            .max_idle_connections_per_host(settings.parallel + 4)
            .build();
        Ok(Self {
            agent: config.new_agent(),
            urls,
            token: settings.token,
            patience: settings.patience,
            stop: settings.stop,
            current: AtomicUsize::new(0),
            job_seen: AtomicBool::new(false),
            trouble: Mutex::new(None),
            created: Mutex::new(None),
        })
    }

    /// The address of the gateway that is asked at present.
    pub fn current_url(&self) -> &str {
        &self.urls[self.current.load(Ordering::Relaxed) % self.urls.len()]
    }

    /// Why requests have to be repeated at present, if so.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether somebody wants the client to stop.
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether some gateway knew the job.
    pub(crate) fn knew_job(&self) -> bool {
        self.job_seen.load(Ordering::Relaxed)
    }

    /// Waits, unless the client is to stop.
    pub(crate) fn pause(&self, time: Duration) -> Result<(), Error> {
        let until = Instant::now() + time;
        loop {
            if self.is_stopping() {
                return Err(Error::Stopped);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(TICK));
        }
    }

    /// How long none of the gateways may be of use.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Asks until a gateway answers, and reads the answer. The index is that of the gateway.
    pub(crate) fn ask<T>(
        &self,
        ask: &Ask<'_>,
        read: impl Fn(&str, Response<Body>) -> Result<T, ReadError>,
    ) -> Result<(T, usize), Error> {
        self.ask_for(ask, self.patience, read)
    }

    /// The same with a patience of its own.
    pub(crate) fn ask_for<T>(
        &self,
        ask: &Ask<'_>,
        patience: Duration,
        read: impl Fn(&str, Response<Body>) -> Result<T, ReadError>,
    ) -> Result<(T, usize), Error> {
        let started = Instant::now();
        let (mut waits, mut watch) = (Waits::new(patience, self.urls.len()), CreationWatch::default());
        loop {
            if self.is_stopping() {
                return Err(Error::Stopped);
            }
            let at = self.current.load(Ordering::Relaxed) % self.urls.len();
            let answer = self.once(&self.urls[at], ask).and_then(|response| {
                read(&self.urls[at], response).map_err(|error| match error {
                    ReadError::Cut(why) => elsewhere(format!("{}: {why}", self.urls[at])).into(),
                    ReadError::Never(error) => Failed::Never(error),
                })
            });
            let trouble = match answer {
                Ok(answer) => {
                    if ask.job.is_some() {
                        self.job_seen.store(true, Ordering::Relaxed);
                    }
                    self.say(None);
                    return Ok((answer, at));
                }
                Err(Failed::Never(error)) => return Err(error),
                Err(Failed::Again(trouble)) => trouble,
            };
            if !matches!(trouble, Trouble::Full { .. }) {
                self.leave(at);
            }
            if let (Trouble::NotFound, Some(job)) = (&trouble, ask.job) {
                let is_behind = self.knew_job() && started.elapsed() < NOT_FOUND_GRACE;
                if !is_behind {
                    return Err(Error::NoJob { job: job.to_owned() });
                }
            }
            if matches!(trouble, Trouble::BeingCreated { .. }) && watch.unready(started.elapsed().as_millis() as u64) {
                self.create_again();
            }
            let wait = waits.next(&trouble)?;
            self.say(Some(trouble.why()));
            self.pause(wait)?;
        }
    }

    /// Has the job created again that this client has had created before. Whether that helps shows when the job is asked for again.
    fn create_again(&self) {
        let created = self.created.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(created) = created {
            let at = self.current.load(Ordering::Relaxed) % self.urls.len();
            if self.once(&self.urls[at], &created.ask()).is_err() {
                self.leave(at);
            }
        }
    }

    /// Remembers how the client's job was created.
    pub(crate) fn has_created(&self, created: Creation) {
        *self.created.lock().unwrap_or_else(PoisonError::into_inner) = Some(created);
    }

    /// The next gateway becomes the current one, unless another thread has moved on already.
    pub(crate) fn leave(&self, at: usize) {
        let next = (at + 1) % self.urls.len();
        // Whoever was quicker decided the same.
        let _ = self.current.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(crate) fn waits(&self) -> Waits {
        Waits::new(self.patience, self.urls.len())
    }

    pub(crate) fn url(&self, at: usize) -> &str {
        &self.urls[at % self.urls.len()]
    }

    fn say(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// One attempt at one gateway.
    fn once(&self, url: &str, ask: &Ask<'_>) -> Result<Response<Body>, Failed> {
        let response = self.send(url, ask).map_err(|error| match error {
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
                Failed::Never(Error::Address { url: url.to_owned(), why: error.to_string() })
            }
            error if is_distrust(url, &error) => {
                Failed::Never(Error::Untrusted { url: url.to_owned(), why: plain(&error) })
            }
            error => elsewhere(format!("{url} cannot be reached ({})", plain(&error))).into(),
        })?;
        if response.status().is_success() { Ok(response) } else { Err(refusal(url, ask, response)) }
    }

    fn send(&self, url: &str, ask: &Ask<'_>) -> Result<Response<Body>, ureq::Error> {
        let mut request = Request::builder().method(ask.method.clone()).uri(format!("{url}{}", ask.path));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        for (name, value) in &ask.headers {
            request = request.header(*name, value);
        }
        // Writing and reading are bounded in total; a stream of rows may take for ever, but not in silence.
        let silence = ask.stream.then_some(STREAM_SILENCE);
        let total = if ask.stream { None } else { Some(ANSWER) };
        match ask.body {
            Some(body) => self.agent.run(request.body(body)?),
            None => {
                let request = self.agent.configure_request(request.body(())?);
                let request = request.timeout_recv_response(Some(silence.unwrap_or(ANSWER)));
                self.agent.run(request.timeout_per_read(silence).timeout_recv_body(total).build())
            }
        }
    }
}

/// Why an answer could not be read.
pub(crate) enum ReadError {
    /// It is cut off: ask again.
    Cut(String),
    /// It is whole, and of no use.
    Never(Error),
}

/// What an answer other than success means.
fn refusal(url: &str, ask: &Ask<'_>, mut response: Response<Body>) -> Failed {
    let status = response.status();
    let wait = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let wait = wait.map(Duration::from_secs);
    let text = response.body_mut().with_config().limit(MAX_END_BYTES).read_to_vec().unwrap_or_default();
    let problem = serde_json::from_slice::<Problem>(&text).ok();
    let code = problem.as_ref().and_then(|problem| ProblemCode::parse(&problem.code));
    let detail = match &problem {
        Some(Problem { detail, title, .. }) => if detail.is_empty() { title } else { detail }.clone(),
        None => format!("HTTP status {status}"),
    };
    if code == Some(ProblemCode::BeingCreated) {
        return Trouble::BeingCreated { why: detail, wait }.into();
    }
    if code.is_some_and(ProblemCode::job_advances) {
        return Trouble::Full { wait }.into();
    }
    match class_of(status, problem.as_ref()) {
        FaultClass::Broker => return Trouble::Wait { why: detail, wait }.into(),
        FaultClass::Process => return Trouble::Elsewhere { why: format!("{url}: {detail}"), wait }.into(),
        FaultClass::Bug if status.is_server_error() => return elsewhere(format!("{url}: {detail}")).into(),
        FaultClass::Data | FaultClass::Query | FaultClass::Bug => {}
    }
    match problem {
        None => Failed::Never(Error::NotAGateway { url: url.to_owned(), what: detail }),
        Some(_) if status == StatusCode::NOT_FOUND && ask.job.is_some() => Trouble::NotFound.into(),
        Some(_) if status == StatusCode::UNAUTHORIZED => Failed::Never(Error::Unauthorized { url: url.to_owned() }),
        Some(problem) => {
            let class = problem.class.unwrap_or(FaultClass::Query);
            Failed::Never(Error::Refused { status: status.as_u16(), code: problem.code, class, detail })
        }
    }
}

/// Whose fault a refusal is: as the gateway says, or else as the status does.
fn class_of(status: StatusCode, problem: Option<&Problem>) -> FaultClass {
    match problem.and_then(|problem| problem.class) {
        Some(class) => class,
        None if status == StatusCode::TOO_MANY_REQUESTS => FaultClass::Broker,
        None if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => FaultClass::Process,
        None => FaultClass::Query,
    }
}

fn elsewhere(why: String) -> Trouble {
    Trouble::Elsewhere { why, wait: None }
}

/// Whether somebody answered who is not believed. Asking again changes nothing.
fn is_distrust(url: &str, error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Rustls(_) | ureq::Error::Tls(_) => true,
        ureq::Error::Io(error) => url.starts_with("https://") && error.kind() == std::io::ErrorKind::InvalidData,
        _ => false,
    }
}

/// ureq's error without its own first word.
fn plain(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}

/// An address that can be asked, without a slash at its end.
fn checked(url: &str) -> Result<String, Error> {
    let wrong = |why: &str| Err(Error::Address { url: url.to_owned(), why: why.to_owned() });
    let trimmed = url.trim().trim_end_matches('/');
    if !trimmed.starts_with("http://") && !trimmed.starts_with("https://") {
        return wrong("it does not begin with http:// or https://");
    }
    match trimmed.parse::<ureq::http::Uri>() {
        Ok(uri) if uri.query().is_some() => wrong("it has a question mark"),
        Ok(uri) if uri.host().is_none_or(str::is_empty) => wrong("it names no host"),
        Ok(_) => Ok(trimmed.to_owned()),
        Err(error) => wrong(&error.to_string()),
    }
}

/// A name as part of a path or a header.
pub(crate) fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_before_they_are_asked() {
        assert_eq!(checked(" http://a:1/ ").expect("valid"), "http://a:1");
        assert_eq!(checked("https://a/behind/a/proxy").expect("valid"), "https://a/behind/a/proxy");
        for wrong in ["", "a:1", "ftp://a", "http://", "http://a/?x=1", "http://a b"] {
            assert!(matches!(checked(wrong), Err(Error::Address { .. })), "{wrong}");
        }
    }

    /// What becomes of a request that was refused so.
    fn decision(status: u16, body: &str) -> Failed {
        let response = Response::builder().status(status).header("retry-after", "3");
        let response = response.body(Body::builder().data(body.to_owned())).expect("a response");
        refusal("http://a", &Ask::new(Method::GET, "/v1/jobs".to_owned()), response)
    }

    #[test]
    fn whether_and_where_a_request_is_repeated_follows_from_class_and_status() {
        let of_class = |status, class: &str| decision(status, &format!(r#"{{"code":"new","class":"{class}"}}"#));
        let three = Some(Duration::from_secs(3));
        assert!(matches!(of_class(503, "broker"), Failed::Again(Trouble::Wait { wait, .. }) if wait == three));
        assert!(matches!(of_class(503, "process"), Failed::Again(Trouble::Elsewhere { wait, .. }) if wait == three));
        assert!(matches!(of_class(500, "bug"), Failed::Again(Trouble::Elsewhere { .. })));
        for (status, class) in [(400, "query"), (409, "data"), (422, "query"), (422, "bug")] {
            let Failed::Never(Error::Refused { class: told, .. }) = of_class(status, class) else {
                panic!("{status} {class}")
            };
            assert_eq!(told.as_str(), class);
        }
        let full = decision(503, r#"{"code":"queue_full","class":"broker"}"#);
        assert!(matches!(full, Failed::Again(Trouble::Full { .. })));
    }

    #[test]
    fn a_refusal_without_a_class_is_judged_by_its_status() {
        let plain = |status| decision(status, "a proxy says no");
        assert!(matches!(plain(429), Failed::Again(Trouble::Wait { .. })));
        assert!(matches!(plain(408), Failed::Again(Trouble::Elsewhere { .. })));
        assert!(matches!(plain(502), Failed::Again(Trouble::Elsewhere { .. })));
        assert!(matches!(plain(400), Failed::Never(Error::NotAGateway { .. })));
        assert!(matches!(decision(401, r#"{"code":"x"}"#), Failed::Never(Error::Unauthorized { .. })));
    }

    #[test]
    fn names_travel_percent_encoded() {
        assert_eq!(percent_encoded("a b/ñ.csv"), "a%20b%2F%C3%B1.csv");
    }
}
