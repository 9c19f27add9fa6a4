//! What the model promises, and what it does to those who trust it too much.

use super::*;
use tenaz_core::TableId;

use crate::scenario::Version;

const CALM: Condition = Condition { now: 1, is_full: false, is_stalled: false };

fn broker() -> Broker {
    let mut broker = Broker::new(&[1], 1_000, 1_000);
    broker.declare(0);
    broker
}

fn touched() -> Envelope {
    Envelope::Control(0, ControlEntry::Fact(Fact::Touched))
}

#[test]
fn a_cut_connection_gives_its_chunks_back_to_their_places() {
    let mut broker = broker();
    let mut rng = Rng::new(1);
    let chunk = |number| ChunkCopy { source: Source::Chunk { table: TableId(0), number }, version: Version::First };
    (0..3).for_each(|number| broker.store(Envelope::Chunk { job: 0, wave: 0, chunk: chunk(number) }));
    let (first, second) = (broker.connect(), broker.connect());
    assert_eq!(broker.deliver(first, (0, 0), 1), Some((0, chunk(0), false)));
    assert_eq!(broker.deliver(first, (0, 0), 1), Some((1, chunk(1), false)));
    broker.say(first, (0, 0, 0), Settled::Acked);
    broker.accept(first, CALM, &mut rng);
    broker.cut(first, &mut rng);
    assert_eq!(broker.deliver(second, (0, 0), 1), Some((1, chunk(1), true)));
    assert_eq!(broker.deliver(second, (0, 0), 1), Some((2, chunk(2), false)));
}

#[test]
fn a_refused_publish_is_not_there_and_its_publisher_hears_of_it() {
    let mut broker = broker();
    let mut rng = Rng::new(1);
    let connection = broker.connect();
    let mut refused = 0;
    for _ in 0..20 {
        broker.publish(connection, touched(), 0);
        let accepted = broker.accept(connection, Condition { is_full: true, ..CALM }, &mut rng).is_some();
        let (_, is_confirmed) = broker.take_confirm(connection, &mut rng).expect("an answer");
        assert_eq!(accepted, is_confirmed);
        refused += usize::from(!accepted);
    }
    assert_eq!(broker.control(0).len(), 20 - refused);
    assert!((1..20).contains(&refused));
}

#[test]
fn a_confirm_is_lost_with_its_connection_but_the_message_is_not() {
    let mut broker = broker();
    let mut rng = Rng::new(1);
    let connection = broker.connect();
    broker.publish(connection, touched(), 0);
    broker.accept(connection, CALM, &mut rng);
    broker.cut(connection, &mut rng);
    assert_eq!(broker.control(0), [ControlEntry::Fact(Fact::Touched)]);
    assert_eq!(broker.take_confirm(connection, &mut rng), None);
}
