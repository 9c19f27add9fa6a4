//! A month's transactions and their items: two files that must agree, so one loop writes both.

use crate::coffee::hours;
use crate::coffee::month::{ALL_DAYS, MONTHS, Month};
use crate::coffee::reference::{MENU, Voucher, voucher_on};
use crate::coffee::users::{Day, Registrations};
use crate::field::{number, thousandths, uuid};
use crate::rng::{Rng, mix};
use crate::sink::Sink;
use crate::{Error, Run, Written};

const TRANSACTIONS_HEADER: &str = "transaction_id,store_id,payment_method_id,voucher_id,user_id,\
original_amount,discount_applied,final_amount,created_at";
const ITEMS_HEADER: &str = "transaction_id,item_id,quantity,unit_price,subtotal,created_at";

/// Transactions of all months at scale 1.
const TRANSACTIONS: u64 = 14_400_000;

/// Share of transactions with a known user, per mille and month: hardly anybody at first, three of four at the end.
/// In the real July 2024 it is 53 %.
const KNOWN_USER_PER_MILLE: [u64; MONTHS] =
    [3, 5, 9, 15, 24, 38, 60, 92, 140, 205, 300, 420, 530, 590, 635, 665, 690, 710, 725, 740, 750, 760, 768, 775];
/// Of the known users: share that has just registered.
const NEWCOMER_PER_MILLE: u64 = 330;
/// Of the known users: share that comes all the time.
const REGULAR_PER_MILLE: u64 = 40;
/// One user in so many is a regular: few enough for a clear top 3 per store, many enough for ties.
const USERS_PER_REGULAR: u64 = 512;
/// Share of transactions that use the voucher of the day, where there is one.
const VOUCHER_PER_MILLE: u64 = 700;
/// Share of transactions that stand at a random place of the day's rows instead of in time order.
const OUT_OF_ORDER_PER_MILLE: u64 = 15;

/// Choices are drawn as one byte through a table: `[what; 256]`, filled by shares of 256.
type Choices = [u8; 256];
/// Item rows per transaction: 2.9 on average.
const ROWS: [(u8, usize); 5] = [(1, 33), (2, 62), (3, 74), (4, 72), (5, 15)];
/// Together with [`ROWS`] these make about 1 % of the amounts 75 or more, as in the real data.
const QUANTITIES: [(u8, usize); 3] = [(1, 179), (2, 57), (3, 20)];
const STORES: [(u8, usize); 10] =
    [(1, 24), (2, 28), (3, 24), (4, 26), (5, 25), (6, 27), (7, 27), (8, 28), (9, 22), (10, 25)];

/// Writes both files of one month.
pub(super) fn write(run: &Run<'_>, month: Month) -> Result<Written, Error> {
    let compact = month.compact();
    let name = format!("transactions/transactions_{compact}.csv");
    let items_name = format!("transaction_items/transaction_items_{compact}.csv");
    let mut rng = Rng::named(run.seed, &name, 0);
    let mut transactions = Sink::create(run.out.join(name), TRANSACTIONS_HEADER, &run.progress)?;
    let mut items = Sink::create(run.out.join(items_name), ITEMS_HEADER, &run.progress)?;
    let tables = Tables::new(&mut rng);
    let registrations = Registrations::of(month, run.scale);
    let in_month = run.scale.count(TRANSACTIONS * month.days / ALL_DAYS);
    for day in 0..month.days {
        let mut row = Rows {
            tables: &tables,
            date: month.date_text(day),
            users: registrations.on(day),
            known_user_per_mille: KNOWN_USER_PER_MILLE[month.index],
            voucher: voucher_on((month.year, month.month, day + 1)),
            created_at: Vec::with_capacity(32),
        };
        let count = in_month * (day + 1) / month.days - in_month * day / month.days;
        for nth in 0..count {
            let second = second_of(&mut rng, nth, count);
            let item_rows = row.write(&mut rng, second, transactions.buffer(), items.buffer());
            transactions.appended(1)?;
            items.appended(item_rows)?;
        }
    }
    let mut written = transactions.finish()?;
    written.add(items.finish()?);
    Ok(written)
}

/// The time of the `nth` of a day's `count` transactions: mostly, not strictly, in order.
fn second_of(rng: &mut Rng, nth: u64, count: u64) -> u64 {
    let within = rng.bits() >> 32;
    let fraction = if rng.chance(OUT_OF_ORDER_PER_MILLE) { within } else { ((nth << 32) + within) / count };
    hours::second_of(fraction)
}

/// What a month's rows choose from.
struct Tables {
    rows: Choices,
    quantities: Choices,
    stores: Choices,
    items: Choices,
    /// `,item_id,quantity,unit_price,subtotal,` by item and quantity.
    item_texts: [[Vec<u8>; 4]; MENU.len()],
}

impl Tables {
    fn new(rng: &mut Rng) -> Self {
        Self {
            rows: choices(&ROWS),
            quantities: choices(&QUANTITIES),
            stores: choices(&STORES),
            items: monthly_taste(rng),
            item_texts: std::array::from_fn(|item| std::array::from_fn(|quantity| item_text(item, quantity as u64))),
        }
    }
}

fn choices(shares: &[(u8, usize)]) -> Choices {
    let mut table = [0; 256];
    let mut at = 0;
    for &(choice, share) in shares {
        table[at..at + share].fill(choice);
        at += share;
    }
    assert_eq!(at, table.len(), "the shares make a whole");
    table
}

/// Every item sells about as well as the others, but which one leads changes from month to month.
fn monthly_taste(rng: &mut Rng) -> Choices {
    let mut table: Choices = std::array::from_fn(|at| (at % MENU.len()) as u8);
    for _ in 0..6 {
        table[rng.below(256) as usize] = rng.below(MENU.len() as u64) as u8;
    }
    table
}

fn item_text(item: usize, quantity: u64) -> Vec<u8> {
    let item = &MENU[item];
    let mut text = vec![b','];
    number(&mut text, item.id);
    text.push(b',');
    number(&mut text, quantity);
    text.push(b',');
    thousandths(&mut text, item.price_thousandths);
    text.push(b',');
    thousandths(&mut text, quantity * item.price_thousandths);
    text.push(b',');
    text
}

/// Writes the rows of one day.
struct Rows<'a> {
    tables: &'a Tables,
    date: Vec<u8>,
    users: Day,
    known_user_per_mille: u64,
    voucher: Option<&'static Voucher>,
    created_at: Vec<u8>,
}

impl Rows<'_> {
    /// Writes one transaction and its items; returns the number of item rows.
    fn write(&mut self, rng: &mut Rng, second: u64, transactions: &mut Vec<u8>, items: &mut Vec<u8>) -> u64 {
        let id = uuid(rng.bits(), rng.bits());
        self.created_at.clear();
        self.created_at.extend_from_slice(&self.date);
        self.created_at.push(b' ');
        hours::write(&mut self.created_at, second);
        self.created_at.push(b'\n');
        // Item and quantity of five rows, their number, store and payment: 13 of 16 random bytes.
        let [mut low, mut high] = [rng.bits(), rng.bits()];
        let byte = |bits: &mut u64| {
            let byte = *bits as u8;
            *bits >>= 8;
            usize::from(byte)
        };
        let item_rows = self.tables.rows[byte(&mut high)];
        let store = self.tables.stores[byte(&mut high)];
        let payment_method = 1 + byte(&mut high) * 5 / 256;
        let mut amount = 0;
        for row in 0..item_rows {
            if row == 4 {
                low = high;
            }
            let item = usize::from(self.tables.items[byte(&mut low)]);
            let quantity = self.tables.quantities[byte(&mut low)];
            amount += MENU[item].price_thousandths * u64::from(quantity);
            items.extend_from_slice(&id);
            items.extend_from_slice(&self.tables.item_texts[item][usize::from(quantity)]);
            items.extend_from_slice(&self.created_at);
        }
        transactions.extend_from_slice(&id);
        transactions.push(b',');
        number(transactions, u64::from(store));
        transactions.push(b',');
        number(transactions, payment_method as u64);
        transactions.push(b',');
        let discount = self.write_voucher(rng, amount, transactions);
        transactions.push(b',');
        self.write_user(rng, second, transactions);
        transactions.push(b',');
        thousandths(transactions, amount);
        transactions.push(b',');
        thousandths(transactions, discount);
        transactions.push(b',');
        thousandths(transactions, amount - discount);
        transactions.push(b',');
        transactions.extend_from_slice(&self.created_at);
        u64::from(item_rows)
    }

    /// Writes the voucher of the day, or nothing; returns what it takes off.
    fn write_voucher(&self, rng: &mut Rng, amount: u64, out: &mut Vec<u8>) -> u64 {
        match self.voucher {
            Some(voucher) if rng.chance(VOUCHER_PER_MILLE) => {
                number(out, voucher.id);
                out.extend_from_slice(b".0");
                voucher.discount.on(amount)
            }
            _ => 0,
        }
    }

    /// Writes a user who has registered before `second` as a float, or nothing.
    fn write_user(&self, rng: &mut Rng, second: u64, out: &mut Vec<u8>) {
        if !rng.chance(self.known_user_per_mille) {
            return;
        }
        let registered = self.users.registered_by(second);
        if registered == 0 {
            return;
        }
        let kind = rng.below(1000);
        let regulars = registered / USERS_PER_REGULAR;
        let id = if kind < NEWCOMER_PER_MILLE {
            registered - rng.below(registered.min(8))
        } else if kind < NEWCOMER_PER_MILLE + REGULAR_PER_MILLE && regulars > 0 {
            let regular = rng.below(regulars);
            regular * USERS_PER_REGULAR + mix(regular) % USERS_PER_REGULAR + 1
        } else {
            1 + rng.below(registered)
        };
        number(out, id);
        out.extend_from_slice(b".0");
    }
}
