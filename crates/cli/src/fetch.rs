//! Answers from a gateway, put together by the same code as those of `tenaz run`, and checked.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::record_batch::RecordBatch;
use tenaz_client::{End, Error, Flow, Gateways, read_end};
use tenaz_core::QueryId;
use tenaz_engine::{EdgeInput, PlannedQuery};
use tenaz_runtime::{Answer, RowCounts, Spool, SpooledRows, Workspace, reject_schema};

use crate::row_stream::RowStream;

/// Fetches the answers of one job.
pub(crate) struct Fetcher {
    pub(crate) gateways: Arc<Gateways>,
    pub(crate) job: String,
    pub(crate) workspace: Workspace,
    /// The job is still running: rows may be a long time coming, and whoever follows it decides when to give up.
    pub(crate) running: AtomicBool,
}

impl Fetcher {
    /// The answer to a query. Its rows also go to `stream`, each once, however often the connection breaks.
    pub(crate) fn answer(&self, query: &PlannedQuery, stream: Option<(&RowStream, QueryId)>) -> Result<Answer> {
        // What an attempt that was cut off had written to the stream, and this one has not come across yet.
        let mut written = RowCounts::new(&query.schema)?;
        let mut read = || {
            self.gateways.read_rows(&self.job, &query.name, |body| {
                let mut rows = self.workspace.spool();
                let end = self.take_rows(body, &query.schema, |batch| {
                    if let Some((stream, id)) = stream
                        && !stream.rows(id, &written.take(&batch)?)
                    {
                        return Err(Error::Stopped.into());
                    }
                    Ok(rows.append(batch)?)
                });
                match end {
                    Err(Flow::Cut(why)) => {
                        if stream.is_some() {
                            remember(&mut written, rows)?;
                        }
                        Err(Flow::Cut(why))
                    }
                    other => Ok((rows, other?)),
                }
            })
        };
        let (rows, end) = loop {
            match read() {
                Err(error) if self.running.load(Ordering::Relaxed) && is_away(&error) => {}
                other => break other?,
            }
        };
        if !written.is_empty() {
            return Err(fault(format!("rows of {} were written that are not part of the answer", query.name)));
        }
        let answer = self.workspace.answer(query, rows)?;
        check(&answer, end.rows, end.fingerprint.as_deref())?;
        Ok(answer)
    }

    /// All bad records, in the order of the data; there must be `count`.
    pub(crate) fn rejects(&self, count: u64) -> Result<Option<Arc<SpooledRows>>> {
        if count == 0 {
            return Ok(None);
        }
        let schema = reject_schema();
        let (rows, end) = self.gateways.read_rejects::<_, anyhow::Error>(&self.job, |body| {
            let mut rows = self.workspace.spool();
            let end = self.take_rows(body, &schema, |batch| Ok(rows.append(batch)?))?;
            Ok((rows, end))
        })?;
        if rows.rows() != count || end.rows != count {
            return Err(fault(format!("the job rejected {count} records, and {} came", rows.rows())));
        }
        Ok(Some(Arc::new(rows.into_input())))
    }

    /// Reads an Arrow stream and its end record.
    fn take_rows(
        &self,
        body: &mut dyn Read,
        schema: &SchemaRef,
        mut each: impl FnMut(RecordBatch) -> Result<()>,
    ) -> Result<End, Flow<anyhow::Error>> {
        let cut = |error: &dyn std::fmt::Display| Flow::Cut(format!("the stream of rows broke off: {error}"));
        let mut body = BufReader::with_capacity(1 << 16, body);
        // An answer that failed before its columns were known is an error record only.
        if body.fill_buf().map_err(|error| cut(&error))?.first() == Some(&b'{') {
            return read_end(&self.job, &mut body).map_err(own);
        }
        let mut reader = StreamReader::try_new(body, None).map_err(|error| cut(&error))?;
        if !same_types(&reader.schema(), schema) {
            let text =
                "the gateway's answer has other columns than the same workload has here; is it of another version?";
            return Err(Flow::Stop(anyhow::anyhow!(text)));
        }
        for batch in reader.by_ref() {
            let batch = batch.map_err(|error| cut(&error))?;
            if self.gateways.is_stopping() {
                return Err(Flow::Stop(Error::Stopped.into()));
            }
            each(RecordBatch::try_new(Arc::clone(schema), batch.columns().to_vec()).map_err(anyhow::Error::from)?)?;
        }
        read_end(&self.job, reader.get_mut()).map_err(own)
    }
}

/// Counts the rows of an attempt that was cut off: they have been written.
fn remember(written: &mut RowCounts, rows: Spool) -> Result<()> {
    for batch in rows.into_input().batches() {
        written.add(&batch?)?;
    }
    Ok(())
}

/// Whether an answer is the one that was promised.
pub(crate) fn check(answer: &Answer, rows: u64, fingerprint: Option<&str>) -> Result<()> {
    let name = &answer.name;
    if answer.rows != rows {
        return Err(fault(format!("{name} has {rows} rows, and {} came", answer.rows)));
    }
    match fingerprint {
        Some(told) if told != answer.fingerprint => {
            let came = &answer.fingerprint;
            Err(fault(format!("{name} has the fingerprint {told}, and rows with the fingerprint {came} came")))
        }
        _ => Ok(()),
    }
}

/// Whether no gateway was of use. A job that failed is over, whatever the class of its end.
fn is_away(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Away { .. }))
}

fn fault(text: String) -> anyhow::Error {
    Error::Fault(format!("{text}; the answers are withheld")).into()
}

fn own(flow: Flow<Error>) -> Flow<anyhow::Error> {
    match flow {
        Flow::Cut(why) => Flow::Cut(why),
        Flow::Stop(error) => Flow::Stop(error.into()),
    }
}

fn same_types(one: &Schema, other: &Schema) -> bool {
    let columns = |schema: &Schema| -> Vec<_> {
        schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect()
    };
    columns(one) == columns(other)
}
