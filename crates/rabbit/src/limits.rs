//! Bounds of what this crate opens on a broker.

/// AMQP connections behind one [`Connection`](crate::Connection). With a broker's default of 2,047 channels each that is
/// room for 32,752 consumers and readers, twice what the default limits of a gateway let a worker need.
pub const MAX_SOCKETS: usize = 16;
