//! A supervisor as a whole.
