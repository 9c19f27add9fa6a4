//! Several nodes: one of them may go, or forget somebody.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use common::{DEADLINE, connect, fresh_dir, id, run};
use tenaz_rabbit::{
    Connection, Consumer, Error, Offset, Publisher, QueueSpec, StreamReader, StreamSpec, Target, Version,
    node::PrivateCluster,
};

const BEFORE: u32 = 100;
const ALL: u32 = 200;
/// How often a broker is given the chance to forget somebody.
const ATTEMPTS: u32 = 5;
/// The last version that does.
const FORGETFUL: Version = Version { major: 3, minor: 10 };

#[test]
fn nothing_is_lost_with_one_of_three_brokers() {
    run(async {
        let mut cluster = match PrivateCluster::start(&fresh_dir("cluster"), 3).await {
            Ok(cluster) => cluster,
            Err(error @ Error::NotInstalled { .. }) => return eprintln!("skipped: {error}"),
            Err(error) => panic!("{error}"),
        };
        let settings = cluster.settings();
        assert_eq!((settings.urls.len(), cluster.size()), (3, 3));
        let connection = connect(&settings).await;
        connection.declare_queue(&QueueSpec::new("work")).await.unwrap();
        connection.check_delivery_limit(&QueueSpec::new("work")).await.unwrap();
        connection.declare_stream(&StreamSpec::new("log")).await.unwrap();
        publish(&connection, 0..BEFORE).await;
        // The node that serves us, so that the loss is felt.
        let port: u16 = connection.address().rsplit(':').next().unwrap().parse().unwrap();
        let mut served_by = None;
        for index in 0..cluster.size() {
            let node = cluster.node(index).unwrap();
            if node.port() == port {
                served_by = Some(index);
                node.kill().await.unwrap();
            }
        }
        assert!(connection.closed().await.is_lost());
        // The next connection finds one of the others by itself. While leaders are being elected the broker may close it
        // again, and then the caller connects again, as always.
        let deadline = Instant::now() + DEADLINE;
        let connection = loop {
            let connection = connect(&settings).await;
            if takes_messages(&connection).await {
                break connection;
            }
            assert!(Instant::now() < deadline, "both have a leader again");
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        publish(&connection, BEFORE..ALL).await;
        let all: BTreeSet<String> = (0..ALL).map(|number| number.to_string()).collect();
        let mut consumer = Consumer::open(&connection, "work", 50).await.unwrap();
        let mut taken = BTreeSet::new();
        while taken.len() < all.len() {
            let delivery = tokio::time::timeout(DEADLINE, consumer.next()).await.expect("all of them").unwrap();
            taken.insert(delivery.properties.message_id.unwrap());
            consumer.ack(delivery.tag).await.unwrap();
        }
        let mut reader = StreamReader::open(&connection, "log", Offset::First).await.unwrap();
        let mut read = BTreeSet::new();
        while read.len() < all.len() {
            let message = tokio::time::timeout(DEADLINE, reader.next()).await.expect("all of them").unwrap();
            read.insert(message.properties.message_id.unwrap());
        }
        assert_eq!((&taken, &read), (&all, &all));
        cluster.node(served_by.unwrap()).unwrap().restart().await.unwrap();
    });
}

/// In version 3.10.8 a replica wakes nobody who waits behind one who waits for a later message. It comes to that when the
/// leader is replaced; here somebody who waits for a message far away is put in front.
#[test]
fn a_reader_that_the_broker_forgets_to_wake_hears_everything_all_the_same() {
    run(async {
        let mut cluster = match PrivateCluster::start(&fresh_dir("forgets"), 2).await {
            Ok(cluster) => cluster,
            Err(error @ Error::NotInstalled { .. }) => return eprintln!("skipped: {error}"),
            Err(error) => panic!("{error}"),
        };
        let connection = connect(&cluster.settings()).await;
        connection.declare_stream(&StreamSpec::new("log")).await.unwrap();
        let publisher = Publisher::open(&connection).await.unwrap();
        let publish = async |number: u32| publisher.publish(Target::Queue("log"), vec![7], &id(number)).await.unwrap();
        let queue = "{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<\"/\">>, queue, <<\"log\">>))";
        let leads = format!("{queue}, node(amqqueue:get_pid(Q)) == node().");
        let first_leads = cluster.node(0).unwrap().ctl(&["eval", &leads]).await.unwrap().trim() == "true";
        let follower = cluster.node(usize::from(first_leads)).unwrap();

        let reading = connect(&follower.settings()).await;
        let mut reader = StreamReader::open(&reading, "log", Offset::First).await.unwrap();
        publish(0).await;
        let mut next = async || tokio::time::timeout(DEADLINE, reader.next()).await.expect("a message").unwrap().offset;
        assert_eq!(next().await, 0);
        // Again and again for a while: the reader itself subscribes again when it has heard nothing for 3 s, which on a busy
        // machine is less than it takes to get from here to the next message. There the whole is tried again, too.
        let wait_for_a_later_one = format!(
            "{queue}, #{{name := Id}} = amqqueue:get_type_state(Q), {{ok, Pid}} = rabbit_stream_coordinator:local_pid(Id), \
             spawn(fun() -> [begin osiris:register_offset_listener(Pid, 1000000), timer:sleep(50) end \
             || _ <- lists:seq(1, 200)] end)."
        );
        let mut forgotten = false;
        for number in 1..=ATTEMPTS {
            follower.ctl(&["eval", &wait_for_a_later_one]).await.unwrap();
            publish(number).await;
            let began = Instant::now();
            assert_eq!(next().await, u64::from(number));
            forgotten = began.elapsed() > Duration::from_secs(1);
            if forgotten || reading.version() > FORGETFUL {
                break;
            }
        }
        assert!(forgotten || reading.version() > FORGETFUL, "this broker forgets nobody");
        publish(ATTEMPTS + 1).await;
        next().await;
    });
}

async fn takes_messages(connection: &Connection) -> bool {
    let Ok(publisher) = Publisher::open(connection).await else { return false };
    for name in ["work", "log"] {
        let properties = id(BEFORE);
        let sent = publisher.publish(Target::Queue(name), vec![1], &properties);
        if !matches!(tokio::time::timeout(Duration::from_secs(5), sent).await, Ok(Ok(()))) {
            return false;
        }
    }
    true
}

async fn publish(connection: &Connection, numbers: std::ops::Range<u32>) {
    let publisher = Publisher::open(connection).await.unwrap();
    for number in numbers {
        for name in ["work", "log"] {
            publisher.publish(Target::Queue(name), vec![7; 1000], &id(number)).await.unwrap();
        }
    }
}
