//! Values as words of 64 bits: numbers, dates and times are compared, hashed and grouped without asking what they are.

pub(crate) mod groups;
pub(crate) mod keys;
