//! What the processes of a cluster share: names of queues and streams, messages, the registry of jobs, members.
//!
//! This crate never runs a task and never serves a client.
