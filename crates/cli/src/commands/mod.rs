//! One file per subcommand.

pub(crate) mod broker;
pub(crate) mod chaos;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod down;
pub(crate) mod explain;
pub(crate) mod gateway;
pub(crate) mod generate;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod probe;
pub(crate) mod run;
pub(crate) mod sql;
pub(crate) mod status;
pub(crate) mod submit;
pub(crate) mod supervisor;
pub(crate) mod ui;
pub(crate) mod up;
pub(crate) mod worker;
