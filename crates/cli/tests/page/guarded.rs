//! Who may ask `tenaz ui`, and what it tells others.

use crate::served::Served;

fn status(request: ureq::http::request::Builder) -> u16 {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    agent.run(request.body(()).unwrap()).unwrap().status().as_u16()
}

#[test]
fn other_sites_other_names_and_those_without_the_token_are_refused() {
    let served = Served::start(None, &[]);
    let (origin, token) = (served.origin(), served.token());
    let with = |path: &str, headers: &[(&str, &str)]| {
        let request = ureq::http::Request::get(format!("{origin}{path}"));
        status(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)))
    };
    let bearer = format!("Bearer {token}");
    let ours = ("authorization", bearer.as_str());
    assert_eq!(with("/v1/tables", &[ours]), 200);
    assert_eq!(with("/v1/tables", &[]), 401);
    assert_eq!(with("/v1/tables", &[("authorization", "Bearer 0123456789abcdef0123456789abcdef")]), 401);
    assert_eq!(with("/v1/tables", &[ours, ("host", "tenaz.example")]), 403, "a name that was made to point at us");
    assert_eq!(with("/v1/tables", &[ours, ("origin", "http://tenaz.example")]), 403);
    assert_eq!(with("/v1/tables", &[ours, ("sec-fetch-site", "cross-site")]), 403);
    assert_eq!(with("/", &[("accept", "text/html"), ("host", "tenaz.example")]), 403);
    assert_eq!(with("/nothing", &[]), 404);
}

#[test]
fn the_page_is_for_browsers_and_holds_no_secret() {
    let served = Served::start(None, &[]);
    let get = |accept: &str| {
        let mut answer = ureq::get(served.origin()).header("accept", accept).call().unwrap();
        let policy = answer.headers().get("content-security-policy").map(|value| value.to_str().unwrap().to_owned());
        (answer.body_mut().read_to_string().unwrap(), policy)
    };
    let (page, policy) = get("text/html");
    assert!(page.starts_with("<!doctype html>") && !page.contains(served.token()));
    assert!(policy.unwrap().contains("default-src 'none'"));
    let (text, _) = get("*/*");
    assert!(!text.contains('<'), "{text}");
}

#[test]
fn it_listens_where_others_cannot_reach_it() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tenaz"));
    let done = command.args(["ui", "--no-open", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8(done.stderr).unwrap().contains("127.0.0.1"));
}
