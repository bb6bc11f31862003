use super::*;

const ANA: Party = Party::User(1000);
const SPARK: Party = Party::User(185);
const MALLORY: Party = Party::User(65534);

/// No pids.
const NONE: [u32; 0] = [];

fn claim(pid: u32, party: Party, side: Side, evidence: Evidence) -> Claim {
    // Older processes have smaller pids here.
    Claim { key: ProcessKey { pid, start_ticks: u64::from(pid) * 100 }, party, side, evidence }
}

fn executor(pid: u32, party: Party, evidence: Evidence) -> Claim {
    claim(pid, party, Side::Executors, evidence)
}

fn driver(pid: u32, party: Party, evidence: Evidence) -> Claim {
    claim(pid, party, Side::Driver, evidence)
}

/// Pids that are refused, of an application that nobody held before.
fn refused(claims: &[Claim]) -> Vec<u32> {
    pids(&Holders::default().judge(claims))
}

fn pids(refused: &[(ProcessKey, Party)]) -> Vec<u32> {
    refused.iter().map(|(key, _)| key.pid).collect()
}

#[test]
fn one_user_alone_is_believed() {
    use Evidence::{Answered, Family, Word};
    assert_eq!(refused(&[executor(1, ANA, Word), executor(2, ANA, Word), driver(3, ANA, Answered)]), NONE);
    assert_eq!(refused(&[executor(1, ANA, Family), driver(3, ANA, Family)]), NONE);
    assert_eq!(refused(&[]), NONE);
}

#[test]
fn the_stronger_evidence_wins_however_old_the_other_is() {
    use Evidence::{Answered, Family, Kernel, Vouched, Word};
    for (weak, strong) in [(Word, Answered), (Answered, Family), (Family, Vouched), (Vouched, Kernel)] {
        assert_eq!(
            refused(&[executor(1, MALLORY, weak), executor(9, ANA, strong)]),
            [1],
            "{weak:?} {strong:?}"
        );
        assert_eq!(refused(&[driver(1, MALLORY, weak), driver(9, ANA, strong)]), [1], "{weak:?} {strong:?}");
    }
    // A squatter's pods have no id of Kubernetes but by the kernel's word, and who is in none has nothing.
    assert_eq!(refused(&[executor(1, MALLORY, Word), executor(9, Party::Pods, Kernel)]), [1]);
}

#[test]
fn among_equals_the_first_holder_keeps_it_and_then_the_oldest() {
    use Evidence::Word;
    assert_eq!(refused(&[executor(2, MALLORY, Word), executor(1, ANA, Word)]), [2]);
    let mut holders = Holders::default();
    assert!(holders.judge(&[executor(5, ANA, Word)]).is_empty());
    // Forked long ago, and claims it now.
    assert_eq!(pids(&holders.judge(&[executor(1, MALLORY, Word), executor(5, ANA, Word)])), [1]);
    // The application has ended: its name is not free.
    assert_eq!(pids(&holders.judge(&[executor(1, MALLORY, Word)])), [1]);
    assert_eq!(holders.user(), Some(1000));
    // Only something surer takes it over.
    assert_eq!(
        pids(&holders.judge(&[executor(1, MALLORY, Word), executor(9, SPARK, Evidence::Vouched)])),
        [1]
    );
    assert_eq!(holders.user(), Some(185));
}

#[test]
fn executors_of_a_clusters_service_go_with_the_driver_that_they_lead_to() {
    use Evidence::{Answered, Family, Vouched};
    let executors = [executor(5, SPARK, Vouched), executor(6, SPARK, Vouched)];
    assert_eq!(refused(&[executors[0], executors[1], driver(4, ANA, Vouched)]), NONE);
    // A driver that nobody leads to only says so.
    assert_eq!(refused(&[executors[0], executors[1], driver(1, MALLORY, Answered)]), [1]);
    assert_eq!(refused(&[executors[0], driver(4, ANA, Vouched), driver(1, MALLORY, Family)]), [1]);
}

#[test]
fn a_lookalike_of_an_executor_does_not_join_a_driver_of_another_user() {
    use Evidence::{Answered, Family, Word};
    assert_eq!(refused(&[driver(4, ANA, Answered), executor(1, MALLORY, Word)]), [1], "local mode");
    let whole = [driver(4, ANA, Family), executor(5, ANA, Family), executor(6, ANA, Family)];
    let forged = [executor(1, MALLORY, Word), driver(2, MALLORY, Answered)];
    assert_eq!(refused(&[&whole[..], &forged].concat()), [1, 2]);
    // A whole lookalike of an application is as good as one: the older one is believed.
    let late = [driver(8, MALLORY, Family), executor(9, MALLORY, Family)];
    assert_eq!(refused(&[&whole[..], &late].concat()), [8, 9]);
}
