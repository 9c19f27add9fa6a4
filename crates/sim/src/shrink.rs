//! From a run that breaks a rule to one that breaks a rule with the fewest faults.

use tenaz_core::Error;

use crate::options::Options;
use crate::run::{Report, run};

/// Drops faults one by one, and then shortens those that are left, while some rule is still broken. `options` must describe a
/// run that breaks one.
pub fn shrink(options: &Options) -> Result<Report, Error> {
    let with = |faults| run(&Options { faults: Some(faults), ..options.clone() });
    let mut fewest = run(options)?;
    let mut at = 0;
    while at < fewest.plan.len() {
        let mut faults = fewest.plan.clone();
        faults.remove(at);
        let fewer = with(faults)?;
        if fewer.violation.is_some() {
            fewest = fewer;
        } else {
            at += 1;
        }
    }
    for at in 0..fewest.plan.len() {
        // Half of it, then half of that: what is left lasts less than twice as long as it must.
        while let Some(shorter) = fewest.plan.get(at).and_then(|(_, fault)| fault.half_as_long()) {
            let mut faults = fewest.plan.clone();
            faults[at].1 = shorter;
            let less = with(faults)?;
            if less.violation.is_none() {
                break;
            }
            fewest = less;
        }
    }
    Ok(fewest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Fault;
    use crate::mutation::Mutation;
    use crate::scenario::Shape;

    #[test]
    fn only_the_faults_that_matter_are_left() {
        let plan =
            vec![(10, Fault::Stall(1)), (20, Fault::CutClient), (30, Fault::FullDisk(0, 50)), (200, Fault::KillClient)];
        let shape = Some(Shape::Filter);
        let found = (0..200).find_map(|seed| {
            let options =
                Options { seed, shape, plan: Some(plan.clone()), mutation: Mutation::NoRejoin, ..Options::default() };
            let report = shrink(&options).expect("shapes are valid");
            report.violation.map(|_| report.plan)
        });
        assert_eq!(found, None, "another worker does the job");
        let both = vec![
            (10, Fault::Stall(1)),
            (60, Fault::FullDisk(0, 150)),
            (60, Fault::FullDisk(1, 150)),
            (65, Fault::CutClient),
        ];
        let found = (0..50).find_map(|seed| {
            let options =
                Options { seed, shape, plan: Some(both.clone()), mutation: Mutation::NoRejoin, ..Options::default() };
            let report = shrink(&options).expect("shapes are valid");
            report.violation.map(|_| report.plan)
        });
        let found = found.expect("both disks are full");
        let kinds: Vec<usize> = found.iter().map(|(_, fault)| fault.kind()).collect();
        assert_eq!(kinds, [both[1].1.kind(); 2], "{found:?}");
        assert!(found.iter().any(|(_, fault)| !both.iter().any(|(_, given)| given == fault)), "shorter: {found:?}");
    }
}
