//! Plain data.
