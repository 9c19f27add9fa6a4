//! How to go on with a job, or to end it.

use tenaz_client::Gateways;

use crate::args::SubmitArgs;

/// The commands to type when a job is left behind.
pub(super) fn still_there(args: &SubmitArgs, gateways: &Gateways, job: &str) -> String {
    let gateway = quoted(&args.gateway.join(","));
    let mut resume = String::from("tenaz submit");
    if let Some(workload) = &args.workload {
        resume.push_str(&format!(" {}", quoted(workload)));
    }
    if let Some(data) = &args.data {
        resume.push_str(&format!(" --data {}", quoted(&data.to_string_lossy())));
    }
    resume.push_str(&format!(" --gateway {gateway}"));
    let ca_file = args.transport.gateway_ca_file.as_ref().map(|file| quoted(&file.to_string_lossy()));
    let believes = |option: &str| ca_file.as_ref().map(|file| format!("{option} {file} ")).unwrap_or_default();
    resume.push_str(format!(" {}", believes("--ca-file")).trim_end());
    if let Some(out) = &args.output.out {
        resume.push_str(&format!(" --out {}", quoted(&out.to_string_lossy())));
    }
    if let Some(format) = args.output.format {
        resume.push_str(&format!(" --format {}", format.name()));
    }
    let url = gateways.current_url();
    let token = if args.token.is_some() || args.token_file.is_some() {
        "-H \"Authorization: Bearer $TENAZ_TOKEN\" "
    } else {
        ""
    };
    let cacert = believes("--cacert");
    format!(
        "job {job} is still there: {resume} --resume {job} goes on; \
         curl -X DELETE {token}{cacert}{url}/v1/jobs/{job} (or tenaz submit --gateway {gateway} --cancel {job}) ends it"
    )
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:,=@%+[]".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_spaces_and_quotes_survive_a_shell() {
        assert_eq!(quoted("http://a:1,http://b:2"), "http://a:1,http://b:2");
        assert_eq!(quoted("my data"), "'my data'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
