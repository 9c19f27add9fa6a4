//! Leaving nothing behind on a broker.

use tenaz_core::End;
use tenaz_rabbit::Connection;

use crate::{Book, Error, Link, LinkSettings};

/// What was on the broker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wiped {
    /// Jobs that were there.
    pub jobs: usize,
    /// Those of them that had not ended.
    pub unfinished: usize,
}

/// Deletes everything that a deployment has on a broker: all its jobs with their results, the registry, the exchange.
///
/// Nobody of the deployment may be running any more: whoever is still there makes the registry again.
pub async fn wipe(settings: LinkSettings) -> Result<Wiped, Error> {
    let link = Link::open(settings.clone()).await?;
    let book = Book::open(&link).await?;
    let jobs = book.each(|view| (view.card.clone(), view.end.clone()));
    let wiped = Wiped { jobs: jobs.len(), unfinished: jobs.iter().filter(|(_, end)| end.is_none()).count() };
    for (card, end) in jobs {
        crate::delete_job_objects(&link, &card, &end.unwrap_or(End::Cancelled), true).await?;
    }
    // A link makes the registry anew whenever it connects.
    link.close().await;
    let names = settings.names;
    let connection = Connection::open(&settings.broker, &settings.connection_name).await?;
    connection.delete_queue(&names.registry()).await?;
    connection.delete_queue(&names.events()).await?;
    connection.delete_exchange(&names.members()).await?;
    connection.close().await;
    Ok(wiped)
}
