//! A chain of coffee shops in Malaysia: 24 months of transactions, their items and the users, and four reference tables.
//!
//! Months are independent of each other: which users exist when is computed, not remembered.

mod hours;
mod month;
mod reference;
mod transactions;
mod users;

use crate::sink::Sink;
use crate::{Error, Run, Written, parallel};
use month::{MONTHS, Month};

/// Measured; see [`crate::expected_bytes`].
pub(crate) const BYTES_AT_SCALE_ONE: u64 = 4_150_000_000;

const MENU_HEADER: &str = "item_id,item_name,category,price,is_seasonal,available_from,available_to";
const STORES_HEADER: &str = "store_id,store_name,street,postal_code,city,state,latitude,longitude";
const VOUCHERS_HEADER: &str = "voucher_id,voucher_code,discount_type,discount_value,valid_from,valid_to";
const PAYMENT_METHODS_HEADER: &str = "method_id,method_name,category";

/// Writes all 76 files.
pub(crate) fn generate(run: &Run<'_>) -> Result<Written, Error> {
    let mut written = reference_tables(run)?;
    // The large files first, so that the threads end together.
    written.add(parallel::files(run.threads, 2 * MONTHS, |job| {
        if job < MONTHS {
            transactions::write(run, Month::new(job))
        } else {
            users::write(run, Month::new(job - MONTHS))
        }
    })?);
    Ok(written)
}

fn reference_tables(run: &Run<'_>) -> Result<Written, Error> {
    let mut written = Written::default();
    written.add(table(run, "menu_items/menu_items.csv", MENU_HEADER, &reference::menu_rows())?);
    written.add(table(run, "stores/stores.csv", STORES_HEADER, &reference::STORES)?);
    written.add(table(run, "vouchers/vouchers.csv", VOUCHERS_HEADER, &reference::voucher_rows())?);
    let methods = &reference::PAYMENT_METHODS;
    written.add(table(run, "payment_methods/payment_methods.csv", PAYMENT_METHODS_HEADER, methods)?);
    Ok(written)
}

fn table(run: &Run<'_>, name: &str, header: &str, rows: &[impl AsRef<str>]) -> Result<Written, Error> {
    let mut sink = Sink::create(run.out.join(name), header, &run.progress)?;
    for row in rows {
        sink.buffer().extend_from_slice(row.as_ref().as_bytes());
        sink.buffer().push(b'\n');
        sink.appended(1)?;
    }
    sink.finish()
}
