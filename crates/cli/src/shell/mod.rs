//! The interactive shell of `tenaz sql` on a terminal: questions over several lines up to a `;`, and commands that begin with a point.
//!
//! ```text
//!  LineEditor ──line──▶ Statement (until `;`) ──text──▶ commands::sql::ask    (a failed question is told, and the shell goes on)
//! ```

mod completion;
mod history;
mod keys;
mod line_editor;

use anyhow::Result;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use tenaz_infer::Inferred;
use tenaz_runtime::format::Format;

use completion::Words;
use history::History;
use line_editor::{Line, LineEditor};

use crate::args::SqlArgs;
use crate::commands::sql;
use crate::outcome;
use crate::screen::Screen;
use crate::stop::StopSignal;
use tenaz_local::statements::with_values;

const PROMPT: &str = "tenaz> ";
const CONTINUED: &str = "   ... ";

const HELP: &str = "\
Write a question and end it with ; over as many lines as you like. Tab completes names, the arrows fetch earlier lines.
  SHOW TABLES; DESCRIBE t; SUMMARIZE t; EXPLAIN SELECT …; COPY (SELECT …) TO 'file.xlsx'; CREATE VIEW v AS …
  .tables        the tables and their columns
  .schema T      the columns of a table, as DESCRIBE T;
  .notes         what was guessed about the files, and the options that overrule it
  .format NAME   the format of answers: table, csv, json, ndjson, markdown, chart, …; without a name, which it is
  .help          this
  .quit          leaves, and so does Ctrl-D; Ctrl-C stops the question that runs, or drops what was typed";

/// What a line that begins with a point asks for.
#[derive(Debug, PartialEq, Eq)]
enum Command<'l> {
    Tables,
    Schema(&'l str),
    Notes,
    Format(Option<&'l str>),
    Help,
    Quit,
    Unknown(&'l str),
}

impl<'l> Command<'l> {
    fn of(line: &'l str) -> Self {
        let line = line.trim().trim_end_matches(';').trim_end();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            ".tables" => Self::Tables,
            ".schema" if !rest.is_empty() => Self::Schema(rest),
            ".schema" => Self::Tables,
            ".notes" => Self::Notes,
            ".format" => Self::Format((!rest.is_empty()).then_some(rest)),
            ".help" => Self::Help,
            ".quit" | ".exit" => Self::Quit,
            other => Self::Unknown(other),
        }
    }
}

/// Asks and answers until the user leaves.
pub(crate) fn run(args: &SqlArgs, inferred: &Inferred, screen: &Screen) -> Result<()> {
    // Ctrl-C in the moment before a question runs must not end the shell.
    let _ignored = StopSignal::of_shell()?;
    screen.say("Questions end with ;  (.help says more, .quit leaves)");
    let mut shell = Shell { args, inferred, screen, format: args.output.format, views: Vec::new() };
    let mut editor = LineEditor::new(History::of_user(), Words::of(&inferred.workload));
    let mut text = String::new();
    loop {
        let line = match editor.read(if text.is_empty() { PROMPT } else { CONTINUED })? {
            Line::Text(line) => line,
            Line::Interrupted => {
                text.clear();
                continue;
            }
            Line::End => return Ok(()),
        };
        if text.is_empty() && line.trim_start().starts_with('.') {
            if shell.command(&Command::of(&line)) {
                return Ok(());
            }
            continue;
        }
        if text.is_empty() && line.trim().is_empty() {
            continue;
        }
        text.push_str(&line);
        text.push('\n');
        if is_complete(&text) {
            shell.ask(&std::mem::take(&mut text));
        }
    }
}

struct Shell<'a> {
    args: &'a SqlArgs,
    inferred: &'a Inferred,
    screen: &'a Screen,
    format: Option<Format>,
    /// What created and dropped the views so far.
    views: Vec<String>,
}

impl Shell<'_> {
    fn wrong(&self, text: &str) {
        self.screen.insist(&format!("tenaz: {text}"));
    }

    /// Does what a line with a point asks for. True: the user leaves.
    fn command(&mut self, command: &Command<'_>) -> bool {
        match command {
            Command::Tables => self.told(sql::list(self.inferred, None)),
            Command::Schema(table) => self.ask(&format!("DESCRIBE {table};")),
            Command::Notes if self.inferred.notes.is_empty() => {
                self.screen.insist("nothing was guessed beyond the usual")
            }
            Command::Notes => self.inferred.notes.iter().for_each(|note| self.screen.insist(&format!("note: {note}"))),
            Command::Format(None) => self.screen.insist(self.format.unwrap_or(Format::Table).name()),
            Command::Format(Some(name)) => match crate::args::format(name) {
                Ok(format) if format.is_binary() => {
                    let name = format.name();
                    self.wrong(&format!("{name} is not for a terminal; write COPY (SELECT …) TO 'file.{name}';"));
                }
                Ok(format) => self.format = Some(format),
                Err(cure) => self.wrong(&format!(".format {name}: {cure}")),
            },
            Command::Help => self.screen.insist(HELP),
            Command::Quit => return true,
            Command::Unknown(word) => self.wrong(&format!("there is no command {word}; .help names them")),
        }
        false
    }

    /// Answers the questions of a text. Views that it creates are there for later ones.
    fn ask(&mut self, text: &str) {
        let (views, questions) = without_views(text);
        let mut all = self.views.clone();
        all.extend(views);
        let mut whole: String = all.iter().map(|view| format!("{}; ", view.replace('\n', " "))).collect();
        whole.push_str(&questions);
        let asked = self
            .with_values(&whole)
            .and_then(|whole| sql::ask(self.args, self.inferred, ("query", &whole), self.format, self.screen));
        if asked.is_ok() {
            self.views = all;
        }
        self.told(asked);
    }

    /// The values of `--set` that the text has places for.
    fn with_values(&self, text: &str) -> Result<String> {
        let is_used =
            |entry: &&String| entry.split('=').next().is_some_and(|name| text.contains(&format!("${}", name.trim())));
        with_values(text, &self.args.set.iter().filter(is_used).cloned().collect::<Vec<_>>()).map_err(sql::wrong)
    }

    fn told(&self, done: Result<()>) {
        if let Err(error) = done {
            // The exit code is that of a program that ends; this one goes on.
            let _ = outcome::report(&error, self.screen);
        }
    }
}

/// Whether a `;` ends the text, and not one inside quotes or a comment.
fn is_complete(text: &str) -> bool {
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, text).tokenize() else { return false };
    tokens.iter().rfind(|token| !matches!(token, Token::Whitespace(_))) == Some(&Token::SemiColon)
}

/// The statements of a text that create or drop views, and the text of the others.
fn without_views(text: &str) -> (Vec<String>, String) {
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, text).tokenize() else { return (Vec::new(), text.to_owned()) };
    let (mut views, mut others) = (Vec::new(), Vec::new());
    for statement in tokens.split(|token| *token == Token::SemiColon) {
        let words = statement.iter().filter_map(|token| match token {
            Token::Word(word) => Some(word.value.to_lowercase()),
            _ => None,
        });
        let first: Vec<String> = words.take(4).collect();
        let is_view =
            matches!(first.first().map(String::as_str), Some("create" | "drop")) && first.contains(&"view".to_owned());
        let text: String = statement.iter().map(Token::to_string).collect();
        if text.trim().is_empty() {
            continue;
        }
        if is_view { views.push(text.trim().to_owned()) } else { others.push(text) }
    }
    // As it was typed, so that places of mistakes are right.
    let others = if views.is_empty() { text.to_owned() } else { others.join(";") };
    (views, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_goes_on_until_a_semicolon_that_is_one() {
        assert!(is_complete("SELECT 1;\n") && is_complete("SELECT 1; -- done\n"));
        for text in ["SELECT 1", "SELECT ';", "SELECT 1 -- ;\n", "SELECT ';'\n", "/* ; "] {
            assert!(!is_complete(text), "{text}");
        }
    }

    #[test]
    fn commands_begin_with_a_point() {
        assert_eq!(Command::of(".tables;"), Command::Tables);
        assert_eq!(Command::of(" .schema  orders ;"), Command::Schema("orders"));
        assert_eq!(Command::of(".format csv"), Command::Format(Some("csv")));
        assert_eq!(Command::of(".nonsense"), Command::Unknown(".nonsense"));
    }

    #[test]
    fn views_are_told_from_questions() {
        let (views, rest) = without_views("CREATE OR REPLACE VIEW v AS SELECT 1 AS n; SELECT * FROM v;");
        assert_eq!(views, ["CREATE OR REPLACE VIEW v AS SELECT 1 AS n"]);
        assert_eq!(rest.trim(), "SELECT * FROM v");
        assert_eq!(without_views("SELECT 'view';").1, "SELECT 'view';");
    }
}
