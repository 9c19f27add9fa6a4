//! The reference tables of the coffee chain. They are short and public, so these are the real ones.

/// An item of the menu.
pub(super) struct Item {
    pub(super) id: u64,
    pub(super) name: &'static str,
    pub(super) category: &'static str,
    pub(super) price_thousandths: u64,
}

/// A discount and the days on which it holds, as (year, month, day).
pub(super) struct Voucher {
    pub(super) id: u64,
    pub(super) code: &'static str,
    pub(super) discount: Discount,
    pub(super) from: (u64, u64, u64),
    pub(super) to: (u64, u64, u64),
}

/// What a voucher takes off.
#[derive(Clone, Copy)]
pub(super) enum Discount {
    Percentage(u64),
    Fixed(u64),
}

impl Discount {
    /// The discount on `amount`, both in thousandths; exact, since amounts are multiples of 0.5.
    pub(super) fn on(self, amount: u64) -> u64 {
        match self {
            Self::Percentage(percent) => amount * percent / 100,
            Self::Fixed(whole) => (whole * 1000).min(amount),
        }
    }
}

/// The menu, ids counting from 1.
pub(super) const MENU: [Item; 8] = [
    item(1, "Espresso", "coffee", 6_000),
    item(2, "Americano", "coffee", 7_000),
    item(3, "Latte", "coffee", 8_000),
    item(4, "Cappuccino", "coffee", 8_000),
    item(5, "Flat White", "coffee", 9_000),
    item(6, "Mocha", "coffee", 9_500),
    item(7, "Hot Chocolate", "non-coffee", 9_000),
    item(8, "Matcha Latte", "non-coffee", 10_000),
];

/// The stores as lines of the file, ids counting from 1.
pub(super) const STORES: [&str; 10] = [
    "1,G Coffee @ USJ 89q,Jalan Dewan Bahasa 5/9,50998,USJ 89q,Kuala Lumpur,3.117134,101.615027",
    "2,G Coffee @ Kondominium Putra,Jln Yew 6X,63826,Kondominium Putra,Selangor Darul Ehsan,2.959571,101.51772",
    "3,G Coffee @ USJ 57W,Jalan Bukit Petaling 5/16C,62094,USJ 57W,Putrajaya,2.951038,101.663698",
    "4,G Coffee @ Kampung Changkat,Jln 6/6A,62941,Kampung Changkat,Putrajaya,2.914594,101.704486",
    "5,G Coffee @ Seksyen 21,Jalan Anson 4k,62595,Seksyen 21,Putrajaya,2.937599,101.698478",
    "6,G Coffee @ Alam Tun Hussein Onn,Jln Pasar Besar 63s,63518,Alam Tun Hussein Onn,Selangor Darul Ehsan,3.279175,101.784923",
    "7,G Coffee @ Damansara Saujana,Jln 8/74,65438,Damansara Saujana,Selangor Darul Ehsan,3.22081,101.58459",
    "8,G Coffee @ Bandar Seri Mulia,Jalan Wisma Putra,58621,Bandar Seri Mulia,Kuala Lumpur,3.140674,101.706562",
    "9,G Coffee @ PJS8,Jalan 7/3o,62418,PJS8,Putrajaya,2.952444,101.702623",
    "10,G Coffee @ Taman Damansara,Jln 2,67102,Taman Damansara,Selangor Darul Ehsan,3.497178,101.595271",
];

/// The ways to pay as lines of the file, ids counting from 1.
pub(super) const PAYMENT_METHODS: [&str; 5] =
    ["1,cash,cash", "2,credit_card,card", "3,debit_card,card", "4,tng,ewallet", "5,grabpay,ewallet"];

/// The vouchers. No two hold on the same day.
pub(super) const VOUCHERS: [Voucher; 16] = [
    percentage(1, "SALES77", 7, (2023, 7, 7), (2023, 7, 9)),
    percentage(2, "SALES88", 8, (2023, 8, 8), (2023, 8, 10)),
    percentage(3, "SALES99", 9, (2023, 9, 9), (2023, 9, 11)),
    percentage(4, "SALES10", 10, (2023, 10, 10), (2023, 10, 12)),
    percentage(5, "SALES11", 11, (2023, 11, 11), (2023, 11, 13)),
    merdeka(6, (2023, 8, 31), (2023, 9, 2)),
    percentage(7, "SALES66", 6, (2024, 6, 6), (2024, 6, 8)),
    percentage(8, "SALES77", 7, (2024, 7, 7), (2024, 7, 9)),
    percentage(9, "SALES88", 8, (2024, 8, 8), (2024, 8, 10)),
    percentage(10, "SALES99", 9, (2024, 9, 9), (2024, 9, 11)),
    percentage(11, "SALES10", 10, (2024, 10, 10), (2024, 10, 12)),
    percentage(12, "SALES11", 11, (2024, 11, 11), (2024, 11, 13)),
    merdeka(13, (2024, 8, 31), (2024, 9, 2)),
    percentage(14, "SALES50", 50, (2024, 5, 1), (2024, 5, 1)),
    percentage(15, "SALES66", 6, (2025, 6, 6), (2025, 6, 8)),
    percentage(16, "SALES50", 50, (2025, 5, 1), (2025, 5, 1)),
];

const fn item(id: u64, name: &'static str, category: &'static str, price_thousandths: u64) -> Item {
    Item { id, name, category, price_thousandths }
}

const fn percentage(id: u64, code: &'static str, percent: u64, from: (u64, u64, u64), to: (u64, u64, u64)) -> Voucher {
    Voucher { id, code, discount: Discount::Percentage(percent), from, to }
}

const fn merdeka(id: u64, from: (u64, u64, u64), to: (u64, u64, u64)) -> Voucher {
    Voucher { id, code: "MERDEKA", discount: Discount::Fixed(5), from, to }
}

/// The voucher that holds on a day, if any.
pub(super) fn voucher_on(day: (u64, u64, u64)) -> Option<&'static Voucher> {
    VOUCHERS.iter().find(|voucher| (voucher.from..=voucher.to).contains(&day))
}

/// The file of the menu, without its header.
pub(super) fn menu_rows() -> Vec<String> {
    MENU.iter()
        .map(|item| {
            let Item { id, name, category, price_thousandths } = item;
            format!("{id},{name},{category},{}.{},False,,", price_thousandths / 1000, price_thousandths / 100 % 10)
        })
        .collect()
}

/// The file of the vouchers, without its header.
pub(super) fn voucher_rows() -> Vec<String> {
    let date = |(year, month, day): (u64, u64, u64)| format!("{year}-{month:02}-{day:02}");
    VOUCHERS
        .iter()
        .map(|voucher| {
            let (kind, value) = match voucher.discount {
                Discount::Percentage(percent) => ("percentage", percent),
                Discount::Fixed(whole) => ("fixed", whole),
            };
            format!("{},{},{kind},{value}.0,{},{}", voucher.id, voucher.code, date(voucher.from), date(voucher.to))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_look_like_the_real_ones() {
        assert_eq!(menu_rows()[5], "6,Mocha,coffee,9.5,False,,");
        assert_eq!(voucher_rows()[5], "6,MERDEKA,fixed,5.0,2023-08-31,2023-09-02");
        assert_eq!(voucher_rows()[13], "14,SALES50,percentage,50.0,2024-05-01,2024-05-01");
    }

    #[test]
    fn discounts_are_exact() {
        assert_eq!(Discount::Percentage(7).on(85_500), 5_985);
        assert_eq!(Discount::Fixed(5).on(38_000), 5_000);
    }

    #[test]
    fn a_voucher_holds_on_its_days_only() {
        assert_eq!(voucher_on((2024, 7, 9)).map(|voucher| voucher.id), Some(8));
        assert!(voucher_on((2024, 7, 10)).is_none());
    }
}
