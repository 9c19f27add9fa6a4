//! The five answers of the coffee workload, computed the slow and plain way: a hand-written parser, loops and ordered
//! maps. Nothing here knows Arrow, DataFusion or tenaz, so agreement with the program means something.
//!
//! It expects clean data (every record is good), however oddly written: CRLF, a byte order mark, quotes, a missing last
//! newline, empty files. Money is counted in thousandths.
#![allow(clippy::unwrap_used, dead_code, unreachable_pub)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A field: nothing for an empty one.
type Field = Option<String>;

/// The expected text of every result file, by query.
pub fn expected(data: &Path) -> BTreeMap<&'static str, String> {
    let shop = Shop::read(data);
    BTreeMap::from([
        ("q1", shop.q1()),
        ("q2_sold", shop.best_items("sellings_qty", |item| item.quantity, |sum| sum.to_string())),
        ("q2_profit", shop.best_items("profit_sum", |item| item.subtotal, money)),
        ("q3", shop.q3()),
        ("q4", shop.q4()),
    ])
}

struct Transaction {
    id: Field,
    store: Option<i64>,
    user: Option<i64>,
    amount: Option<i64>,
    at: Option<Moment>,
}

struct Item {
    item: Option<i64>,
    quantity: Option<i64>,
    subtotal: Option<i64>,
    at: Option<Moment>,
}

struct Shop {
    transactions: Vec<Transaction>,
    items: Vec<Item>,
    /// (user, birthdate)
    users: Vec<(Option<i64>, Field)>,
    menu: Vec<(Option<i64>, Field)>,
    stores: Vec<(Option<i64>, Field)>,
}

#[derive(Clone, Copy)]
struct Moment {
    year: u32,
    month: u32,
    second_of_day: u32,
}

impl Moment {
    fn parse(text: &str) -> Self {
        let number = |from: usize, to: usize| text[from..to].parse::<u32>().unwrap();
        let second_of_day = match text.len() {
            10 => 0,
            _ => number(11, 13) * 3600 + number(14, 16) * 60 + number(17, 19),
        };
        Self { year: number(0, 4), month: number(5, 7), second_of_day }
    }

    fn counts(self) -> bool {
        self.year == 2024 || self.year == 2025
    }

    fn is_trading_hour(self) -> bool {
        self.second_of_day >= 6 * 3600 && self.second_of_day <= 23 * 3600
    }
}

impl Shop {
    fn read(data: &Path) -> Self {
        let transactions = records(data, "transactions").into_iter().map(|r| Transaction {
            id: r[0].clone(),
            store: whole(&r[1]),
            user: whole(&r[4]),
            amount: thousandths(&r[7]),
            at: r[8].as_deref().map(Moment::parse),
        });
        let items = records(data, "transaction_items").into_iter().map(|r| Item {
            item: whole(&r[1]),
            quantity: whole(&r[2]),
            subtotal: thousandths(&r[4]),
            at: r[5].as_deref().map(Moment::parse),
        });
        let pair = |table: &str, shown: usize| {
            records(data, table).into_iter().map(|r| (whole(&r[0]), r[shown].clone())).collect()
        };
        Self {
            transactions: transactions.collect(),
            items: items.collect(),
            users: pair("users", 2),
            menu: pair("menu_items", 1),
            stores: pair("stores", 1),
        }
    }

    fn q1(&self) -> String {
        let mut rows: Vec<(Field, i64)> = Vec::new();
        for transaction in &self.transactions {
            let (Some(at), Some(amount)) = (transaction.at, transaction.amount) else { continue };
            if at.counts() && at.is_trading_hour() && amount >= 75_000 {
                rows.push((transaction.id.clone(), amount));
            }
        }
        rows.sort();
        let lines = rows.into_iter().map(|(id, amount)| vec![id, Some(money(amount))]);
        csv("transaction_id,final_amount", lines)
    }

    fn best_items(&self, column: &str, value: fn(&Item) -> Option<i64>, show: fn(i64) -> String) -> String {
        let mut sums: BTreeMap<(u32, u32), BTreeMap<i64, i64>> = BTreeMap::new();
        for item in &self.items {
            let (Some(at), Some(id), Some(value)) = (item.at, item.item, value(item)) else { continue };
            if at.counts() {
                *sums.entry((at.year, at.month)).or_default().entry(id).or_default() += value;
            }
        }
        let mut lines = Vec::new();
        for ((year, month), items) in sums {
            let mut best: Option<(i64, i64)> = None;
            for (id, sum) in items {
                // Ids come in ascending order, so the smallest id of a tie stays.
                if best.is_none_or(|(_, most)| sum > most) {
                    best = Some((id, sum));
                }
            }
            let Some((id, sum)) = best else { continue };
            for (_, name) in self.menu.iter().filter(|(item, _)| *item == Some(id)) {
                lines.push(vec![Some(format!("{year:04}-{month:02}")), name.clone(), Some(show(sum))]);
            }
        }
        csv(&format!("year_month_created_at,item_name,{column}"), lines)
    }

    fn q3(&self) -> String {
        let mut sums: BTreeMap<(String, i64), i64> = BTreeMap::new();
        for transaction in &self.transactions {
            let (Some(at), Some(store), Some(amount)) = (transaction.at, transaction.store, transaction.amount) else {
                continue;
            };
            if at.counts() && at.is_trading_hour() {
                let half = format!("{}-H{}", at.year, if at.month <= 6 { 1 } else { 2 });
                *sums.entry((half, store)).or_default() += amount;
            }
        }
        let mut rows = Vec::new();
        for ((half, store), sum) in sums {
            for (_, name) in self.stores.iter().filter(|(id, _)| *id == Some(store)) {
                rows.push((half.clone(), nulls_last(name), sum));
            }
        }
        rows.sort();
        let lines = rows.into_iter().map(|(half, (_, name), sum)| vec![Some(half), name, Some(money(sum))]);
        csv("year_half_created_at,store_name,tpv", lines)
    }

    fn q4(&self) -> String {
        let mut counts: BTreeMap<i64, BTreeMap<i64, i64>> = BTreeMap::new();
        for transaction in &self.transactions {
            let (Some(at), Some(store), Some(user)) = (transaction.at, transaction.store, transaction.user) else {
                continue;
            };
            if at.counts() {
                *counts.entry(store).or_default().entry(user).or_default() += 1;
            }
        }
        let birthdates: BTreeMap<i64, Field> =
            self.users.iter().filter_map(|(id, birthdate)| Some(((*id)?, birthdate.clone()))).collect();
        let mut rows = Vec::new();
        for (store, users) in counts {
            let mut best: Vec<(i64, i64)> = users.into_iter().map(|(user, count)| (-count, user)).collect();
            best.sort_unstable();
            for (minus_count, user) in best.into_iter().take(3) {
                let Some(birthdate) = birthdates.get(&user) else { continue };
                for (_, name) in self.stores.iter().filter(|(id, _)| *id == Some(store)) {
                    rows.push((nulls_last(name), minus_count, user, birthdate.clone()));
                }
            }
        }
        rows.sort();
        let lines = rows.into_iter().map(|((_, name), count, _, birth)| vec![name, birth, Some((-count).to_string())]);
        csv("store_name,birthdate,purchases_qty", lines)
    }
}

/// A key that sorts as SQL's ascending order does: null after everything else.
fn nulls_last(text: &Field) -> (bool, Field) {
    (text.is_none(), text.clone())
}

fn whole(field: &Field) -> Option<i64> {
    let text = field.as_deref()?;
    let digits = text.split_once('.').map_or(text, |(digits, zeros)| {
        assert!(zeros.bytes().all(|b| b == b'0'), "{text}");
        digits
    });
    Some(digits.parse().unwrap())
}

fn thousandths(field: &Field) -> Option<i64> {
    let text = field.as_deref()?;
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (units, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction: i64 = format!("{fraction:0<3}").parse().unwrap();
    assert!(fraction < 1000, "{text}");
    Some(sign * (units.parse::<i64>().unwrap() * 1000 + fraction))
}

fn money(thousandths: i64) -> String {
    let sign = if thousandths < 0 { "-" } else { "" };
    let digits = thousandths.abs();
    format!("{sign}{}.{:03}", digits / 1000, digits % 1000)
}

/// RFC 4180 with `\n`: null is nothing, an empty text is `""`.
fn csv(header: &str, rows: impl IntoIterator<Item = Vec<Field>>) -> String {
    let mut text = format!("{header}\n");
    for row in rows {
        let fields: Vec<String> = row
            .into_iter()
            .map(|field| match field {
                None => String::new(),
                Some(field) if field.is_empty() || field.contains([',', '"', '\n', '\r']) => {
                    format!("\"{}\"", field.replace('"', "\"\""))
                }
                Some(field) => field,
            })
            .collect();
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}

/// The records of all files of a table, without their headers.
fn records(data: &Path, table: &str) -> Vec<Vec<Field>> {
    let mut paths: Vec<_> = fs::read_dir(data.join(table)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().flat_map(|path| parse(&fs::read_to_string(path).unwrap()).into_iter().skip(1)).collect()
}

fn parse(text: &str) -> Vec<Vec<Field>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut records = Vec::new();
    let mut record = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => quoted = !quoted,
            _ if quoted => field.push(c),
            ',' => record.push(take(&mut field)),
            '\r' if matches!(chars.peek(), Some('\n')) => {}
            '\n' => {
                record.push(take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            c => field.push(c),
        }
    }
    if !field.is_empty() || !record.is_empty() {
        record.push(take(&mut field));
        records.push(record);
    }
    // A blank line is no record.
    records.retain(|record| record.len() > 1 || record[0].is_some());
    records
}

fn take(field: &mut String) -> Field {
    let text = std::mem::take(field);
    (!text.is_empty()).then_some(text)
}
