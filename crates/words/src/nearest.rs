//! Spelling help: the names nearest to one that does not exist.

use strsim::osa_distance;

/// The names within a third of the word's length in edits, nearest first, at most three.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let word = word.to_lowercase();
    let allowed = (word.chars().count() / 3).max(1);
    let mut close: Vec<(usize, &str)> = names
        .into_iter()
        .map(|name| (osa_distance(&word, &name.to_lowercase()), name))
        .filter(|(d, _)| *d <= allowed)
        .collect();
    close.sort();
    close.dedup();
    close.into_iter().take(3).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_come_nearest_first_and_far_ones_not_at_all() {
        let names = ["transactions", "transaction_items", "users", "stores"];
        assert_eq!(nearest("transactoins", names), ["transactions"]);
        assert_eq!(nearest("Store", names), ["stores"]);
        assert!(nearest("zebra", names).is_empty());
        assert_eq!(nearest("uesrs", names), ["users"], "neighbours that are swapped are one edit");
    }
}
