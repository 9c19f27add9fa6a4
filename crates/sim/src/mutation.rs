//! Deliberate mistakes, to see that they are found: a check that cannot fail proves nothing.

/// A way in which a worker breaks the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mutation {
    /// None: the protocol as it is.
    #[default]
    None,
    /// Acknowledges a chunk as soon as it has run.
    AckBeforeConfirm,
    /// Lets a message that was seen before touch the state.
    NoDedup,
    /// Concludes with the first message of the results.
    ConcludeEarly,
    /// Puts parts together that two workers have made differently.
    MixContents,
    /// Keeps the rows of a log that it was told to release.
    KeepReleased,
    /// Works on chunks whose broadcasts are not complete.
    IgnoreWaves,
    /// Sends nothing again after a lost connection.
    NoRepublish,
    /// Goes on with a task that kills its workers.
    NoQuarantine,
    /// Names nothing as lost.
    NoReport,
}

/// All mistakes.
pub const MUTATIONS: [Mutation; 9] = [
    Mutation::AckBeforeConfirm,
    Mutation::NoDedup,
    Mutation::ConcludeEarly,
    Mutation::MixContents,
    Mutation::KeepReleased,
    Mutation::IgnoreWaves,
    Mutation::NoRepublish,
    Mutation::NoQuarantine,
    Mutation::NoReport,
];
