//! What every process of a cluster shows of itself.
