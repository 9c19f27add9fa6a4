//! RabbitMQ as tenaz uses it: connections, queues, streams, confirmed publishing, private nodes.
//!
//! This crate moves bytes. It never knows what a job, a chunk or a row is.
