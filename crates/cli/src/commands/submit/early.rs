//! Answers that are fetched as soon as they are final, while their job goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use tenaz_client::Gateways;
use tenaz_client::api::{Job, QuestionState};
use tenaz_core::{FailedQuery, QueryId};
use tenaz_engine::PlannedQuery;
use tenaz_runtime::Answer;

use super::background::Background;
use crate::delivery::Delivery;
use crate::fetch::Fetcher;
use crate::row_stream::RowStream;

/// So many answers are fetched at a time.
const AT_ONCE: usize = 4;
/// So many questions are streamed at a time while their rows become known. The others are streamed when they are final.
const STREAMS: usize = 16;

/// The answers of one job, on their way.
pub(super) struct EarlyAnswers<'a> {
    fetcher: Arc<Fetcher>,
    stream: Option<Arc<RowStream>>,
    delivery: &'a Delivery<'a>,
    queries: &'a [PlannedQuery],
    begun: BTreeMap<usize, Background<Answer>>,
    done: BTreeMap<usize, Answer>,
}

impl<'a> EarlyAnswers<'a> {
    /// Begins to stream the rows of unordered answers, if somebody wants them as they become known.
    pub(super) fn begin(
        fetcher: &Arc<Fetcher>,
        stream: Option<&Arc<RowStream>>,
        delivery: &'a Delivery<'a>,
        queries: &'a [PlannedQuery],
    ) -> Self {
        let (fetcher, stream) = (Arc::clone(fetcher), stream.cloned());
        let mut early = Self { fetcher, stream, delivery, queries, begun: BTreeMap::new(), done: BTreeMap::new() };
        if early.stream.is_some() {
            let unordered = (0..queries.len()).filter(|&index| !queries[index].ordered).take(STREAMS);
            unordered.for_each(|index| early.fetch(index));
        }
        early
    }

    fn fetch(&mut self, index: usize) {
        let (fetcher, stream, query) = (Arc::clone(&self.fetcher), self.stream.clone(), self.queries[index].clone());
        let id = QueryId(index as u16);
        self.begun.insert(index, Background::start(move || fetcher.answer(&query, stream.as_deref().map(|s| (s, id)))));
    }

    /// Fetches answers that have become final, and hands out those that have come.
    pub(super) fn look(&mut self, job: &Job) -> Result<()> {
        for (index, query) in self.queries.iter().enumerate() {
            let is_final =
                job.questions.iter().any(|found| found.name == query.name && found.state == QuestionState::Final);
            let running = self.begun.values().filter(|fetch| !fetch.is_finished()).count();
            let is_begun = self.begun.contains_key(&index) || self.done.contains_key(&index);
            if is_final && !is_begun && running < AT_ONCE {
                self.fetch(index);
            }
        }
        // Why one could not be fetched may be that it has failed: that is told in the end.
        let come: Vec<usize> =
            self.begun.iter().filter(|(_, fetch)| fetch.has_succeeded()).map(|(at, _)| *at).collect();
        for index in come {
            if let Some(fetch) = self.begun.remove(&index) {
                let answer = fetch.wait(&self.fetcher.gateways)?;
                self.hand_out(index, answer)?;
            }
        }
        Ok(())
    }

    fn hand_out(&mut self, index: usize, answer: Answer) -> Result<()> {
        if let Some(stream) = &self.stream {
            stream.question_final(QueryId(index as u16), &answer);
            stream.failure().map_or(Ok(()), Err)?;
        }
        self.delivery.answer(&answer);
        self.done.insert(index, answer);
        self.delivery.failure().map_or(Ok(()), Err)
    }

    /// The answers to all questions but those that have failed, in the order asked. The job is done.
    pub(super) fn finish(mut self, gateways: &Gateways, failed: &[FailedQuery]) -> Result<Vec<Answer>> {
        for (index, query) in self.queries.iter().enumerate() {
            match failed.iter().find(|failed| failed.name == query.name) {
                Some(failed) => {
                    self.delivery.failed(failed);
                    if let Some(stream) = &self.stream {
                        stream.question_failed(QueryId(index as u16), failed);
                    }
                }
                None if self.done.contains_key(&index) => {}
                None => {
                    if !self.begun.contains_key(&index) {
                        self.fetch(index);
                    }
                    if let Some(fetch) = self.begun.remove(&index) {
                        let answer = fetch.wait(gateways)?;
                        self.hand_out(index, answer)?;
                    }
                }
            }
        }
        Ok(self.done.into_values().collect())
    }
}
