//! What supervisors say to each other, and to those who ask.

use serde::{Deserialize, Serialize};
use tenaz_core::{ElectionMessage, Term};

use crate::executor::{MachineProcess, Order, OrderResult};
use crate::limits::MAX_ANSWER_BYTES;
use crate::status::Status;

/// One frame.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Frame {
    /// I am still here. The first frame of whoever dials, too.
    Ping,
    /// So am I.
    Pong,
    /// Of the election.
    Election(ElectionMessage),
    /// A process of the sender's machine may have ended.
    Changed,
    /// Something to be answered.
    Request {
        /// Of this connection.
        number: u64,
        /// What.
        request: Request,
    },
    /// The answer.
    Answer {
        /// Of the request.
        number: u64,
        /// What.
        answer: Box<Answer>,
    },
}

/// What one can ask a supervisor.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// To carry out a leader's order on its machine.
    Order {
        /// The leader's term.
        term: Term,
        /// The order.
        order: Order,
    },
    /// To look at the processes of its machine.
    Inspect,
    /// How the cluster is, as far as it knows.
    Status,
}

/// What it answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// What became of the order.
    Order(OrderResult),
    /// The processes of its machine.
    Inspected(Vec<MachineProcess>),
    /// How the cluster is.
    Status(Box<Status>),
    /// That it cannot.
    Failed(String),
}

impl Answer {
    /// The same, small enough for a frame: what people read is left out first.
    pub(super) fn fitting(mut self) -> Self {
        let fits = |answer: &Self| serde_json::to_vec(answer).is_ok_and(|text| text.len() <= MAX_ANSWER_BYTES);
        if let Self::Inspected(processes) = &mut self {
            for process in processes {
                let endings = &mut process.history.endings;
                endings.drain(..endings.len().saturating_sub(1));
            }
        }
        if fits(&self) {
            return self;
        }
        match &mut self {
            Self::Inspected(processes) => {
                let given_up = processes.iter_mut().filter_map(|process| process.history.given_up.as_mut());
                given_up.for_each(|given_up| given_up.last_lines.clear());
            }
            Self::Status(status) => status.leave_out_lines(),
            Self::Order(_) | Self::Failed(_) => {}
        }
        if fits(&self) { self } else { Self::Failed("the answer is too large for a message".to_owned()) }
    }
}
