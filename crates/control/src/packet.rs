// SPDX-License-Identifier: Apache-2.0
//! A packet of `abi/control.h`, between bytes and what they mean.
//!
//! Bytes are a stranger's until their length was checked here; what the fields
//! say is checked by who acts on them.

use cosched_model::abi::{cos_control_reply, cos_control_request};
use std::{ffi::c_char, slice};

/// A struct of the protocol: integers and characters only, without padding.
///
/// # Safety
/// Any bytes must be a value of it, and each of its bytes be initialised.
unsafe trait Plain: Copy {}

// SAFETY: u32, u64 and char only; control.h asserts a size that leaves no room for padding.
unsafe impl Plain for cos_control_request {}
// SAFETY: as above.
unsafe impl Plain for cos_control_reply {}

fn bytes_of<T: Plain>(head: &T, text: &[u8]) -> Vec<u8> {
    // SAFETY: a Plain is initialised bytes.
    let head =
        unsafe { slice::from_raw_parts(std::ptr::from_ref(head).cast::<u8>(), size_of::<T>()) };
    [head, text].concat()
}

/// The head and the text behind it; nothing where the packet is too short.
fn parse<T: Plain>(packet: &[u8]) -> Option<(T, &[u8])> {
    let (head, text) = packet.split_at_checked(size_of::<T>())?;
    // SAFETY: the bytes are there, any bytes are a Plain, and it is read unaligned.
    let head = unsafe { head.as_ptr().cast::<T>().read_unaligned() };
    Some((head, text))
}

/// As it travels; `length` is that of @text.
pub fn bytes_of_request(head: &cos_control_request, text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    bytes_of(&cos_control_request { length, ..*head }, text)
}

/// What @packet asks; nothing where its length is not what it says.
pub fn parse_request(packet: &[u8]) -> Option<(cos_control_request, &[u8])> {
    let (head, text) = parse::<cos_control_request>(packet)?;
    (head.length as usize == text.len()).then_some((head, text))
}

/// As it travels; `length` is that of @text.
pub fn bytes_of_reply(head: &cos_control_reply, text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    bytes_of(&cos_control_reply { length, ..*head }, text)
}

/// What @packet answers; nothing where its length is not what it says.
pub fn parse_reply(packet: &[u8]) -> Option<(cos_control_reply, &[u8])> {
    let (head, text) = parse::<cos_control_reply>(packet)?;
    (head.length as usize == text.len()).then_some((head, text))
}

/// The text of a field that ends in a NUL; nothing where it does not, or is no line of text.
pub fn word_of(field: &[c_char]) -> Option<String> {
    let bytes: Vec<u8> = field.iter().map(|c| c.to_ne_bytes()[0]).collect();
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    (!text.contains(char::is_control)).then(|| text.to_owned())
}

/// Writes @word and a NUL; false where it does not fit.
pub(crate) fn fill(field: &mut [c_char], word: &str) -> bool {
    let fits = word.len() < field.len();
    for (to, from) in field.iter_mut().zip(word.bytes()).take(word.len()) {
        *to = c_char::from_ne_bytes([from]);
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_model::abi;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let mut head = cos_control_request {
            version: abi::COS_CONTROL_VERSION,
            serial: 7,
            ..Default::default()
        };
        assert!(fill(&mut head.preset, "dcs-spin"));
        let packet = bytes_of_request(&head, b"text");
        let (read, text) = parse_request(&packet).unwrap();
        assert_eq!((read.serial, read.length, text), (7, 4, &b"text"[..]));
        assert_eq!(word_of(&read.preset).as_deref(), Some("dcs-spin"));
        for cut in 0..packet.len() {
            assert!(parse_request(&packet[..cut]).is_none(), "{cut}");
        }
    }

    #[test]
    fn a_word_ends_in_a_nul_and_is_a_line() {
        let mut field = [0; 8];
        assert!(!fill(&mut field, "12345678"));
        assert_eq!(word_of(&field), None);
        assert_eq!(word_of(&[b'a' as c_char, b'\n' as c_char, 0]), None);
        assert_eq!(word_of(&[0]).as_deref(), Some(""));
    }
}
