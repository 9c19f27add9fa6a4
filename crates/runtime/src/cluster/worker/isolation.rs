//! The jobs of this worker beside each other: `tenaz_core::Isolation` decides what each may begin, here they meet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tenaz_core::{Clearance, Exposure, Isolation};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

#[derive(Default)]
struct Room {
    isolation: Isolation<u64>,
    told: BTreeMap<u64, UnboundedSender<Clearance>>,
    last: u64,
}

impl Room {
    /// Under the same lock as the decision, so that all hear of decisions in their order.
    fn tell(&self, told: Vec<(u64, Clearance)>) {
        for (part, clearance) in told {
            if let Some(sender) = self.told.get(&part) {
                // A part that does not listen any more leaves when its last step has run.
                let _ = sender.send(clearance);
            }
        }
    }
}

/// What all jobs of a worker share of this.
#[derive(Clone, Default)]
pub(super) struct SharedRoom(Arc<Mutex<Room>>);

impl SharedRoom {
    /// An actor begins. What it may begin comes over the channel, now and later.
    pub(super) fn enter(&self) -> (Arc<RoomPlace>, UnboundedReceiver<Clearance>) {
        let (sender, receiver) = unbounded_channel();
        let number = self.with(|room| {
            room.last += 1;
            let number = room.last;
            let clearance = room.isolation.join(number);
            room.told.insert(number, sender);
            room.tell(vec![(number, clearance)]);
            number
        });
        (Arc::new(RoomPlace { room: self.clone(), number }), receiver)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Room) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The place of one actor. Its steps hold it, too: what still runs when the actor is gone may kill all the same.
pub(super) struct RoomPlace {
    room: SharedRoom,
    number: u64,
}

impl RoomPlace {
    /// The actor has begun or ended something.
    pub(super) fn report(&self, exposure: Exposure) {
        self.room.with(|room| {
            let told = room.isolation.report(self.number, exposure);
            room.tell(told);
        });
    }
}

impl Drop for RoomPlace {
    fn drop(&mut self) {
        self.room.with(|room| {
            room.told.remove(&self.number);
            let told = room.isolation.leave(self.number);
            room.tell(told);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_that_is_gone_is_waited_for_while_a_step_of_it_runs() {
        let room = SharedRoom::default();
        let ((first, mut to_first), (second, mut to_second)) = (room.enter(), room.enter());
        assert_eq!((to_first.try_recv(), to_second.try_recv()), (Ok(Clearance::Shared), Ok(Clearance::Shared)));
        second.report(Exposure { begun: 1, ..Exposure::default() });
        let with_suspect = |clearance| Exposure { begun: 0, has_suspect: true, clearance };
        first.report(with_suspect(Clearance::Shared));
        assert_eq!((to_first.try_recv(), to_second.try_recv()), (Ok(Clearance::Held), Ok(Clearance::Held)));
        first.report(with_suspect(Clearance::Held));
        let step = Arc::clone(&second);
        drop((second, to_second));
        assert!(to_first.try_recv().is_err(), "a step of the second runs");
        drop(step);
        assert_eq!(to_first.try_recv(), Ok(Clearance::Alone));
    }
}
