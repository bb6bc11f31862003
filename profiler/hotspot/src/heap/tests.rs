//! Tests of references.

use super::*;

#[test]
fn colours_come_off() {
    let address = 0x0400_0012_3458_u64;
    for bit in 0..4 {
        let word = address << (13 + bit) | 1 << (12 + bit) | 0xab0;
        assert_eq!(uncoloured(word), address);
    }
    assert_eq!(uncoloured(0), 0);
    assert_eq!(uncoloured(0x1000), 0, "a coloured null");
}
