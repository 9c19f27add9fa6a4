//! A record without a label that sums the others up, as Google Analytics writes it below the header.

use tenaz_source::{NumberForm, has_no_label};

/// What the records of a whole file say about one without a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unlabelled {
    /// One of its columns is the sum of all others.
    Sum(String),
    /// It stands where sums stand, but nothing proves that it is one.
    Doubtful(String),
}

/// The only record of a file whose first field is empty, if it is the first or the last one.
pub(crate) fn unlabelled(records: &[Vec<String>]) -> Option<Unlabelled> {
    let is_without = |record: &&Vec<String>| has_no_label(record.iter().map(|field| field.as_bytes()));
    if records.len() < 3 || records.iter().filter(is_without).count() != 1 {
        return None;
    }
    let (first, last) = (records.first()?, records.last()?);
    let (sum, others) = if is_without(&first) { (first, &records[1..]) } else { (last, &records[..records.len() - 1]) };
    if !is_without(&sum) || others.iter().any(|other| other.len() != sum.len()) {
        return None;
    }
    let text = sum.join(",");
    let is_sum = (1..sum.len()).any(|column| is_sum_of(&sum[column], others.iter().map(|other| &*other[column])));
    Some(if is_sum { Unlabelled::Sum(text) } else { Unlabelled::Doubtful(text) })
}

/// Whether numbers that are not all zero have this sum.
fn is_sum_of<'a>(sum: &str, numbers: impl Iterator<Item = &'a str>) -> bool {
    let Some(sum) = number(sum).filter(|sum| *sum != 0.0) else { return false };
    let numbers: Option<Vec<f64>> =
        numbers.map(|text| if text.trim().is_empty() { Some(0.0) } else { number(text) }).collect();
    numbers.is_some_and(|numbers| (numbers.iter().sum::<f64>() - sum).abs() <= sum.abs() * 1e-9 + 1e-6)
}

fn number(text: &str) -> Option<f64> {
    let forms = [(b'.', b','), (b',', b'.')].map(|(decimal, group)| NumberForm { decimal, group: Some(group) });
    let plain = forms.iter().find_map(|form| form.plain(text))?;
    plain.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> Option<Unlabelled> {
        let records: Vec<Vec<String>> = text.lines().map(|line| line.split(';').map(str::to_owned).collect()).collect();
        unlabelled(&records)
    }

    #[test]
    fn a_record_without_a_label_is_a_sum_if_it_is_one() {
        assert!(matches!(seen(";30;x\na;10;y\nb;20;z"), Some(Unlabelled::Sum(_))));
        assert!(matches!(seen("a;1.000,50;y\nb;2,25;z\n;1.002,75;"), Some(Unlabelled::Sum(_))));
        assert!(matches!(seen("a;10\nb;20\n;25"), Some(Unlabelled::Doubtful(_))));
        assert_eq!(seen("a;10\n;20\nb;10"), None, "in the middle");
        assert_eq!(seen(";10\n;20\nb;10"), None, "labels are often missing");
        assert_eq!(seen("a;10\nb;10"), None);
    }
}
