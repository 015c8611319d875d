// SPDX-License-Identifier: Apache-2.0
//! The Rust face of `policy/` and `presets/`.
//!
//! A policy is an answer to seven questions. A [`Preset`] names one answer a
//! question, with parameters; [`resolve`] decides, for the bodies that are
//! present, which body answers what; the result compiles to [`Params`], the
//! bytes that shim, kernel and simulator read alike. [`native`] asks the very
//! functions that the shim asks, for tests and for the simulator.
//!
//! What may be written in a preset stands in one place, [`table`].

pub mod duration;
mod error;
mod load;
pub mod native;
mod preset;
mod resolve;
pub mod table;
mod value;

pub use error::Error;
pub use load::{built_in, load};
pub use native::Params;
pub use preset::{place_of, Choice, Preset, Want};
pub use resolve::{resolve, sketch, Resolved, Taken};
pub use table::Body;

/// `policy/*.h` as bindgen sees it.
#[allow(
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
pub mod raw {
    include!(concat!(env!("OUT_DIR"), "/raw.rs"));
}

/// The words of the enums in `policy/*.h`, for people to read.
pub mod words {
    include!(concat!(env!("OUT_DIR"), "/words.rs"));
}
