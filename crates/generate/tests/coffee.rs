//! The coffee data keep the promises that the queries and their tests rely on.

mod made;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::OnceLock;

use made::Made;
use tenaz_generate::Dataset;

const TRANSACTIONS: &str = "transaction_id,store_id,payment_method_id,voucher_id,user_id,original_amount,\
discount_applied,final_amount,created_at";
const ITEMS: &str = "transaction_id,item_id,quantity,unit_price,subtotal,created_at";
const USERS: &str = "user_id,gender,birthdate,registered_at";
const MONTHS: [&str; 24] = [
    "202307", "202308", "202309", "202310", "202311", "202312", "202401", "202402", "202403", "202404", "202405",
    "202406", "202407", "202408", "202409", "202410", "202411", "202412", "202501", "202502", "202503", "202504",
    "202505", "202506",
];

/// 36,000 transactions, made once.
fn coffee() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| Made::new(Dataset::Coffee, 0.0025, 11, 2))
}

fn table(made: &Made, name: &str, header: &str) -> Vec<csv::StringRecord> {
    let fields = header.split(',').count();
    MONTHS.iter().flat_map(|month| made.records(&format!("{name}/{name}_{month}.csv"), header, fields)).collect()
}

/// An amount in thousandths; panics on a text that Python would not print for a float.
fn thousandths(text: &str) -> u64 {
    let (whole, decimals) = text.split_once('.').expect("a decimal point");
    assert!((1..=3).contains(&decimals.len()) && (decimals.len() == 1 || !decimals.ends_with('0')), "{text}");
    whole.parse::<u64>().expect("digits") * 1000 + format!("{decimals:0<3}").parse::<u64>().expect("digits")
}

#[test]
fn all_76_files_are_there_even_at_the_smallest_scale() {
    let made = Made::new(Dataset::Coffee, 0.0001, 1, 1);
    assert_eq!(made.written.files, 76);
    assert_eq!(made.files().len(), 76);
    for name in ["transactions", "transaction_items", "users"] {
        for month in MONTHS {
            assert!(made.dir.path().join(format!("{name}/{name}_{month}.csv")).exists(), "{name} {month}");
        }
    }
}

#[test]
fn amounts_add_up_and_items_belong_to_transactions() {
    let mut sums: HashMap<String, u64> = HashMap::new();
    let mut repeats = 0;
    let mut seen = BTreeSet::new();
    let items = table(coffee(), "transaction_items", ITEMS);
    let prices = HashMap::from([
        ("1", "6.0"),
        ("2", "7.0"),
        ("3", "8.0"),
        ("4", "8.0"),
        ("5", "9.0"),
        ("6", "9.5"),
        ("7", "9.0"),
        ("8", "10.0"),
    ]);
    for item in &items {
        assert_eq!(&item[3], prices[&item[1]]);
        let quantity: u64 = item[2].parse().expect("a number");
        assert!((1..=3).contains(&quantity));
        assert_eq!(thousandths(&item[4]), quantity * thousandths(&item[3]));
        *sums.entry(item[0].to_owned()).or_default() += thousandths(&item[4]);
        repeats += u64::from(!seen.insert((item[0].to_owned(), item[1].to_owned())));
    }
    let transactions = table(coffee(), "transactions", TRANSACTIONS);
    assert_eq!(sums.len(), transactions.len(), "ids are unique and every transaction has items");
    assert!(repeats > 1000, "the same item comes twice in one transaction");
    let rows_per_100 = items.len() * 100 / transactions.len();
    assert!((285..=296).contains(&rows_per_100), "{rows_per_100}");
    for transaction in &transactions {
        assert_eq!(sums[&transaction[0]], thousandths(&transaction[5]));
        assert_eq!(thousandths(&transaction[5]) - thousandths(&transaction[6]), thousandths(&transaction[7]));
        assert!((1..=10).contains(&transaction[1].parse::<u32>().expect("a store")));
        assert!((1..=5).contains(&transaction[2].parse::<u32>().expect("a payment method")));
    }
}

#[test]
fn users_exist_and_have_registered_before_they_buy() {
    let mut registered_at = HashMap::new();
    for (index, user) in table(coffee(), "users", USERS).iter().enumerate() {
        assert_eq!(user[0], (index + 1).to_string());
        assert!(matches!(&user[1], "male" | "female"));
        assert!(("1964-06-30".."2009-07-01").contains(&&user[2]));
        registered_at.insert(format!("{}.0", &user[0]), user[3].to_owned());
    }
    let mut known = 0;
    for transaction in &table(coffee(), "transactions", TRANSACTIONS) {
        if !transaction[4].is_empty() {
            known += 1;
            assert!(registered_at[&transaction[4]].as_str() <= &transaction[8], "{transaction:?}");
        }
    }
    assert!(known > 10_000, "{known}");
}

#[test]
fn the_share_of_unknown_users_falls_from_nearly_all_to_a_quarter() {
    let unknown_per_mille = |month: &str| {
        let rows = coffee().records(&format!("transactions/transactions_{month}.csv"), TRANSACTIONS, 9);
        rows.iter().filter(|row| row[4].is_empty()).count() * 1000 / rows.len()
    };
    assert!(unknown_per_mille("202307") > 980);
    assert!((420..520).contains(&unknown_per_mille("202407")));
    assert!(unknown_per_mille("202506") < 270);
}

#[test]
fn vouchers_are_used_on_their_days_with_the_right_discount() {
    let vouchers: HashMap<String, csv::StringRecord> = coffee()
        .records("vouchers/vouchers.csv", "voucher_id,voucher_code,discount_type,discount_value,valid_from,valid_to", 6)
        .into_iter()
        .map(|voucher| (format!("{}.0", &voucher[0]), voucher))
        .collect();
    let mut used = BTreeSet::new();
    for row in &table(coffee(), "transactions", TRANSACTIONS) {
        let discount = thousandths(&row[6]);
        if row[3].is_empty() {
            assert_eq!(discount, 0);
            continue;
        }
        let voucher = &vouchers[&row[3]];
        assert!((&voucher[4]..=&voucher[5]).contains(&&row[8][..10]), "{row:?}");
        let value = thousandths(&voucher[3]);
        let expected = if &voucher[2] == "fixed" { value } else { thousandths(&row[5]) * value / 100_000 };
        assert_eq!(discount, expected);
        used.insert(row[3].to_owned());
    }
    assert_eq!(used.len(), 16, "every voucher is used");
}

#[test]
fn large_amounts_are_as_rare_as_in_the_real_data() {
    let rows = table(coffee(), "transactions", TRANSACTIONS);
    let late: Vec<_> = rows.iter().filter(|row| &row[8] >= "2024").collect();
    let large = late.iter().filter(|row| thousandths(&row[7]) >= 75_000).count();
    // 104,731 of about 10.8 million: 0.97 %.
    let per_ten_thousand = large * 10_000 / late.len();
    assert!((70..=125).contains(&per_ten_thousand), "{per_ten_thousand}");
}

#[test]
fn rows_lie_in_their_month_within_opening_hours_and_not_quite_in_order() {
    let mut inversions = 0;
    let mut rows = 0;
    for month in MONTHS {
        let prefix = format!("{}-{}", &month[..4], &month[4..]);
        let mut last = String::new();
        for row in coffee().records(&format!("transactions/transactions_{month}.csv"), TRANSACTIONS, 9) {
            assert!(row[8].starts_with(&prefix) && row[8].len() == 19, "{row:?}");
            assert!(("07:00:00"..="19:59:59").contains(&&row[8][11..]));
            inversions += usize::from(last.as_str() > &row[8]);
            last = row[8].to_owned();
            rows += 1;
        }
    }
    assert!(inversions > 100 && inversions < rows / 20, "{inversions} of {rows}");
}

#[test]
fn every_store_has_three_best_users_and_ties_happen() {
    let mut purchases: BTreeMap<(String, String), u64> = BTreeMap::new();
    for row in table(coffee(), "transactions", TRANSACTIONS) {
        if &row[8] >= "2024" && !row[4].is_empty() {
            *purchases.entry((row[1].to_owned(), row[4].to_owned())).or_default() += 1;
        }
    }
    let mut by_store: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for ((store, _), count) in purchases {
        by_store.entry(store).or_default().push(count);
    }
    assert_eq!(by_store.len(), 10);
    let mut ties = 0;
    for counts in by_store.values_mut() {
        counts.sort_unstable_by(|a, b| b.cmp(a));
        assert!(counts.len() > 3 && counts[0] >= 4 * counts[counts.len() / 2], "{:?}", &counts[..5]);
        ties += usize::from(counts[..4].windows(2).any(|pair| pair[0] == pair[1]));
    }
    assert!(ties > 0);
}
