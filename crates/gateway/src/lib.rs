//! The HTTP edge of a cluster: jobs, uploads, results, events. Stateless: any gateway serves any job.
//!
//! This crate never computes an answer and keeps nothing that another gateway could not find out.
