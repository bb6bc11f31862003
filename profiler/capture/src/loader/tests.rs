//! Refusals, each with its mend.

use super::super::features::Capabilities;
use super::super::features::tests::bare;
use super::*;

#[test]
fn refusals_come_in_the_order_of_their_mends() {
    let config = CaptureConfig::default();
    let mut host = bare();
    let too_fast = CaptureConfig { hz: 20_000, ..config.clone() };
    assert!(matches!(check(&too_fast, &host), Err(CaptureError::BadRate { hz: 20_000, .. })));
    assert!(matches!(check(&config, &host), Err(CaptureError::NoCapability { .. })));
    host.capabilities = Capabilities { effective: u64::MAX };
    let error = check(&config, &host).expect_err("nothing is there");
    if OBJECT.is_empty() {
        assert!(matches!(error, CaptureError::NotBuilt));
    } else {
        assert!(matches!(error, CaptureError::NoKernelFeature { what: "BPF ring buffer", .. }));
    }
}
