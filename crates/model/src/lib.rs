// SPDX-License-Identifier: Apache-2.0
//! Plain data of cosched: the Rust face of `abi/`, and units in types.
//!
//! It decides nothing and does no input or output. What C and Rust both read is
//! bound from the headers and never retyped; the names that a person reads for
//! them stand here, once.

mod nanos;
mod words;

pub use nanos::Nanos;
pub use words::{bucket_upper_us, hook_names, RankState, SOURCES};

/// `abi/*.h` as bindgen sees it.
#[allow(
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
pub mod abi {
    include!(concat!(env!("OUT_DIR"), "/abi.rs"));
}

/// A hash of `bytes`: 64-bit FNV-1a.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Bytes of a page with room for `nr_slots` ranks.
pub fn page_bytes(nr_slots: u32) -> usize {
    size_of::<abi::cos_page>() + nr_slots as usize * size_of::<abi::cos_slot>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_as_everyone_does() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
