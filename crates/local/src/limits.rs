//! Every bound of the local server in one place.

/// Bytes of a piece of a dropped file.
pub const MAX_PIECE_BYTES: usize = 8 << 20;
/// Bytes of a question's text in a request.
pub const MAX_REQUEST_BYTES: usize = 4 << 20;
/// Files that may be dropped.
pub const MAX_DROPPED_FILES: usize = 1_000;
/// Bytes of a file's name.
pub const MAX_NAME_BYTES: usize = 200;
/// Jobs that run at the same time; others wait.
pub const RUNNING_JOBS: usize = 2;
/// Jobs whose answers are kept; of older ones only their ends are.
pub const KEPT_ANSWERS: usize = 12;
/// Jobs that are remembered.
pub const KEPT_JOBS: usize = 1_000;
/// Rows of an answer that are shown before it is final.
pub const EARLY_ROWS: usize = 2_000;
/// Rows of one window into an answer.
pub const MAX_WINDOW_ROWS: u64 = 10_000;
/// Rows of a window, unless the request says otherwise.
pub const WINDOW_ROWS: u64 = 200;
/// Rows that can be put into another order for the page.
pub const MAX_SORTED_ROWS: u64 = 20_000_000;
/// How often a stream of events says how things are.
pub const EVENT_EVERY: std::time::Duration = std::time::Duration::from_millis(150);
/// How often a stream without news says that it is there.
pub const HEARTBEAT: std::time::Duration = std::time::Duration::from_secs(15);
/// Pieces of a download that wait for the reader.
pub const PIECES_AHEAD: usize = 4;
/// How long open requests may take to end when the server does.
pub const DRAIN: std::time::Duration = std::time::Duration::from_secs(2);
