// SPDX-License-Identifier: Apache-2.0
//! Entries of the arrays that BPF and coschedd share, as plain structs.

use crate::{raw, Error};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};

/// What may be copied to and from a map byte by byte.
///
/// # Safety
/// Integers and arrays of them only, without implicit padding, so that every
/// byte is initialised and any bytes are a valid value.
pub unsafe trait Plain {}

// SAFETY: integers with explicit pads; sizes are asserted in abi/kernel.h.
unsafe impl Plain for raw::cos_kernel_config {}
// SAFETY: as above.
unsafe impl Plain for raw::cos_kernel_job {}
// SAFETY: as above.
unsafe impl Plain for raw::cos_kernel_exit {}
// SAFETY: an array of u64.
unsafe impl Plain for [u64; raw::COS_NR_COUNTS as usize] {}

/// Of one job; see `struct cos_kernel_job` in abi/kernel.h.
pub type Ledger = raw::cos_kernel_job;

/// The map @name, if the object has it.
pub fn map<'obj>(object: &'obj Object, name: &'static str) -> Result<libbpf_rs::Map<'obj>, Error> {
    let mut maps = object.maps();
    let found = maps.find(|map| map.name() == name);
    found.ok_or_else(|| Error::Map {
        what: name,
        why: "the BPF object has no such map".into(),
    })
}

/// Entry @at of @name.
pub fn read<T: Plain>(object: &Object, name: &'static str, at: u32) -> Result<T, Error> {
    let wrong = |why: String| Error::Map { what: name, why };
    let bytes = map(object, name)?
        .lookup(&at.to_ne_bytes(), MapFlags::ANY)
        .map_err(|error| wrong(error.to_string()))?
        .ok_or_else(|| wrong(format!("no entry {at}")))?;
    if bytes.len() < size_of::<T>() {
        return Err(wrong(format!("{} bytes", bytes.len())));
    }
    // SAFETY: so many bytes are there, any bytes are a T, and T need not be aligned.
    Ok(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// Overwrites entry @at of @name.
pub fn write<T: Plain>(
    object: &Object,
    name: &'static str,
    at: u32,
    value: &T,
) -> Result<(), Error> {
    // SAFETY: each byte of a Plain is initialised, and it lives during the call.
    let bytes = unsafe {
        std::slice::from_raw_parts(std::ptr::from_ref(value).cast::<u8>(), size_of::<T>())
    };
    map(object, name)?
        .update(&at.to_ne_bytes(), bytes, MapFlags::ANY)
        .map_err(|error| Error::Map {
            what: name,
            why: error.to_string(),
        })
}

/// From now on the programs alone can write @name: no descriptor of it, root's neither, lets
/// anybody update it or map it to write. (One that is read-only by its mode could not be mapped at all.)
pub fn freeze(object: &Object, name: &'static str) -> Result<(), Error> {
    let frozen = MapHandle::try_from(&map(object, name)?).and_then(|map| map.freeze());
    frozen.map_err(|error| Error::Map {
        what: name,
        why: error.to_string(),
    })
}
