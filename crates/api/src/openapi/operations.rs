//! The operations: one entry per route.

use schemars::JsonSchema;
use schemars::generate::SchemaGenerator;
use serde_json::{Value, json};

use crate::{
    ChunkReceipt, Cluster, CreatedJob, Digests, EndedJob, FileReceipt, Finish, FinishAnswer, Job, JobList, Missing,
    NewJob, TenantLimits,
};

/// An operation under construction.
pub(super) struct Operation {
    path: &'static str,
    method: &'static str,
    value: Value,
}

impl Operation {
    fn new(method: &'static str, path: &'static str, summary: &str) -> Self {
        let mut operation = Self { path, method, value: json!({"summary": summary}) };
        for name in path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
            operation = operation.parameter(path_parameter(name));
        }
        operation
    }

    fn described(mut self, text: &str) -> Self {
        self.value["description"] = text.into();
        self
    }

    fn parameter(mut self, parameter: Value) -> Self {
        match self.value["parameters"].as_array_mut() {
            Some(parameters) => parameters.push(parameter),
            None => self.value["parameters"] = json!([parameter]),
        }
        self
    }

    fn query(self, name: &str, text: &str, schema: Value) -> Self {
        self.parameter(json!({"name": name, "in": "query", "required": false, "description": text, "schema": schema}))
    }

    fn header(self, name: &str, text: &str, schema: Value) -> Self {
        self.parameter(json!({"name": name, "in": "header", "required": false, "description": text, "schema": schema}))
    }

    fn takes(mut self, content: Value) -> Self {
        self.value["requestBody"] = json!({"required": true, "content": content});
        self
    }

    fn takes_json<T: JsonSchema>(self, generator: &mut SchemaGenerator) -> Self {
        let schema = generator.subschema_for::<T>();
        self.takes(json!({"application/json": {"schema": schema}}))
    }

    fn takes_csv(self) -> Self {
        let encodings = json!({"type": "string", "enum": ["identity", "gzip", "lz4", "zstd"]});
        self.header("Content-Encoding", "How the body is compressed.", encodings)
            .takes(json!({"text/csv": {"schema": {"type": "string", "format": "binary"}}}))
    }

    fn answers(mut self, status: &str, text: &str, content: Value) -> Self {
        if self.value["responses"].is_null() {
            self.value["responses"] = json!({});
        }
        self.value["responses"][status] = json!({"description": text, "content": content});
        self
    }

    fn answers_json<T: JsonSchema>(self, status: &str, text: &str, generator: &mut SchemaGenerator) -> Self {
        let schema = generator.subschema_for::<T>();
        self.answers(status, text, json!({"application/json": {"schema": schema}}))
    }

    fn answers_text(self, text: &str, kind: &str) -> Self {
        let mut content = json!({});
        content[kind] = json!({"schema": {"type": "string"}});
        self.answers("200", text, content)
    }

    fn streams_rows(self, text: &str) -> Self {
        let formats = json!({"type": "string", "enum": ["ndjson", "csv", "json", "arrow"]});
        let kinds = ["application/x-ndjson", "text/csv", "application/json", "application/vnd.apache.arrow.stream"];
        let content: serde_json::Map<String, Value> =
            kinds.iter().map(|kind| ((*kind).to_owned(), json!({"schema": {"type": "string"}}))).collect();
        self.query("format", "Instead of Accept.", formats).answers("200", text, Value::Object(content))
    }

    fn or_problem(mut self) -> Self {
        self.value["responses"]["default"] = json!({"$ref": "#/components/responses/Problem"});
        self
    }

    fn for_everybody(mut self) -> Self {
        self.value["security"] = json!([]);
        self
    }

    pub(super) fn into_parts(self) -> (String, &'static str, Value) {
        (self.path.to_owned(), self.method, self.value)
    }
}

fn number() -> Value {
    json!({"type": "integer", "format": "int64", "minimum": 0})
}

fn path_parameter(name: &str) -> Value {
    let (text, schema) = match name {
        "job" => ("The job: 16 hexadecimal digits.", json!({"type": "string", "pattern": "^[0-9a-f]{16}$"})),
        "table" => ("A table that the job's queries read.", json!({"type": "string"})),
        "chunk" => ("Its number within the table, from 0.", number()),
        "file" => ("Its number within the table.", json!({"type": "integer", "minimum": 1, "maximum": 65535})),
        "query" => ("A query of the job.", json!({"type": "string"})),
        _ => ("", json!({"type": "string"})),
    };
    json!({"name": name, "in": "path", "required": true, "description": text, "schema": schema})
}

pub(super) fn all(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let mut all = jobs(generator);
    all.extend(uploads(generator));
    all.extend(answers());
    all.extend(cluster(generator));
    all.extend(about());
    all
}

fn jobs(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let key = "The same key with the same request gives the same job at every gateway.";
    vec![
        Operation::new("post", "/v1/jobs", "Create a job")
            .header("Idempotency-Key", key, json!({"type": "string", "maxLength": 200}))
            .takes_json::<NewJob>(generator)
            .answers_json::<CreatedJob>("201", "The job.", generator)
            .answers_json::<CreatedJob>("200", "The job was there already.", generator)
            .or_problem(),
        Operation::new("get", "/v1/jobs", "List one's jobs")
            .answers_json::<JobList>("200", "Oldest first.", generator)
            .or_problem(),
        Operation::new("get", "/v1/jobs/{job}", "Look at a job")
            .answers_json::<Job>("200", "How it stands, question by question.", generator)
            .or_problem(),
        Operation::new(
            "delete",
            "/v1/jobs/{job}",
            "Cancel an open job, or forget one that has ended with everything it has",
        )
        .answers_json::<EndedJob>("202", "How it has ended.", generator)
        .or_problem(),
        Operation::new("post", "/v1/jobs/{job}/cancel", "Cancel a job")
            .answers_json::<EndedJob>("202", "It is cancelled.", generator)
            .or_problem(),
        Operation::new("get", "/v1/jobs/{job}/events", "Stream events")
            .described("Every event says how things are. The stream ends after `end`; if it ends without, come back with Last-Event-ID.")
            .header("Last-Event-ID", "The last id seen, at any gateway.", number())
            .answers_text(
                "Server-sent events `state`, `table`, `question`, `progress`, `stages`, `waiting`, and last of all `end`.",
                "text/event-stream",
            )
            .or_problem(),
    ]
}

fn uploads(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let name = "Its name, for messages about its records.";
    vec![
        Operation::new("put", "/v1/jobs/{job}/tables/{table}/chunks/{chunk}", "Upload a chunk")
            .described("Whole CSV records without a header line. Chunks may come in any order, in parallel and more than once. queue_full and broker_away mean: the same again a little later.")
            .header("Tenaz-File", "The file it was cut from, percent-encoded.", json!({"type": "string"}))
            .header("Tenaz-Byte", "Where it begins in the file.", number())
            .header("Tenaz-Line", "The 1-based line where it begins.", number())
            .header("Tenaz-Records", "How many records it has.", number())
            .takes_csv()
            .answers_json::<ChunkReceipt>("200", "It is in the cluster: chunk and receipt are confirmed.", generator)
            .or_problem(),
        Operation::new("post", "/v1/jobs/{job}/tables/{table}/finish", "Say what a table consists of")
            .takes_json::<Finish>(generator)
            .answers_json::<FinishAnswer>("200", "What is still missing.", generator)
            .or_problem(),
        Operation::new("get", "/v1/jobs/{job}/missing", "Ask which chunks are missing")
            .query("table", "A table that is not finished yet.", json!({"type": "string"}))
            .query("chunks", "How many chunks it will have.", number())
            .answers_json::<Missing>("200", "By table. For several tables at once pass `chunks.<table>=N`.", generator)
            .or_problem(),
        Operation::new(
            "get",
            "/v1/jobs/{job}/tables/{table}/digests",
            "Ask which bytes the chunks of a table had",
        )
        .query("from", "The first chunk asked for.", json!({"type": "integer", "format": "int64", "minimum": 0, "default": 0}))
        .answers_json::<Digests>("200", "The digests of up to 4096 chunks from there on.", generator)
        .or_problem(),
        Operation::new(
            "put",
            "/v1/jobs/{job}/tables/{table}/files/{file}",
            "Upload a whole file as it is (curl -T)",
        )
        .described("The gateway cuts it into chunks numbered (file << 32) + i. After a cut connection send it again: what is there is not sent twice.")
        .query("name", name, json!({"type": "string"}))
        .takes_csv()
        .answers_json::<FileReceipt>("200", "All of it is in the cluster.", generator)
        .or_problem(),
        Operation::new(
            "put",
            "/v1/jobs/{job}/tables/{table}/data",
            "Upload a table of one file (curl -T) and finish it",
        )
        .query("name", name, json!({"type": "string"}))
        .takes_csv()
        .answers_json::<FileReceipt>("200", "The table is complete.", generator)
        .or_problem(),
    ]
}

fn answers() -> Vec<Operation> {
    vec![
        Operation::new("get", "/v1/jobs/{job}/results/{query}", "Stream an answer")
            .described("Streams rows as they become known and ends with an explicit end or error record as soon as the question is final, though other questions of the job may go on: ndjson `{\"end\":{…}}` or `{\"error\":{…}}` as the last line; csv a last line beginning with `# end` or `# error`; json a last member `end` or `error`; arrow one line of JSON after the end-of-stream marker. A query that could not be answered ends with the error `query_failed`, and once its job is done the request is refused with that code.")
            .streams_rows("Rows, then the end.")
            .or_problem(),
        Operation::new("get", "/v1/jobs/{job}/rejects", "Stream the bad records")
            .described("Sent when the job is done. The formats and their ends are those of results.")
            .streams_rows("Columns table, file, line, byte, column, reason, text, in the order of the data; then the end.")
            .or_problem(),
    ]
}

fn cluster(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let id = "The last id seen, at any gateway.";
    vec![
        Operation::new("get", "/v1/cluster", "Look at the cluster")
            .answers_json::<Cluster>("200", "Members, what they own and do, and what tenants use.", generator)
            .or_problem(),
        Operation::new("get", "/v1/cluster/events", "Stream what happens in the cluster")
            .described("Server-sent events `cluster`, each a ClusterEvent. What is kept (the last 10,000) comes first, then the comment `: all`, then what happens.")
            .header("Last-Event-ID", id, number())
            .query("last_event_id", "The same, for clients that cannot set headers.", number())
            .answers_text("Server-sent events.", "text/event-stream")
            .or_problem(),
        Operation::new("get", "/v1/limits", "What is limited, to how much, and how much of it one uses")
            .answers_json::<TenantLimits>(
                "200",
                "Times in seconds. A limit is of the whole cluster, of a tenant, of a tenant at one gateway, or of a job.",
                generator,
            )
            .or_problem(),
    ]
}

fn about() -> Vec<Operation> {
    let health = json!({
        "type": "object",
        "required": ["status", "name", "role", "incarnation", "pulse", "ready"],
        "properties": {
            "status": {"const": "up"},
            "name": {"type": "string"},
            "role": {"type": "string"},
            "incarnation": {"type": "integer"},
            "pulse": {"type": "integer"},
            "ready": {"type": "boolean"},
        },
    });
    let document = json!({"application/json": {"schema": {"type": "object"}}});
    vec![
        Operation::new("get", "/v1/openapi.json", "This document")
            .answers("200", "OpenAPI 3.1.", document.clone())
            .for_everybody(),
        Operation::new("get", "/healthz", "Whether the process is up")
            .answers(
                "200",
                "It is: which process, which of its lives, and a number that moves on while it works.",
                json!({"application/json": {"schema": health}}),
            )
            .for_everybody(),
        ready(document),
        Operation::new("get", "/metrics", "What the process counts, for Prometheus")
            .answers_text("OpenMetrics text. Nothing in it names a job.", "application/openmetrics-text")
            .for_everybody(),
        Operation::new("get", "/", "How to use it")
            .answers_text("A short text; for browsers, the page.", "text/plain")
            .for_everybody(),
    ]
}

fn ready(document: Value) -> Operation {
    let mut ready = Operation::new("get", "/readyz", "Whether requests can be served")
        .answers("200", "They can.", document)
        .for_everybody();
    ready.value["responses"]["503"] = json!({"$ref": "#/components/responses/Problem"});
    ready
}
