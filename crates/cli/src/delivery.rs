//! Answers handed out as they become final, while other questions of their job go on.

use std::collections::BTreeSet;
use std::io::{IsTerminal, stdout};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::Result;
use tenaz_core::FailedQuery;
use tenaz_runtime::Answer;
use tenaz_runtime::format::DecimalMark;

use crate::copies::Copies;
use crate::hand_out::{REJECTS, SUMMARY, Target, file_name, show_answer, write_answer};
use crate::out_dir::OutDir;
use crate::screen::Screen;

/// Where final answers go. Shared by the threads that make them, or fetch them.
pub(crate) struct Delivery<'a> {
    target: &'a Target,
    mark: DecimalMark,
    copies: &'a Copies,
    screen: &'a Screen,
    started: Instant,
    /// Whether tables appear one by one: somebody looks.
    shows: bool,
    state: Mutex<State>,
}

struct State {
    out: Option<OutDir>,
    delivered: BTreeSet<String>,
    error: Option<anyhow::Error>,
}

impl<'a> Delivery<'a> {
    /// Nothing handed out yet.
    pub(crate) fn new(
        (target, mark): (&'a Target, DecimalMark),
        copies: &'a Copies,
        out: Option<OutDir>,
        screen: &'a Screen,
    ) -> Self {
        let state = Mutex::new(State { out, delivered: BTreeSet::new(), error: None });
        Self { target, mark, copies, screen, started: Instant::now(), shows: stdout().is_terminal(), state }
    }

    /// Hands out a final answer, unless that is done already. False: it cannot be, and nobody wants the others.
    pub(crate) fn answer(&self, answer: &Answer) -> bool {
        let mut state = self.lock();
        if state.error.is_none() && !self.copies.has(&answer.name) && !state.delivered.contains(&answer.name) {
            match self.hand_out(answer, &mut state) {
                Ok(true) => drop(state.delivered.insert(answer.name.clone())),
                Ok(false) => {}
                Err(error) => state.error = Some(error),
            }
        }
        state.error.is_none()
    }

    fn hand_out(&self, answer: &Answer, state: &mut State) -> Result<bool> {
        match (self.target, &mut state.out) {
            (Target::Dir(_, format), Some(out)) => {
                if state.delivered.is_empty() {
                    // From now on those of an earlier run would tell of other answers.
                    out.take_away(SUMMARY)?;
                    out.take_away(REJECTS)?;
                }
                let name = file_name(&answer.name, *format);
                out.place(&name, |file| {
                    let notes = write_answer(answer, &mut *format.writer_with(file, self.mark))?;
                    notes.iter().for_each(|note| self.screen.say(&format!("note: {name}: {note}")));
                    Ok(())
                })?;
                Ok(true)
            }
            (Target::Screen(format, rows), _) if self.shows => {
                let (is_first, elapsed) = (state.delivered.is_empty(), self.started.elapsed());
                self.screen.beside_bars(|| show_answer(answer, (*format, self.mark), *rows, is_first, elapsed))?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// A question that has failed: an answer of an earlier run would look like one of this.
    pub(crate) fn failed(&self, failed: &FailedQuery) {
        let mut state = self.lock();
        if let (Target::Dir(_, format), Some(out)) = (self.target, &mut state.out)
            && let Err(error) = out.take_away(&file_name(&failed.name, *format))
        {
            state.error.get_or_insert(error);
        }
    }

    /// Why an answer could not be handed out, once.
    pub(crate) fn failure(&self) -> Option<anyhow::Error> {
        self.lock().error.take()
    }

    /// What is left to do: the directory, and the answers that were handed out.
    pub(crate) fn finish(self) -> (Option<OutDir>, BTreeSet<String>) {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        (state.out, state.delivered)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
