//! The worker's part, played by tests: heartbeats, and messages as a worker writes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray, StringViewArray};
use datafusion::arrow::datatypes::Int32Type;
use datafusion::arrow::ipc::writer::StreamWriter;
use tenaz_cluster::{
    Book, ChunkHeader, Encoding, Janitor, Link, Membership, Patience, QueryEnd, ResultEnd, ResultIndex, Role, TableEnd,
    frame, unframe,
};
use tenaz_core::{
    ChunkDigest, DoneSummary, End, FailedQuery, FailedStages, FaultClass, Header, JobId, Lineage, Log, RegistryEvent,
    Source, StageId, TableId, WorkloadText,
};
use tenaz_engine::{Edge, JobPlan, Workload};
use tenaz_rabbit::Consumer;
use tenaz_runtime::cluster::{ChunkAccount, RejectsPart, RowsHeader, encode};
use tenaz_runtime::reject_piece_schema;

use super::{DEADLINE, Deployment, SHOP, soon};

/// A member that says it is a worker.
pub(crate) struct Worker {
    pub(crate) link: Link,
    pub(crate) book: Arc<Book>,
    pub(crate) membership: Arc<Membership>,
}

impl Worker {
    pub(crate) async fn join(deployment: &Deployment) -> Self {
        Self::join_with(deployment, Patience::default()).await
    }

    /// Workers clean up, too: which member does it for a job is decided by its id.
    pub(crate) async fn join_with(deployment: &Deployment, patience: Patience) -> Self {
        let link = deployment.link().await;
        let book = soon("opening a book", Book::open(&link)).await.unwrap();
        let membership = Membership::join(&link, Role::Worker, Membership::new_id().unwrap(), |_| {});
        Janitor::start(&link, &book, &membership, patience);
        Self { link, book, membership }
    }

    pub(crate) async fn leave(self) {
        soon("leaving", self.membership.leave()).await;
        soon("closing a link", self.link.close()).await;
    }

    /// Takes everything that is in a work queue, each message acknowledged.
    pub(crate) async fn take_chunks(&self, job: &str, wave: usize, count: usize) -> Vec<(ChunkHeader, Vec<u8>)> {
        let queue = self.link.names().chunks(&id(job), wave);
        let session = self.link.session().await;
        let mut consumer = Consumer::open(&session.reading, &queue, 16).await.unwrap();
        let mut taken = Vec::new();
        while taken.len() < count {
            let delivery = tokio::time::timeout(DEADLINE, consumer.next()).await.expect("a chunk").unwrap();
            consumer.ack(delivery.tag).await.unwrap();
            let framed = unframe::<ChunkHeader>(&queue, &delivery.body).unwrap();
            taken.push((framed.header, framed.payload.to_vec()));
        }
        taken
    }

    /// Puts chunks into a work queue that no gateway knows of.
    pub(crate) async fn put_chunks(&self, job: &str, wave: usize, count: u32) {
        let queue = self.link.names().chunks(&id(job), wave);
        let header = |number: u32| ChunkHeader {
            table: TableId(0),
            number: u64::from(number),
            file: String::new(),
            byte: 0,
            line: 1,
            records: None,
            encoding: Encoding::Identity,
            raw_bytes: 0,
            digest: ChunkDigest::of(&[]),
        };
        let putting = (0..count).map(|number| self.link.publish(&queue, "chunk", frame(&header(number), &[]).into()));
        futures::future::join_all(putting).await.into_iter().for_each(|put| put.unwrap());
    }

    /// How many chunks wait in a work queue; `None` if there is no such queue.
    pub(crate) async fn depth(&self, job: &str, wave: usize) -> Option<u32> {
        let queue = self.link.names().chunks(&id(job), wave);
        let depth = self.link.persist(|session| {
            let queue = queue.clone();
            async move { session.reading.queue_depth(&queue).await }
        });
        depth.await.unwrap()
    }

    pub(crate) async fn write(&self, job: &str, kind: &str, message: Vec<u8>) {
        let log = self.link.names().log(&id(job), Log::Results);
        self.link.publish(&log, kind, message.into()).await.unwrap();
    }

    /// Writes rows of `large`, as the leaf task of a chunk does.
    pub(crate) async fn write_rows(&self, job: &str, chunk: u64, rows: &[(i64, &str)]) {
        let stage = results_stage("large");
        let source = Source::Chunk { table: TableId(0), number: chunk };
        for message in encode(source, Lineage::default(), &[(stage, batch(rows))], Default::default()).unwrap() {
            self.write(job, "rows", message).await;
        }
    }

    /// Writes the bad records of a chunk: (line, reason).
    pub(crate) async fn write_rejects(&self, job: &str, table: TableId, chunk: u64, lines: &[(i64, &str)]) {
        let batch = reject_batch(lines);
        let mut bytes = Vec::new();
        let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        drop(writer);
        let header = RowsHeader {
            id: Header {
                source: Source::Chunk { table, number: chunk },
                content: 0,
                part: 0,
                parts: 1,
                lineage: Lineage::default(),
            },
            batches: Vec::new(),
            account: Some(ChunkAccount { records: 9, accepted: 8, rejected: 1, ..ChunkAccount::default() }),
            rejects: Some(RejectsPart {
                table: "sales".to_owned(),
                file: "sales.csv".to_owned(),
                bytes: bytes.len() as u32,
            }),
            failed: FailedStages::default(),
        };
        self.write(job, "rows", frame(&header, &[&bytes])).await;
    }

    /// Writes accounts of chunks without rows or bad records: one message each.
    pub(crate) async fn write_accounts(&self, job: &str, chunks: std::ops::Range<u64>) {
        let account = |number: u64| RowsHeader {
            id: Header {
                source: Source::Chunk { table: TableId(0), number },
                lineage: Lineage::default(),
                content: 0,
                part: 0,
                parts: 1,
            },
            batches: Vec::new(),
            account: Some(ChunkAccount { records: 1, accepted: 1, ..ChunkAccount::default() }),
            rejects: None,
            failed: FailedStages::default(),
        };
        let writing = chunks.map(|number| self.write(job, "rows", frame(&account(number), &[])));
        futures::future::join_all(writing).await;
    }

    /// Ends a job whose only question could not be answered, as the owner of its results does.
    pub(crate) async fn finish_without_answer(&self, job: &str, text: &str) {
        let failed = vec![FailedQuery { name: "large".to_owned(), class: FaultClass::Query, text: text.into() }];
        let end = ResultEnd { queries: Vec::new(), failed: failed.clone(), tables: Vec::new(), index: None };
        self.write(job, "end", serde_json::to_vec(&end).unwrap()).await;
        let done = End::Done(DoneSummary { failed, ..DoneSummary::default() });
        self.book.write(&RegistryEvent::Ended { id: id(job), end: done }).await.unwrap();
    }

    /// Ends a job as the owner of its results does.
    pub(crate) async fn finish(&self, job: &str, rows: u64) -> ResultEnd {
        self.finish_with(job, rows, None).await
    }

    /// The same, and says where the rows are.
    pub(crate) async fn finish_with(&self, job: &str, rows: u64, index: Option<ResultIndex>) -> ResultEnd {
        let query = QueryEnd {
            name: "large".to_owned(),
            rows,
            fingerprint: "f00d".to_owned(),
            ordered: false,
            final_at_ms: None,
        };
        let table = TableEnd {
            name: "sales".to_owned(),
            records: 5,
            accepted: 4,
            rejected: 1,
            reasons: BTreeMap::from([("not_int".to_owned(), 1)]),
            bytes: 50,
            chunks: 2,
        };
        let summary = DoneSummary {
            chunks: 2,
            bytes: 50,
            records: 5,
            rejected: 1,
            answers: 1,
            end_from: index.as_ref().map_or(0, |index| index.read_to),
            failed: Vec::new(),
        };
        let end = ResultEnd { queries: vec![query], failed: Vec::new(), tables: vec![table], index };
        self.write(job, "end", serde_json::to_vec(&end).unwrap()).await;
        self.book.write(&RegistryEvent::Ended { id: id(job), end: End::Done(summary) }).await.unwrap();
        end
    }
}

pub(crate) fn id(job: &str) -> JobId {
    JobId::parse(job).unwrap()
}

/// The stage whose rows are the answer to a query, where the query is the only one asked.
fn results_stage(query: &str) -> StageId {
    let files = WorkloadText { file: "shop.toml".to_owned(), toml: SHOP.to_owned(), sql: BTreeMap::new(), now: None };
    let plan = JobPlan::new(&Workload::from_text(&files).unwrap().select(&[query.to_owned()]).unwrap()).unwrap();
    let stage = plan.stages.iter().position(|stage| matches!(stage.edge, Edge::Results(_)));
    StageId(stage.unwrap() as u16)
}

fn batch(rows: &[(i64, &str)]) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
    let texts: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.1)).collect::<StringViewArray>());
    RecordBatch::try_from_iter_with_nullable([("n", numbers, true), ("item", texts, true)]).unwrap()
}

fn reject_batch(lines: &[(i64, &str)]) -> RecordBatch {
    let numbers = Arc::new(Int64Array::from_iter_values(lines.iter().map(|line| line.0))) as ArrayRef;
    let names = Arc::new(lines.iter().map(|_| Some("n")).collect::<DictionaryArray<Int32Type>>()) as ArrayRef;
    let reasons = Arc::new(lines.iter().map(|line| Some(line.1)).collect::<DictionaryArray<Int32Type>>()) as ArrayRef;
    let texts = Arc::new(StringArray::from(vec!["x,y"; lines.len()])) as ArrayRef;
    let columns = vec![numbers.clone(), numbers, names, reasons, texts];
    RecordBatch::try_new(reject_piece_schema(), columns).unwrap()
}
