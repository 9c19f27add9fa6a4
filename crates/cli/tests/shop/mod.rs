//! A small coffee data set made by hand, file by file.
#![allow(clippy::unwrap_used, dead_code, unreachable_pub)]

use std::fs;
use std::path::{Path, PathBuf};

pub const TRANSACTIONS: &str = "transaction_id,store_id,payment_method_id,voucher_id,user_id,original_amount,\
                                discount_applied,final_amount,created_at";
pub const ITEMS: &str = "transaction_id,item_id,quantity,unit_price,subtotal,created_at";
pub const USERS: &str = "user_id,gender,birthdate,registered_at";
const MENU: &str = "item_id,item_name,category,price,is_seasonal,available_from,available_to
1,Espresso,coffee,6.0,False,,
2,Latte,coffee,8.0,False,,
3,Mocha,coffee,9.0,True,2024-01-01 00:00:00,2024-06-30 00:00:00
";
const STORES: &str = "store_id,store_name,street,postal_code,city,state,latitude,longitude
1,Alpha,Street 1,50000,KL,KL,3.1,101.5
2,Beta,Street 2,50001,KL,KL,3.2,101.6
";

pub struct Shop {
    dir: tempfile::TempDir,
}

impl Shop {
    /// Three items, two stores, and the header of every other table.
    pub fn new() -> Self {
        let shop = Self { dir: tempfile::tempdir().unwrap() };
        shop.file("menu_items/menu_items.csv", MENU)
            .file("stores/stores.csv", STORES)
            .file("transactions/transactions_202401.csv", format!("{TRANSACTIONS}\n"))
            .file("transaction_items/transaction_items_202401.csv", format!("{ITEMS}\n"))
            .file("users/users_202401.csv", format!("{USERS}\n"))
            .file("vouchers/vouchers.csv", "voucher_id,voucher_code,discount_type,discount_value,valid_from,valid_to\n")
            .file("payment_methods/payment_methods.csv", "method_id,method_name,category\n");
        shop
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file, replacing one of the same name.
    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Writes a file of a header and lines, each with a newline.
    pub fn lines<S: AsRef<str>>(&self, name: &str, header: &str, lines: impl IntoIterator<Item = S>) -> &Self {
        let mut text = format!("{header}\n");
        for line in lines {
            text.push_str(line.as_ref());
            text.push('\n');
        }
        self.file(name, text)
    }
}

/// A transaction with what the questions look at.
pub fn transaction(id: &str, store: &str, user: &str, amount: &str, at: &str) -> String {
    format!("{id},{store},1,,{user},{amount},0.0,{amount},{at}")
}

/// An item of a transaction.
pub fn item(item: &str, quantity: &str, subtotal: &str, at: &str) -> String {
    format!("t,{item},{quantity},1.0,{subtotal},{at}")
}
