//! Every option that a subcommand has is read by that subcommand.
//!
//! The compiler finds an option that nothing reads, but not one that only *other* subcommands read: groups of options are
//! shared. So the source is read here: from the function of a subcommand on, through all functions that it calls, which
//! fields of its options are used? And what is copied into the settings of a crate, does any crate read it? (`heartbeat-every` of
//! cluster.toml has its own test, in crates/supervisor.)
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A struct of options: for each field its type, and whether it is a group that is flattened into it.
type Options = BTreeMap<String, BTreeMap<String, (String, bool)>>;

#[derive(Debug, Default)]
struct Function {
    /// Parameters whose type is a struct of options, by name.
    parameters: Vec<(String, String)>,
    body: Vec<String>,
}

/// How long a literal at the beginning is whose quotes and brackets would be taken for code: `'{'`, `'\\''`, `r#"…"#`.
fn character_or_raw_text(code: &str) -> Option<usize> {
    if code.starts_with("r#\"") {
        return Some(code.find("\"#")? + 2);
    }
    let inside = code.strip_prefix('\'')?;
    let length = match inside.strip_prefix('\\') {
        // The character behind the backslash may be a quote.
        Some(escaped) => 2 + escaped.chars().next()?.len_utf8() + escaped[1..].find('\'')?,
        None => 1 + inside.chars().next()?.len_utf8(),
    };
    code[length..].starts_with('\'').then_some(length + 1)
}

/// Identifiers and single characters; comments, texts and attributes are left out.
fn tokens(source: &str) -> Vec<String> {
    let code: String = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |all, line| all + line + "\n");
    let code = code.split("#[cfg(test)]\nmod tests").next().unwrap();
    let (mut found, mut rest) = (Vec::new(), code);
    while let Some(first) = rest.chars().next() {
        if let Some(length) = character_or_raw_text(rest) {
            rest = &rest[length..];
            continue;
        }
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if word(first) {
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |end| end + 2)
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() && first != '"' {
            found.push(rest[..length].to_owned());
        }
        rest = &rest[length..];
    }
    found
}

/// The index behind the bracket that closes the one at `open`.
fn closing(tokens: &[String], open: usize) -> usize {
    let (begin, end) = match tokens[open].as_str() {
        "(" => ("(", ")"),
        "{" => ("{", "}"),
        other => panic!("{other} opens nothing"),
    };
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        depth += i32::from(token == begin) - i32::from(token == end);
        if depth == 0 {
            return index + 1;
        }
    }
    panic!("nothing closes {open}");
}

/// The tokens of every source file of a crate.
fn sources_of(crate_name: &str) -> Vec<Vec<String>> {
    fn walk(dir: &Path, found: &mut Vec<Vec<String>>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(tokens(&std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    let mut found = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(crate_name).join("src"), &mut found);
    found
}

/// All structs whose fields are options.
fn options(sources: &[Vec<String>]) -> Options {
    let mut found = Options::new();
    for tokens in sources {
        for at in 0..tokens.len() {
            if tokens[at] == "struct" && tokens[at + 1].ends_with("Args") && tokens[at + 2] == "{" {
                let fields = &tokens[at + 3..closing(tokens, at + 2) - 1];
                let is_field = |i: usize| {
                    i >= 1
                        && fields[i] == ":"
                        && fields.get(i + 1).is_some_and(|next| next != ":")
                        && fields[i - 1] != ":"
                };
                let mut known = BTreeMap::new();
                for i in (0..fields.len()).filter(|i| {
                    is_field(*i)
                        && fields[..*i].ends_with(&["(".into(), "crate".into(), ")".into(), fields[i - 1].clone()])
                }) {
                    let before: Vec<&str> = fields[..i].iter().rev().take(8).map(String::as_str).collect();
                    let is_group = before.get(5..8) == Some(&["]", ")", "flatten"][..]);
                    known.insert(fields[i - 1].clone(), (fields[i + 1].clone(), is_group));
                }
                found.insert(tokens[at + 1].clone(), known);
            }
        }
    }
    found
}

fn functions(sources: &[Vec<String>], options: &Options) -> BTreeMap<String, Vec<Function>> {
    let mut found: BTreeMap<String, Vec<Function>> = BTreeMap::new();
    for tokens in sources {
        for at in (0..tokens.len().saturating_sub(2)).filter(|at| tokens[*at] == "fn") {
            let Some(open) = (at..at + 40).find(|i| tokens.get(*i).is_some_and(|token| token == "(")) else { continue };
            let behind = closing(tokens, open);
            let Some(body) = (behind..tokens.len()).find(|i| tokens[*i] == "{" || tokens[*i] == ";") else { continue };
            if tokens[body] == ";" {
                continue;
            }
            let list = &tokens[open..behind];
            let parameters =
                (3..list.len()).filter(|i| options.contains_key(&list[*i]) && list[i - 1] == "&" && list[i - 2] == ":");
            let parameters = parameters.map(|i| (list[i - 3].clone(), list[i].clone())).collect();
            let body = tokens[body..closing(tokens, body)].to_vec();
            found.entry(tokens[at + 1].clone()).or_default().push(Function { parameters, body });
        }
    }
    // Methods of a struct of options read its fields, too.
    for tokens in sources {
        for at in (0..tokens.len()).filter(|at| tokens[*at] == "impl" && options.contains_key(&tokens[at + 1])) {
            let body = tokens[at + 2..closing(tokens, at + 2)].to_vec();
            let parameters = vec![("self".to_owned(), tokens[at + 1].clone())];
            for method in (0..body.len()).filter(|i| body[*i] == "fn").map(|i| body[i + 1].clone()) {
                found.entry(method).or_default().push(Function { parameters: parameters.clone(), body: body.clone() });
            }
        }
    }
    found
}

/// The fields `STRUCT.FIELD` that a function reads by itself.
fn reads(function: &Function, options: &Options) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (name, of) in &function.parameters {
        for at in (0..function.body.len()).filter(|at| function.body[*at] == *name) {
            let (mut at, mut of) = (at, of.clone());
            while function.body.get(at + 1).is_some_and(|dot| dot == ".") {
                let field = &function.body[at + 2];
                let Some((of_field, is_group)) = options[&of].get(field) else { break };
                found.insert(format!("{of}.{field}"));
                if !is_group {
                    break;
                }
                (at, of) = (at + 2, of_field.clone());
            }
        }
    }
    // Taken apart: every field that is named, and not thrown away.
    for (of, fields) in options {
        for at in (0..function.body.len().saturating_sub(1))
            .filter(|at| function.body[*at] == *of && function.body[at + 1] == "{")
        {
            let end = closing(&function.body, at + 1);
            let is_pattern = function.body.get(end).is_some_and(|next| next == "=");
            let pattern = &function.body[at + 2..end - 1];
            let kept = |i: usize| {
                pattern.get(i + 1).is_none_or(|next| next == ",") || pattern.get(i + 2).is_some_and(|name| name != "_")
            };
            if is_pattern {
                found.extend(
                    (0..pattern.len())
                        .filter(|i| fields.contains_key(&pattern[*i]) && kept(*i))
                        .map(|i| format!("{of}.{}", pattern[i])),
                );
            }
        }
    }
    found
}

/// Everything that is read from this function on.
fn reads_from(root: &str, functions: &BTreeMap<String, Vec<Function>>, options: &Options) -> BTreeSet<String> {
    let (mut seen, mut waiting, mut found) = (BTreeSet::new(), vec![root.to_owned()], BTreeSet::new());
    while let Some(name) = waiting.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        for function in functions.get(&name).into_iter().flatten() {
            found.extend(reads(function, options));
            let calls = function.body.windows(2).filter(|pair| pair[1] == "(" && functions.contains_key(&pair[0]));
            waiting.extend(calls.map(|pair| pair[0].clone()));
        }
    }
    found
}

/// All options of a struct, with those of its groups: `STRUCT.FIELD`.
fn leaves(of: &str, options: &Options) -> Vec<String> {
    let fields = options[of].iter();
    fields
        .flat_map(|(field, (of_field, is_group))| match is_group {
            true => leaves(of_field, options),
            false => vec![format!("{of}.{field}")],
        })
        .collect()
}

#[test]
fn every_option_of_a_subcommand_is_read_by_it() {
    let sources = sources_of("cli");
    let options = options(&sources);
    let functions = functions(&sources, &options);
    // `enum Command { Demo(DemoArgs), … }`
    let commands = sources.iter().find_map(|tokens| {
        let at = tokens.windows(2).position(|pair| pair == ["enum", "Command"])?;
        Some(tokens[at + 3..closing(tokens, at + 2) - 1].to_vec())
    });
    let commands = commands.expect("the subcommands");
    let commands: Vec<(String, String)> = commands
        .windows(4)
        .filter(|w| w[1] == "(" && w[3] == ")" && options.contains_key(&w[2]))
        .map(|w| (w[0].to_lowercase(), w[2].clone()))
        .collect();
    assert!(commands.len() >= 17, "{commands:?}");
    // What is read of every command before it begins: `Command::message_format`.
    let of_all = BTreeSet::from(["OutputArgs.message_format".to_owned()]);
    let tells_how =
        |tokens: &Vec<String>| tokens.windows(5).any(|w| w == ["args", ".", "output", ".", "message_format"]);
    assert!(sources.iter().any(tells_how), "{of_all:?}");
    let (mut unread, mut count) = (Vec::new(), 0);
    for (command, of) in commands {
        assert!(functions.contains_key(&command), "{command} has a function");
        let read = reads_from(&command, &functions, &options);
        let all = leaves(&of, &options);
        count += all.len();
        unread.extend(
            all.into_iter()
                .filter(|option| !read.contains(option) && !of_all.contains(option))
                .map(|option| format!("{command}: {option}")),
        );
    }
    assert!(count > 120, "{count} options");
    assert_eq!(unread, Vec::<String>::new());
}

/// The public structs with which a crate is told what to do, and their fields.
fn settings(sources: &[Vec<String>]) -> Vec<(String, Vec<String>)> {
    let is_told =
        |name: &str| ["Settings", "Options", "Limits", "Patience"].iter().any(|ending| name.ends_with(ending));
    let mut found = Vec::new();
    for tokens in sources {
        for at in 1..tokens.len().saturating_sub(2) {
            if tokens[at] != "struct" || tokens[at - 1] != "pub" || !is_told(&tokens[at + 1]) || tokens[at + 2] != "{" {
                continue;
            }
            let body = &tokens[at + 3..closing(tokens, at + 2) - 1];
            let fields = (2..body.len())
                .filter(|i| body[*i] == ":" && body[i - 2] == "pub" && body.get(i + 1).is_some_and(|next| next != ":"));
            found.push((tokens[at + 1].clone(), fields.map(|i| body[i - 1].clone()).collect()));
        }
    }
    found
}

/// Whether some code reads a field: `.field` that is neither called nor given a value, or `field` in a pattern of the struct.
fn is_read(of: &str, field: &str, sources: &[Vec<String>]) -> bool {
    sources.iter().any(|tokens| {
        let after = |at: usize| tokens.get(at + 1).map_or("", String::as_str);
        let reads = (1..tokens.len()).any(|at| {
            let is_given = after(at) == "=" && !["=", ">"].contains(&after(at + 1));
            tokens[at] == field && tokens[at - 1] == "." && after(at) != "(" && !is_given
        });
        let takes_apart = (0..tokens.len().saturating_sub(1)).any(|at| {
            if tokens[at] != of || tokens[at + 1] != "{" || at > 0 && ["struct", "for"].contains(&&*tokens[at - 1]) {
                return false;
            }
            let end = closing(tokens, at + 1);
            after(end - 1) == "=" && tokens[at + 2..end].contains(&field.to_owned())
        });
        reads || takes_apart
    })
}

/// An option that is copied into a crate's settings and forgotten there has no effect either.
#[test]
fn every_setting_of_a_crate_is_read() {
    let crates = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
    let names = crates.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // The binary only fills settings in.
    let sources: Vec<Vec<String>> = names.filter(|name| name != "cli").flat_map(|name| sources_of(&name)).collect();
    let (mut unread, mut count) = (Vec::new(), 0);
    for (of, fields) in settings(&sources) {
        count += fields.len();
        let forgotten = fields.iter().filter(|field| !is_read(&of, field, &sources));
        unread.extend(forgotten.map(|field| format!("{of}.{field}")));
    }
    assert!(count > 60, "{count} settings");
    assert_eq!(unread, Vec::<String>::new());
}

#[test]
fn a_setting_that_is_only_given_a_value_is_not_read() {
    let sources =
        |code: &str| vec![tokens(&format!("pub struct GateSettings {{ pub every: u8, pub port: u16 }} {code}"))];
    let given = sources(
        "fn new() -> GateSettings { GateSettings { every: 1, port: 2 } } fn set(s: &mut GateSettings) { s.every = 3; }",
    );
    assert_eq!(settings(&given), [("GateSettings".to_owned(), vec!["every".to_owned(), "port".to_owned()])]);
    assert!(!is_read("GateSettings", "every", &given) && !is_read("GateSettings", "port", &given));
    let used = sources("fn run(s: &GateSettings) { wait(s.every); let GateSettings { port, .. } = s; listen(port); }");
    assert!(is_read("GateSettings", "every", &used) && is_read("GateSettings", "port", &used));
}

#[test]
fn quiet_processes_log_nothing_but_errors() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let cluster = "name = \"test\"\nbroker = \"amqp://localhost\"\n[[machine]]\nname = \"here\"\naddress = \"127.0.0.1\"\n\
        [[supervisor]]\nid = 1\nmachine = \"here\"\nlisten = \"127.0.0.1:7501\"\n";
    std::fs::write(dir.path().join("cluster.toml"), cluster).unwrap();
    let key = dir.path().join("key");
    std::fs::write(&key, "0123456789abcdef".repeat(4)).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let said = |options: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tenaz"));
        command.args(["supervisor", "--id", "1", "--check", "--cluster"]).arg(dir.path()).args(options);
        let done = command.current_dir(dir.path()).env_remove("TENAZ_CONFIG").output().unwrap();
        let text = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.success(), "{text}");
        text
    };
    assert!(said(&[]).contains("cluster.toml and the key are fine"));
    assert_eq!(said(&["--quiet"]), "");
}
