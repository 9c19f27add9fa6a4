//! `COPY (…) TO 'file'`: answers that go to files of their own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use tenaz_engine::{Purpose, Statement};
use tenaz_runtime::format::{DecimalMark, Format};
use tenaz_runtime::{Answer, Outcome};

use crate::hand_out::{answers_in, directory_of, format_by_ending};
use crate::out_dir::OutDir;
use crate::outcome::Usage;

/// The answers of a job that go to files of their own.
#[derive(Debug, Default)]
pub(crate) struct Copies(Vec<AnswerFile>);

#[derive(Debug)]
struct AnswerFile {
    query: String,
    path: PathBuf,
    format: Format,
}

impl Copies {
    /// Those that the statements ask for. Paths are relative to the current directory.
    pub(crate) fn of(statements: &[Statement]) -> Result<Self> {
        let mut files: Vec<AnswerFile> = Vec::new();
        for statement in statements {
            let Purpose::Copy { path, format } = &statement.purpose else { continue };
            let path = PathBuf::from(path);
            if files.iter().any(|known| known.path == path) {
                return Err(
                    Usage(format!("two statements write {}; give each a file of its own", path.display())).into()
                );
            }
            let format = match format {
                Some(name) => Some(crate::args::format(name).map_err(|cure| Usage(format!("FORMAT {name}: {cure}")))?),
                None => None,
            };
            let format = format_by_ending(&path, format)?;
            files.push(AnswerFile { query: statement.query.name.clone(), path, format });
        }
        Ok(Self(files))
    }

    /// Whether the answer to this query goes to a file of its own.
    pub(crate) fn has(&self, query: &str) -> bool {
        self.0.iter().any(|file| file.query == query)
    }

    /// The files that will be written.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|file| file.path.as_path())
    }

    /// Makes the directories, before any work is done.
    pub(crate) fn prepare(&self) -> Result<()> {
        let dirs: BTreeSet<&Path> = self.paths().map(directory_of).collect();
        dirs.into_iter().try_for_each(|dir| OutDir::create(dir).map(drop))
    }

    /// Writes the files of the queries that were answered, and gives back what is not as the answers have it.
    pub(crate) fn write(&self, outcome: &Outcome, mark: DecimalMark) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        for file in &self.0 {
            let answer: Option<&Answer> = outcome.answers.iter().find(|answer| answer.name == file.query);
            if let Some(answer) = answer {
                let out = OutDir::create(directory_of(&file.path))?;
                notes.extend(answers_in(out, &file.path, (file.format, mark), answer)?);
            }
        }
        Ok(notes)
    }
}
