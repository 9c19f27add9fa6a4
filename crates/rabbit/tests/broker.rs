//! Promises of this crate, kept by a real broker.
#![allow(clippy::unwrap_used)]

mod common;

use std::{sync::Arc, time::Duration};

use common::{CHANNEL_MAX, Cable, DEADLINE, connect, eventually, id, take, with_broker};
use tenaz_rabbit::{
    BrokerSettings, Connection, Consumer, Error, Offset, Properties, Publisher, QueueSpec, StreamReader, StreamSpec,
    Target, Version,
};

async fn queue(connection: &Connection, name: &str) {
    connection.declare_queue(&QueueSpec::new(name)).await.unwrap();
}

#[test]
fn a_confirmed_message_arrives_with_its_properties() {
    with_broker(async |settings| {
        let connection = connect(&settings).await;
        queue(&connection, "properties").await;
        let publisher = Publisher::open(&connection).await.unwrap();
        let mut properties = id("one");
        properties.headers.insert("part".into(), "7".into());
        publisher.publish(Target::Queue("properties"), b"body".to_vec(), &properties).await.unwrap();
        let mut consumer = Consumer::open(&connection, "properties", 4).await.unwrap();
        let delivery = consumer.next().await.unwrap();
        assert_eq!((delivery.body.as_slice(), &delivery.properties), (b"body".as_slice(), &properties));
        assert!(!delivery.redelivered);
        consumer.ack(delivery.tag).await.unwrap();
    });
}

#[test]
fn bodies_of_one_mebibyte_pass_unchanged() {
    with_broker(async |settings| {
        let (sending, receiving) = (connect(&settings).await, connect(&settings).await);
        queue(&sending, "large").await;
        let publisher = Publisher::open(&sending).await.unwrap();
        let body = |seed: usize| -> Vec<u8> { (0..1 << 20).map(|i| (i * 31 + seed * 7) as u8).collect() };
        let sent = (0..40).map(|seed| {
            let (publisher, body) = (publisher.clone(), body(seed));
            async move { publisher.publish(Target::Queue("large"), body, &id(seed)).await }
        });
        for outcome in futures::future::join_all(sent).await {
            outcome.unwrap();
        }
        let mut consumer = Consumer::open(&receiving, "large", 4).await.unwrap();
        for _ in 0..40 {
            let delivery = consumer.next().await.unwrap();
            let seed: usize = delivery.properties.message_id.unwrap().parse().unwrap();
            assert!(delivery.body == body(seed), "body {seed} changed on its way");
            consumer.ack(delivery.tag).await.unwrap();
        }
        let too_large = vec![0; tenaz_rabbit::MAX_BODY_BYTES + 1];
        let refused = publisher.publish(Target::Queue("large"), too_large, &Properties::default()).await;
        assert!(matches!(refused, Err(Error::TooLarge { .. })));
    });
}

#[test]
fn a_message_to_no_queue_is_unroutable() {
    with_broker(async |settings| {
        let connection = connect(&settings).await;
        let publisher = Publisher::open(&connection).await.unwrap();
        let lost = publisher.publish(Target::Queue("no such queue"), vec![1], &id(1)).await;
        assert!(matches!(&lost, Err(Error::Unroutable { target }) if target == "no such queue"), "{lost:?}");
        connection.declare_fanout("nobody").await.unwrap();
        let lost = publisher.publish(Target::Fanout("nobody"), vec![1], &id(1)).await;
        assert!(matches!(lost, Err(Error::Unroutable { .. })));
        publisher.publish_transient(Target::Fanout("nobody"), vec![1], &id(1)).await.unwrap();
        // The publisher still works.
        queue(&connection, "some queue").await;
        publisher.publish(Target::Queue("some queue"), vec![1], &id(1)).await.unwrap();
    });
}

#[test]
fn a_full_queue_refuses_until_someone_consumes() {
    with_broker(async |settings| {
        let (sending, receiving) = (connect(&settings).await, connect(&settings).await);
        let spec = QueueSpec { max_length: Some(3), max_length_bytes: Some(1 << 20), ..QueueSpec::new("bounded") };
        sending.declare_queue(&spec).await.unwrap();
        let publisher = Publisher::open(&sending).await.unwrap();
        let mut accepted = 0;
        let full = loop {
            match publisher.publish(Target::Queue("bounded"), vec![0; 10], &id(accepted)).await {
                Ok(()) => accepted += 1,
                Err(error) => break error,
            }
            assert!(accepted < 1000, "the queue has no bound");
        };
        assert!(matches!(full, Error::Full { .. }) && full.is_temporary(), "{full}");
        let mut consumer = Consumer::open(&receiving, "bounded", 10).await.unwrap();
        take(&mut consumer, accepted).await;
        eventually("the queue takes messages again", || async {
            publisher.publish(Target::Queue("bounded"), vec![0; 10], &id("later")).await.is_ok()
        })
        .await;
        assert_eq!(take(&mut consumer, 1).await, ["later"]);
    });
}

#[test]
fn unacknowledged_messages_go_to_another_when_the_connection_ends() {
    with_broker(async |settings| {
        let connection = connect(&settings).await;
        queue(&connection, "redelivery").await;
        let publisher = Publisher::open(&connection).await.unwrap();
        for number in 0..3 {
            publisher.publish(Target::Queue("redelivery"), vec![number], &id(number)).await.unwrap();
        }
        let cable = Cable::to(&settings).await;
        let first = connect(&cable.settings).await;
        let mut consumer = Consumer::open(&first, "redelivery", 10).await.unwrap();
        let (one, two) = (consumer.next().await.unwrap(), consumer.next().await.unwrap());
        assert!(!one.redelivered && !two.redelivered);
        consumer.ack(one.tag).await.unwrap();
        // The answer to a later request on the same connection proves that the ack has arrived.
        first.queue_depth("redelivery").await.unwrap();
        cable.cut();
        assert!(first.closed().await.is_lost());
        assert!(consumer.ack(two.tag).await.unwrap_err().is_lost());
        let second = connect(&settings).await;
        let mut consumer = Consumer::open(&second, "redelivery", 10).await.unwrap();
        for expected in [1, 2] {
            let again = consumer.next().await.unwrap();
            assert_eq!(again.body, [expected]);
            assert!(again.redelivered);
            assert_eq!(again.delivery_count, Some(1));
            consumer.ack(again.tag).await.unwrap();
        }
        assert_eq!(second.queue_depth("redelivery").await.unwrap(), Some(0));
    });
}

#[test]
fn whoever_waits_on_a_connection_that_is_closed_under_them_is_told() {
    with_broker(async |settings| {
        let connection = connect(&settings).await;
        queue(&connection, "closed-under").await;
        connection.declare_stream(&StreamSpec::new("closed-under-log")).await.unwrap();
        let publisher = Publisher::open(&connection).await.unwrap();
        publisher.publish(Target::Queue("closed-under"), vec![7], &id(7)).await.unwrap();
        let given_up = connect(&settings).await;
        let mut consumer = Consumer::open(&given_up, "closed-under", 10).await.unwrap();
        let mut reader = StreamReader::open(&given_up, "closed-under-log", Offset::First).await.unwrap();
        assert_eq!(consumer.next().await.unwrap().body, [7]);
        // Both wait, and keep their part of the connection, which is in good order.
        let waiting = async { (consumer.next().await.unwrap_err(), reader.next().await.unwrap_err()) };
        let closing = async {
            assert!(given_up.is_open());
            given_up.close().await;
            assert!(!given_up.is_open());
        };
        let ((consuming, reading), ()) = tokio::join!(waiting, closing);
        assert!(consuming.is_lost() && reading.is_lost(), "{consuming}, {reading}");
        let mut other = Consumer::open(&connection, "closed-under", 10).await.unwrap();
        let again = other.next().await.unwrap();
        assert_eq!((again.body, again.redelivered), (vec![7], true));
    });
}

#[test]
fn a_message_given_back_fifty_times_is_still_there() {
    with_broker(async |settings| {
        let connection = connect(&settings).await;
        queue(&connection, "given back").await;
        let publisher = Publisher::open(&connection).await.unwrap();
        publisher.publish(Target::Queue("given back"), vec![1], &id(1)).await.unwrap();
        let mut consumer = Consumer::open(&connection, "given back", 1).await.unwrap();
        let counts = connection.version() < Version { major: 4, minor: 3 };
        for time in 0..50 {
            let delivery = consumer.next().await.unwrap();
            assert_eq!(delivery.redelivered, time > 0);
            assert_eq!(delivery.delivery_count.unwrap_or(0), if counts { time } else { 0 });
            consumer.nack_requeue(delivery.tag).await.unwrap();
        }
        take(&mut consumer, 1).await;
    });
}

#[test]
fn a_consumer_of_a_deleted_queue_is_lost_and_others_go_on() {
    with_broker(async |settings| {
        let connection = connect(&settings).await;
        queue(&connection, "deleted").await;
        queue(&connection, "kept").await;
        let mut doomed = Consumer::open(&connection, "deleted", 1).await.unwrap();
        let mut kept = Consumer::open(&connection, "kept", 1).await.unwrap();
        connection.delete_queue("deleted").await.unwrap();
        assert!(doomed.next().await.unwrap_err().is_lost());
        let publisher = Publisher::open(&connection).await.unwrap();
        publisher.publish(Target::Queue("kept"), vec![1], &id("kept")).await.unwrap();
        assert_eq!(take(&mut kept, 1).await, ["kept"]);
    });
}

#[test]
fn a_stream_is_read_from_its_start_and_from_exactly_any_offset() {
    with_broker(async |settings| {
        let (sending, receiving) = (connect(&settings).await, connect(&settings).await);
        let spec = StreamSpec {
            max_length_bytes: Some(1 << 30),
            max_age: Some(Duration::from_secs(3600)),
            segment_bytes: Some(16 << 20),
            ..StreamSpec::new("log")
        };
        sending.declare_stream(&spec).await.unwrap();
        let publisher = Publisher::open(&sending).await.unwrap();
        let sent = (0..300u64).map(|number| {
            let publisher = publisher.clone();
            // Of a size that puts many messages into one chunk of the stream.
            async move { publisher.publish(Target::Queue("log"), vec![number as u8; 2000], &id(number)).await }
        });
        for outcome in futures::future::join_all(sent).await {
            outcome.unwrap();
        }
        let mut whole = Vec::new();
        let mut reader = StreamReader::open(&receiving, "log", Offset::First).await.unwrap();
        while whole.len() < 300 {
            whole.push(reader.next().await.unwrap());
        }
        assert!(whole.windows(2).all(|pair| pair[0].offset < pair[1].offset));
        let mut ids: Vec<u64> =
            whole.iter().map(|m| m.properties.message_id.as_ref().unwrap().parse().unwrap()).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..300).collect::<Vec<_>>());
        for start in [1, 7, 150, 299] {
            let mut reader = StreamReader::open(&receiving, "log", Offset::Next(whole[start].offset)).await.unwrap();
            for expected in &whole[start..] {
                assert_eq!(&reader.next().await.unwrap(), expected);
            }
        }
        let mut at_end = StreamReader::open(&receiving, "log", Offset::Next(whole[299].offset + 1)).await.unwrap();
        let mut new = StreamReader::open(&receiving, "log", Offset::New).await.unwrap();
        publisher.publish(Target::Queue("log"), b"more".to_vec(), &id("more")).await.unwrap();
        assert_eq!(at_end.next().await.unwrap().body, b"more");
        assert_eq!(new.next().await.unwrap().body, b"more");
    });
}

#[test]
fn a_reader_may_be_cancelled_while_it_waits() {
    with_broker(async |settings| {
        let connection = connect(&settings).await;
        connection.declare_stream(&StreamSpec::new("cancelled")).await.unwrap();
        let publisher = Publisher::open(&connection).await.unwrap();
        let mut reader = StreamReader::open_with(&connection, "cancelled", Offset::First, 2).await.unwrap();
        let reading = async {
            let mut seen = Vec::new();
            while seen.len() < 100 {
                if let Ok(message) = tokio::time::timeout(Duration::from_micros(200), reader.next()).await {
                    seen.push(message.unwrap().body[0]);
                }
            }
            seen
        };
        let writing = async {
            for number in 0..100 {
                publisher.publish(Target::Queue("cancelled"), vec![number], &id(number)).await.unwrap();
            }
        };
        let (seen, ()) = tokio::join!(reading, writing);
        assert_eq!(seen, (0..100).collect::<Vec<u8>>());
    });
}

#[test]
fn more_readers_than_the_broker_allows_channels_on_one_connection_all_read() {
    with_broker(async |settings| {
        let connection = connect(&settings).await;
        connection.declare_stream(&StreamSpec::new("popular")).await.unwrap();
        let opened = (0..3 * CHANNEL_MAX).map(|_| StreamReader::open(&connection, "popular", Offset::First));
        let mut readers = futures::future::try_join_all(opened).await.unwrap();
        let publisher = Publisher::open(&connection).await.unwrap();
        publisher.publish(Target::Queue("popular"), vec![7], &id(7)).await.unwrap();
        for reader in &mut readers {
            let message = tokio::time::timeout(DEADLINE, reader.next()).await.expect("a message").unwrap();
            assert_eq!(message.body, [7]);
        }
        // They go together.
        connection.close().await;
        for reader in &mut readers {
            assert!(reader.next().await.unwrap_err().is_lost());
        }
    });
}

/// The broker closes the channel of a question that it refuses.
#[test]
fn a_connection_answers_more_refused_questions_than_it_has_channels() {
    with_broker(async |settings| {
        let connection = connect(&settings).await;
        queue(&connection, "refused").await;
        let mut consumer = Consumer::open(&connection, "refused", 1).await.unwrap();
        for question in 0..5 * CHANNEL_MAX {
            let depth = connection.queue_depth("not there").await;
            assert!(matches!(depth, Ok(None)), "question {question}: {depth:?}");
        }
        // What was opened before is not disturbed.
        let publisher = Publisher::open(&connection).await.unwrap();
        publisher.publish(Target::Queue("refused"), vec![1], &id("late")).await.unwrap();
        assert_eq!(take(&mut consumer, 1).await, ["late"]);
    });
}

#[test]
fn a_connection_that_has_all_its_channels_in_use_waits_for_one() {
    with_broker(async |settings| {
        let connection = connect(&settings).await;
        assert_eq!(connection.max_channels(), CHANNEL_MAX * tenaz_rabbit::limits::MAX_SOCKETS);
        queue(&connection, "crowded").await;
        let open = async || Consumer::open(&connection, "crowded", 1).await;
        let mut consumers =
            futures::future::try_join_all((0..connection.max_channels()).map(|_| open())).await.unwrap();
        let refused = open().await.unwrap_err();
        assert!(matches!(refused, Error::TooManyChannels { .. }) && refused.is_temporary(), "{refused}");
        drop(consumers.pop());
        eventually("there is a channel again", || async { open().await.is_ok() }).await;
    });
}

#[test]
fn a_probe_notices_that_the_owner_of_an_exclusive_queue_is_gone() {
    with_broker(async |settings| {
        let cable = Cable::to(&settings).await;
        let (owner, other) = (connect(&cable.settings).await, connect(&settings).await);
        owner.declare_fanout("members").await.unwrap();
        let mut inbox = Consumer::open_exclusive(&owner, "member 1", Some("members"), 10).await.unwrap();
        let publisher = Publisher::open(&other).await.unwrap();
        assert!(publisher.probe("member 1").await.unwrap());
        assert!(!publisher.probe("member 2").await.unwrap());
        publisher.publish_transient(Target::Fanout("members"), b"hello".to_vec(), &id("hello")).await.unwrap();
        assert_eq!(take(&mut inbox, 1).await, ["hello"], "probes are not delivered");
        let locked = Consumer::open_exclusive(&other, "member 1", None, 10).await;
        assert!(matches!(locked, Err(Error::Locked { .. })), "{locked:?}");
        let started = std::time::Instant::now();
        cable.cut();
        eventually("the probe fails", || async { !publisher.probe("member 1").await.unwrap() }).await;
        assert!(started.elapsed() < Duration::from_secs(5));
        assert!(inbox.next().await.unwrap_err().is_lost());
    });
}

#[test]
fn errors_of_connecting_say_whose_fault_it_is() {
    with_broker(async |settings| {
        let open = async |change: &dyn Fn(&mut tenaz_rabbit::BrokerUrl)| {
            let mut changed: BrokerSettings = settings.clone();
            change(&mut changed.urls[0]);
            Connection::open(&changed, "test").await.unwrap_err()
        };
        let error = open(&|url| url.password = "secret".into()).await;
        assert!(matches!(&error, Error::WrongPassword { user, .. } if user == "guest"), "{error}");
        assert!(!error.is_temporary() && !error.to_string().contains("secret"));
        let error = open(&|url| url.vhost = "nowhere".into()).await;
        assert!(matches!(&error, Error::NoSuchVhost { vhost, .. } if vhost == "nowhere"), "{error}");
        let error = open(&|url| url.port = 1).await;
        assert!(matches!(&error, Error::Unreachable { .. }) && error.is_temporary(), "{error}");
        let error = open(&|url| url.tls = true).await;
        assert!(matches!(&error, Error::Tls { .. } | Error::Refused { .. }), "{error:?}");
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut changed = settings.clone();
        changed.connect_timeout = Duration::from_millis(200);
        changed.urls[0].port = silent.local_addr().unwrap().port();
        let error = Connection::open(&changed, "test").await.unwrap_err();
        assert!(matches!(&error, Error::Unreachable { .. }), "{error}");
        // A node that is away does not matter while another answers.
        let mut several = settings.clone();
        several.urls.extend(changed.urls.clone());
        several.connect_timeout = Duration::from_secs(1);
        for _ in 0..5 {
            connect(&several).await;
        }
    });
}

#[test]
fn an_old_broker_is_named() {
    // The greeting of a broker of version 3.8.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut socket, _) = listener.accept().unwrap();
        socket.read_exact(&mut [0; 8]).unwrap();
        let payload = b"\x00\x0a\x00\x0a\x00\x09\x00\x00\x00\x12\x07versionS\x00\x00\x00\x053.8.9";
        let mut frame = vec![1, 0, 0];
        frame.extend((payload.len() as u32).to_be_bytes());
        frame.extend(payload);
        socket.write_all(&frame).unwrap();
    });
    common::run(async {
        let settings = format!("amqp://{address}").parse().unwrap();
        let error = Connection::open(&settings, "test").await.unwrap_err();
        assert!(matches!(&error, Error::WrongVersion { found, .. } if found == "3.8.9"), "{error}");
    });
    server.join().unwrap();
}

#[test]
fn operations_that_fail_do_not_disturb_others() {
    with_broker(async |settings| {
        let connection = connect(&settings).await;
        queue(&connection, "undisturbed").await;
        let mut consumer = Consumer::open(&connection, "undisturbed", 1).await.unwrap();
        let publisher = Publisher::open(&connection).await.unwrap();
        assert_eq!(connection.queue_depth("missing").await.unwrap(), None);
        connection.delete_queue("missing").await.unwrap();
        let missing = Consumer::open(&connection, "missing", 1).await.unwrap_err();
        assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
        let missing = StreamReader::open(&connection, "missing", Offset::First).await.unwrap_err();
        assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
        let other = QueueSpec { max_length: Some(1), ..QueueSpec::new("undisturbed") };
        let other = connection.declare_queue(&other).await.unwrap_err();
        assert!(matches!(other, Error::Precondition { .. }), "{other}");
        let stream = connection.declare_stream(&StreamSpec::new("undisturbed")).await.unwrap_err();
        assert!(matches!(stream, Error::Precondition { .. }), "{stream}");
        let long = connection.queue_depth(&"x".repeat(256)).await.unwrap_err();
        assert!(matches!(long, Error::NameTooLong { bytes: 256, .. }), "{long}");
        queue(&connection, "undisturbed").await;
        publisher.publish(Target::Queue("undisturbed"), vec![1], &id("x")).await.unwrap();
        assert_eq!(take(&mut consumer, 1).await, ["x"]);
        assert!(connection.is_open() && !connection.is_blocked());
    });
}

#[test]
fn a_missing_exchange_is_blamed_on_its_own_message() {
    with_broker(async |settings| {
        let connection = connect(&settings).await;
        let publisher = Publisher::open(&connection).await.unwrap();
        let error = publisher.publish(Target::Fanout("no exchange here"), vec![1], &id(1)).await.unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{error}");
        let error = publisher.publish(Target::Queue("q"), vec![1], &id(1)).await.unwrap_err();
        assert!(error.is_lost(), "{error}");
        assert!(connection.is_open());
    });
}

#[test]
fn the_delivery_limit_is_proved() {
    with_broker(async |settings| {
        let connection = connect(&settings).await;
        let spec = QueueSpec { max_length: Some(100), ..QueueSpec::new("limited") };
        let missing = connection.check_delivery_limit(&spec).await.unwrap_err();
        assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
        connection.declare_queue(&spec).await.unwrap();
        connection.check_delivery_limit(&spec).await.unwrap();
        for (name, limit) in [("limit 20", Some(20)), ("limit none", None), ("limit -1", Some(-1))] {
            declare_with_limit(&settings, name, limit).await;
            let wrong = connection.check_delivery_limit(&QueueSpec::new(name)).await.unwrap_err();
            assert!(matches!(wrong, Error::DeliveryLimit { .. }), "{name}: {wrong}");
        }
    });
}

/// Declares a quorum queue as another program might.
async fn declare_with_limit(settings: &BrokerSettings, name: &str, limit: Option<i64>) {
    let uri = format!("amqp://guest:guest@{}/%2f", settings.urls[0].address());
    let connection = lapin::Connection::connect(&uri, lapin::ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    let mut arguments = lapin::types::FieldTable::default();
    arguments.insert("x-queue-type".into(), lapin::types::AMQPValue::LongString("quorum".into()));
    arguments.insert("x-overflow".into(), lapin::types::AMQPValue::LongString("reject-publish".into()));
    if let Some(limit) = limit {
        arguments.insert("x-delivery-limit".into(), limit.into());
    }
    let options = lapin::options::QueueDeclareOptions { durable: true, ..Default::default() };
    channel.queue_declare(name.into(), options, arguments).await.unwrap();
}

/// 32 tasks share one publisher; each publish has one right outcome, and every task checks its own.
#[test]
fn outcomes_reach_the_right_caller() {
    with_broker(async |settings| {
        let (sending, receiving) = (connect(&settings).await, connect(&settings).await);
        queue(&sending, "attributed").await;
        let full = QueueSpec { max_length: Some(1), ..QueueSpec::new("always full") };
        sending.declare_queue(&full).await.unwrap();
        let publisher = Publisher::open(&sending).await.unwrap();
        eventually("the small queue is full", || async {
            publisher.publish(Target::Queue("always full"), vec![0], &id("filler")).await.is_err()
        })
        .await;
        let publisher = Arc::new(publisher);
        let tasks: Vec<_> = (0..32u32)
            .map(|task| {
                let publisher = Arc::clone(&publisher);
                tokio::spawn(async move {
                    let mut confirmed = Vec::new();
                    for round in 0..120u32 {
                        let name = format!("{task}/{round}");
                        let body = vec![task as u8; (round as usize * 97) % 5000];
                        // A sequence without a period that the broker's batches could share.
                        match (task * 7 + round * round) % 5 {
                            0 | 1 => {
                                publisher.publish(Target::Queue("attributed"), body, &id(&name)).await.unwrap();
                                confirmed.push(name);
                            }
                            2 | 3 => {
                                let outcome = publisher.publish(Target::Queue("absent"), body, &id(&name)).await;
                                assert!(matches!(outcome, Err(Error::Unroutable { .. })), "{name}: {outcome:?}");
                            }
                            _ => {
                                let outcome = publisher.publish(Target::Queue("always full"), body, &id(&name)).await;
                                assert!(matches!(outcome, Err(Error::Full { .. })), "{name}: {outcome:?}");
                            }
                        }
                    }
                    confirmed
                })
            })
            .collect();
        let mut confirmed = Vec::new();
        for task in tasks {
            confirmed.extend(tokio::time::timeout(DEADLINE, task).await.expect("it hangs").unwrap());
        }
        let mut consumer = Consumer::open(&receiving, "attributed", 100).await.unwrap();
        let mut arrived = take(&mut consumer, confirmed.len()).await;
        assert_eq!(receiving.queue_depth("attributed").await.unwrap(), Some(0), "nothing came twice");
        confirmed.sort();
        arrived.sort();
        assert_eq!(arrived, confirmed);
    });
}
