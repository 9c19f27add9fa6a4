//! Deliberate mistakes, to see that they are found: a check that cannot fail proves nothing.
//!
//! The driver itself is never changed: a mistake is made by whoever surrounds it, by another input, another effect or
//! another computation than the right one.

macro_rules! mutations {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// A way in which a process breaks the protocol.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum Mutation {
            /// None: the protocol as it is.
            #[default]
            None,
            $($(#[doc = $doc])+ $name,)+
        }

        /// All mistakes.
        pub const MUTATIONS: &[Mutation] = &[$(Mutation::$name,)+];
    };
}

mutations! {
    /// Acknowledges a chunk as soon as it has run.
    AckBeforeConfirm,
    /// Lets a message that was seen before touch the state.
    NoDedup,
    /// Concludes with the first message of the results.
    ConcludeEarly,
    /// Calls all queries final with the first message of the results.
    AnswerEarly,
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
    /// Looks for the partition of an inner task when the task's turn has come: it may have been lost and regained.
    LookUpLate,
    /// Makes the answers again when nothing has moved for long, though their rows were taken out for the first time.
    ConcludeTwice,
    /// Neither compares chunks with their receipts nor asks in the end which bytes the answers were made of.
    NoLineage,
    /// Says that rows are taken in before they are.
    TakeFinishedEarly,
    /// Says that a broadcast is complete before it is.
    CompleteFinishedEarly,
    /// Uses the rows of a broadcast that came first.
    SnapshotEarly,
    /// Takes only the last part of an output.
    TakeLastPart,
    /// Runs a task whose input has failed over what has come of it.
    ComputeOnPartialInput,
    /// Takes the rows of messages, and not what they say of failed stages.
    ForgetFailures,
    /// Runs every inner task twice.
    TaskTwice,
    /// Hands results of steps to another driver than the one that asked for them.
    StaleFinished,
    /// Joins a job again without counting that.
    SameLife,
    /// Takes every confirm for that of the message sent first.
    ConfirmMixedUp,
    /// Sends the first message of an output only, and calls the others confirmed.
    FirstMessageOnly,
    /// Does not send messages without rows, and calls them confirmed.
    NoEmptyMessages,
    /// Sends rows of partition 0 to the last partition.
    WrongLog,
    /// Takes a refused message for a confirmed one.
    RefusalIsConfirm,
    /// Does not send a refused message again.
    RefusedRows,
    /// Does not write a refused fact again.
    RefusedFact,
    /// Acknowledges all chunks that were delivered before, too.
    AckMultiple,
    /// Does not read partitions again after a lost connection.
    NoReread,
    /// Begins to read one message too late.
    ReadFromNext,
    /// Waits for the place where a log would have gone on, had it not lost its end.
    ReadBeyondEnd,
    /// Goes on in the control log where it was, though that may have lost its end.
    KeepControlOffset,
    /// Takes messages of an earlier reading for those of the present one.
    StaleReading,
    /// Takes chunks of an earlier subscription for those of the present one.
    StaleConsumer,
    /// Keeps the chunks that it cannot work on.
    KeepChunks,
    /// Keeps the chunks that the driver has not seen when it joins a job again.
    KeepIncoming,
    /// Goes on claiming its partitions after it stood back.
    ClaimAfterStandingBack,
    /// Never joins again after it stood back.
    NoRejoin,
    /// Acknowledges whatever it has when it leaves.
    DrainAcks,
    /// Believes that nobody ever dies.
    NoTakeover,
    /// Runs what it announces before the announcement is written.
    AttemptUnwritten,
    /// Counts what others tried beside the tasks of other jobs as if it had been alone.
    CompanyIgnored,
    /// Calls harmless whatever it begins.
    ExonerateUnfinished,
    /// Does not compare chunks with their receipts. (The lineage of the answers tells all the same.)
    NoReceiptCheck,
    /// Never searches for what was lost.
    NoSearch,
    /// Searches for what was lost in a partition that it has just taken over and not read.
    SearchAtTakeover,
    /// Keeps a connection over which nothing is delivered.
    NoReconnect,
    /// Keeps a connection one of whose channels is gone.
    LostChannel,
    /// Does not hear of the end of a job.
    EndIgnored,
    /// Announces the end of a job once, whether that arrives or not.
    EndOnce,
    /// The client writes receipts for chunks that are not confirmed.
    SentIsConfirmed,
    /// The client does not send a refused chunk again.
    RefusedChunk,
    /// The client does not send lost chunks again.
    LostIgnored,
    /// The client closes a table with one chunk too few.
    OneChunkShort,
    /// The client closes a table with one record too few.
    OneRecordShort,
    /// The client closes a table when its chunks are sent.
    CloseEarly,
    /// (c) Members of another build own partitions.
    OtherBuildOwns,
    /// (c) A worker that plans a job differently takes part in it all the same.
    OtherPlanServes,
    /// (c) Nobody says that no worker can serve a job.
    NoUnserved,
    /// (d) The time for a confirm begins when a message is handed over, not when it is on the socket.
    ConfirmClockEarly,
    /// (d) Heartbeats stand in line with everything else that is sent.
    BeatsInLine,
    /// (g) What this process cannot do fails the job.
    StandBackFails,
    /// (h) What finds no channel is not read, without a word.
    ChannelLimitSilent,
    /// (i) Files keep their places while they wait for other tables.
    PlacesHeld,
    /// (j) Unacknowledged chunks are no sign of life.
    ExpireUnacked,
    /// (j) A silent work queue is deleted, whatever is in it.
    DeleteConfirmed,
    /// (k) Everybody writes every stale job into the registry, and does not remember it.
    MentionByAll,
    /// (k) The whole text of an error goes into the registry.
    UnboundedText,
    /// (k) Goes on in the registry where it was, though that may have lost its end.
    KeepRegistryOffset,
    /// Never writes a job into the registry again.
    NoMention,
    /// Cleans up jobs that have not ended.
    TrimOpenJobs,
    /// Deletes the results when the job has just ended.
    TrimResults,
    /// Never deletes what ended jobs have left.
    NoTrim,
    /// Never removes a job.
    NoRemove,
    /// Lets jobs expire whose upload is complete.
    ExpireUploaded,
    /// Lets jobs expire whose clients are there.
    ExpireTouched,
    /// The gateway does not write down that a client is there.
    NoTouch,
    /// Does not write a refused event of the registry again.
    RefusedEvent,
    /// Forgets the facts of a control log that it begins to read again.
    NoControlMark,
    /// Waits for a confirm for ever.
    NoConfirmDeadline,
    /// The gateway never looks into a silent work queue.
    NoQueueMend,
    /// The gateway keeps a connection over which an empty queue refuses everything.
    NoGiveUp,
    /// Looks for the facts of a job in the control log of another.
    FactsOfOther,
    /// Gives chunks of one job to another.
    JobsMixed,
    /// Leaves all jobs when one has ended.
    OneEndsAll,
    /// Does not hear that something is harmless.
    NoExoneration,
    /// Searches for what was lost although others have work under way.
    SearchWhileOthersWork,
    /// The gateway puts all chunks into the first work queue.
    WrongWave,
    /// The gateway writes the receipt of the next chunk.
    ReceiptOfNext,
    /// The gateway writes a receipt with the digest of other bytes.
    ReceiptOfOtherBytes,
    /// The gateway does not write a refused receipt again.
    RefusedReceipt,
    /// The gateway says that a job is cancelled, and does nothing.
    CancelIgnored,
    /// A client does not have its job created again that stays unfinished.
    NoRecreation,
    /// Searches for what was lost as soon as the job looks idle.
    IdleForAMoment,
    /// Takes the late mention of a removed job for the job.
    LateMention,
    /// A client that goes on where another was killed sends nothing.
    ResumeSendsNothing,
    /// Nobody writes again what a job asks when its control log has lost it.
    SpecNotRestored,
    /// A reader that the broker has forgotten to wake waits for ever.
    NoResubscribe,
}
