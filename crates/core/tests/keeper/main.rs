//! Keeping processes alive: told as stories, and tried with faults at random.

mod chance;
mod stories;
mod world;
