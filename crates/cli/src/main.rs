//! cosched.
fn main() {}
