//! Settings from a file: `tenaz.toml` in the current directory, or the file that `TENAZ_CONFIG` names.
//!
//! Defaults < file < environment `TENAZ_*` < flags. A setting is any option that also has an environment variable, under
//! its long name: `threads = 4`, `memory = "1G"`, `chunk-size = "8M"`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Command;

use crate::outcome::Usage;

const FILE: &str = "tenaz.toml";

/// The command line with the file's settings as its defaults.
pub(crate) fn with_file(command: Command) -> Result<Command> {
    let named = std::env::var_os("TENAZ_CONFIG").map(PathBuf::from);
    let path = match &named {
        Some(path) => path.as_path(),
        None if Path::new(FILE).is_file() => Path::new(FILE),
        None => return Ok(command),
    };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    apply(command, &text, &path.display().to_string())
}

fn apply(mut command: Command, text: &str, file: &str) -> Result<Command> {
    let settings: BTreeMap<String, toml::Value> =
        toml::from_str(text).map_err(|e| Usage(format!("{file}: {}", e.to_string().trim().replace('\n', " "))))?;
    let known = setting_names(&command);
    for (name, value) in settings {
        if !known.contains(&name) {
            let close = tenaz_words::nearest(&name, known.iter().map(String::as_str));
            let cure = match close.first() {
                Some(close) => format!("did you mean {close}?"),
                None => format!("there are {}", known.join(", ")),
            };
            return Err(Usage(format!("{file}: there is no setting {name:?}; {cure}")).into());
        }
        let value = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(_) | toml::Value::Float(_) | toml::Value::Boolean(_) => value.to_string(),
            _ => return Err(Usage(format!("{file}: {name} must be a number or a text in quotes")).into()),
        };
        // Defaults of a command line live as long as the program; there are only a few.
        let value: &'static str = Box::leak(value.into_boxed_str());
        command = with_default(command, &name, value);
    }
    Ok(command)
}

fn setting_names(command: &Command) -> Vec<String> {
    let arguments = command.get_subcommands().flat_map(Command::get_arguments);
    let settings = arguments.filter(|a| a.get_env().is_some());
    let mut names: Vec<String> = settings.filter_map(|a| a.get_long().map(str::to_owned)).collect();
    names.sort();
    names.dedup();
    names
}

fn with_default(mut command: Command, name: &str, value: &'static str) -> Command {
    let subcommands: Vec<String> = command.get_subcommands().map(|s| s.get_name().to_owned()).collect();
    for subcommand in subcommands {
        command = command.mut_subcommand(subcommand, |subcommand| {
            subcommand.mut_args(|argument| {
                if argument.get_long() == Some(name) && argument.get_env().is_some() {
                    argument.default_value(value).required(false)
                } else {
                    argument
                }
            })
        });
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, FromArgMatches};

    use crate::args::{Cli, Command as Sub};

    fn parsed(text: &str, line: &[&str]) -> Result<Cli> {
        let command = apply(Cli::command(), text, "tenaz.toml")?;
        Ok(Cli::from_arg_matches(&command.try_get_matches_from(line)?)?)
    }

    #[test]
    fn a_setting_of_the_file_is_a_default_that_a_flag_overrules() {
        let line = ["tenaz", "run", "coffee", "--data", "d"];
        let Sub::Run(args) = parsed("threads = 3\nmemory = \"1G\"", &line).expect("valid").command else { panic!() };
        assert_eq!((args.engine.threads, args.engine.memory), (Some(3), 1 << 30));
        let line = ["tenaz", "run", "coffee", "--data", "d", "--threads", "5"];
        let Sub::Run(args) = parsed("threads = 3", &line).expect("valid").command else { panic!() };
        assert_eq!(args.engine.threads, Some(5));
    }

    #[test]
    fn an_unknown_setting_names_the_nearest_one() {
        let error = parsed("treads = 3", &["tenaz", "demo"]).expect_err("no such setting");
        assert_eq!(error.to_string(), "tenaz.toml: there is no setting \"treads\"; did you mean threads?");
    }
}
