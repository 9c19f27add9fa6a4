//! Spelling help: the names nearest to one that does not exist.

/// The names within a third of the word's length in edits, nearest first, at most three.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let word = word.to_lowercase();
    let allowed = (word.chars().count() / 3).max(1);
    let mut close: Vec<(usize, &str)> = names
        .into_iter()
        .map(|name| (edits(&word, &name.to_lowercase()), name))
        .filter(|(d, _)| *d <= allowed)
        .collect();
    close.sort();
    close.dedup();
    close.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let replaced = last[j] + usize::from(a[i] != b[j]);
            let mut best = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("ab", "ba"), 1);
    }
}
