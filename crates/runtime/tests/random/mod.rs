//! Random SQL over random tables, answered by tenaz at several settings, by DataFusion directly, and by DuckDB.
//!
//! ```text
//!  seed ──▶ case: tables + queries as trees ──▶ SQL in three dialects ──▶ opinions ──▶ judgement ──▶ report
//!           (tables, generator, operations)     (sql_text)               (runs, second_opinion)  (judge, known_differences)
//!                                                     ▲                                                │
//!                                                     └──────────────────── shrink ◀───────────────────┘
//! ```

pub mod case;
pub mod generator;
pub mod judge;
pub mod known_differences;
pub mod ledger;
pub mod operations;
pub mod report;
pub mod rng;
pub mod runs;
pub mod search;
pub mod second_opinion;
pub mod settings;
pub mod shrink;
pub mod sql_text;
pub mod tables;
pub mod tree;
pub mod value;
pub mod walk;
