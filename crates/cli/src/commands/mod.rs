//! One file per subcommand.

pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod gateway;
pub(crate) mod generate;
pub(crate) mod init;
pub(crate) mod run;
pub(crate) mod sql;
pub(crate) mod submit;
pub(crate) mod worker;
