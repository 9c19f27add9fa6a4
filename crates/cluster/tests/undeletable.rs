//! Cleaning up after a job of which the broker has lost a half.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use tenaz_cluster::{Link, LinkSettings, Names, delete_job_objects};
use tenaz_core::{BuildId, End, JobCard, JobId, Log, Partition, TableId};
use tenaz_rabbit::StreamSpec;
use tenaz_rabbit::node::{NodeOptions, PrivateNode};

/// Longer than anything takes on a loaded machine; only a bug gets there.
const DEADLINE: Duration = Duration::from_secs(120);

/// Makes a stream's record as a kill leaves it that comes between the table of queues and the coordinator of streams.
fn half_a_stream(whole: &str, half: &str) -> String {
    format!(
        r##"Name = rabbit_misc:r(<<"/">>, queue, <<"{half}">>),
        {{ok, Whole}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"{whole}">>)),
        Format = {{rabbit_stream_queue, format_osiris_event, [Name]}},
        State = maps:without([leader_pid], (amqqueue:get_type_state(Whole))#{{
            name => "__half_1", reference => Name, event_formatter => Format}}),
        Options = #{{user => <<"guest">>}},
        Arguments = amqqueue:get_arguments(Whole),
        Queue = amqqueue:new(Name, none, true, false, none, Arguments, <<"/">>, Options, rabbit_stream_queue),
        element(1, rabbit_amqqueue:internal_declare(amqqueue:set_type_state(Queue, State), false))."##
    )
}

async fn start_node() -> Option<PrivateNode> {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("undeletable-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    match PrivateNode::start(NodeOptions::new(dir, "undeletable")).await {
        Ok(node) => Some(node),
        Err(error @ tenaz_rabbit::Error::NotInstalled { .. }) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Otherwise whoever cleans up would try for ever, do nothing else, and lose the connections of its process each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_broker_cannot_delete_does_not_keep_the_rest_from_being_deleted() {
    let Some(node) = start_node().await else { return };
    let mut broker = node.settings();
    broker.answer_timeout = Duration::from_secs(4);
    let names = Names::new("test").unwrap();
    let link = Link::open(LinkSettings { broker, names: names.clone(), connection_name: "test".to_owned() });
    let link = link.await.unwrap();
    let card = JobCard {
        id: JobId::from_bytes([7; 8]),
        tenant: "public".to_owned(),
        workload: "w".to_owned(),
        partitions: 1,
        waves: 0,
        tables: BTreeSet::from([TableId(0)]),
        spec_digest: String::new(),
        build: BuildId::new("ours"),
        plan_digest: String::new(),
        created_ms: 0,
    };
    let (whole, half) = (names.log(&card.id, Log::Results), names.log(&card.id, Log::Partition(Partition(0))));
    link.session().await.reading.declare_stream(&StreamSpec::new(&whole)).await.unwrap();
    let made = node.ctl(&["eval", &half_a_stream(&whole, &half)]).await.unwrap();
    assert_eq!(made.trim(), "created");
    let deleting = delete_job_objects(&link, &card, &End::Cancelled, true);
    tokio::time::timeout(DEADLINE, deleting).await.expect("it is not tried for ever").unwrap();
    let session = link.session().await;
    assert_eq!(session.reading.queue_depth(&whole).await.unwrap(), None, "what can be deleted is");
}
