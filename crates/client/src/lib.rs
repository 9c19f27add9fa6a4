//! A client of the gateways: cuts files into chunks, sends what is missing, follows the job, fetches the answers.
//!
//! This crate never plans or computes: it needs no query engine.
