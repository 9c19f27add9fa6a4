//! What a broker that is slow, but well, must not cost.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::{Cable, connect, id, with_broker};
use futures::future::join_all;
use tenaz_rabbit::{Connection, Error, Publisher, PublisherOptions, QueueSpec, Target};

/// One message under way at a time.
async fn narrow_publisher(connection: &Connection, queue: &str, confirm_within: Duration) -> Publisher {
    connection.declare_queue(&QueueSpec::new(queue)).await.unwrap();
    let options = PublisherOptions { window: 1, confirm_within, ..PublisherOptions::default() };
    Publisher::open_with(connection, options).await.unwrap()
}

#[test]
fn the_time_in_the_line_before_a_message_is_sent_does_not_count_as_waiting_for_its_confirm() {
    with_broker(async |settings| {
        let cable = Cable::to(&settings).await;
        let connection = connect(&cable.settings).await;
        let confirm_within = Duration::from_secs(4);
        let publisher = narrow_publisher(&connection, "line", confirm_within).await;
        cable.delay_answers(confirm_within * 3 / 10);
        let began = Instant::now();
        let sent = (0..5).map(|number| {
            let publisher = publisher.clone();
            async move { publisher.publish(Target::Queue("line"), vec![1], &id(number)).await }
        });
        for outcome in join_all(sent).await {
            outcome.unwrap();
        }
        assert!(began.elapsed() > confirm_within, "the line was not long enough to prove anything");
    });
}

#[test]
fn a_message_that_is_never_confirmed_does_not_hold_its_place_in_the_window_for_ever() {
    with_broker(async |settings| {
        let cable = Cable::to(&settings).await;
        let connection = connect(&cable.settings).await;
        let publisher = narrow_publisher(&connection, "never", Duration::from_secs(1)).await;
        cable.delay_answers(Duration::from_secs(3600));
        let properties = id("abandoned");
        let abandoned = publisher.publish(Target::Queue("never"), vec![1], &properties);
        assert!(tokio::time::timeout(Duration::from_millis(100), abandoned).await.is_err(), "it was confirmed");
        let outcome = publisher.publish(Target::Queue("never"), vec![1], &id("next")).await;
        assert!(matches!(&outcome, Err(Error::Unconfirmed { target, .. }) if target == "never"), "{outcome:?}");
    });
}
