// SPDX-License-Identifier: Apache-2.0
//! The job page of one node (abi/page.h), as its owner sees it.
//!
//! A sealed memfd: allocated at once and never to shrink, so that no rank ever
//! faults on it. Every rank may write everywhere in it, so nothing read here is
//! trusted, and what the keeper needs itself (how many slots are given out) it
//! keeps beside the page.

use anyhow::{ensure, Context, Result};
use cosched_model::{abi, page_bytes};
use rustix::{
    fs::{self, FallocateFlags, MemfdFlags, SealFlags},
    io::Errno,
    mm::{mmap, munmap, MapFlags, ProtFlags},
    process::{getrlimit, Resource},
};
use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    ptr::{self, addr_of_mut, NonNull},
    sync::atomic::{AtomicU32, Ordering},
};

/// `struct cos_params` as bytes, compiled from a preset.
pub type ParamBytes = [u8; size_of::<abi::cos_params>()];

/// The page, mapped.
pub struct JobPage {
    fd: OwnedFd,
    base: NonNull<abi::cos_page>,
    nr_slots: u32,
    nr_used: AtomicU32,
}

// SAFETY: the mapping lives as long as the value and is only reached through
// volatile accesses; a torn value is as good as any other hint.
unsafe impl Send for JobPage {}
// SAFETY: as above.
unsafe impl Sync for JobPage {}

impl JobPage {
    /// A page with room for `nr_slots` ranks, at most `COS_MAX_SLOTS`.
    pub fn new(nr_slots: u32, params: &ParamBytes, slice_us: u32) -> Result<Self> {
        ensure!(
            nr_slots <= abi::COS_MAX_SLOTS,
            "a page has at most {} slots",
            abi::COS_MAX_SLOTS
        );
        let bytes = page_bytes(nr_slots);
        let fd = sealed_memory(bytes as u64)?;
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base = unsafe { mmap(ptr::null_mut(), bytes, prot, MapFlags::SHARED, &fd, 0) }
            .context("cannot map the job page")?;
        let base = NonNull::new(base.cast::<abi::cos_page>()).context("mapped at 0")?;
        let page = JobPage {
            fd,
            base,
            nr_slots,
            nr_used: AtomicU32::new(0),
        };
        page.write_header(params, slice_us);
        Ok(page)
    }

    fn write_header(&self, params: &ParamBytes, slice_us: u32) {
        let page = self.base.as_ptr();
        // SAFETY: the mapping holds a whole header, and no one else has it yet.
        unsafe {
            addr_of_mut!((*page).params)
                .cast::<ParamBytes>()
                .write_volatile(*params);
            addr_of_mut!((*page).slice_us).write_volatile(slice_us);
            addr_of_mut!((*page).nr_slots).write_volatile(self.nr_slots);
            addr_of_mut!((*page).version).write_volatile(abi::COS_PAGE_VERSION);
            addr_of_mut!((*page).magic).write_volatile(abi::COS_PAGE_MAGIC);
        }
    }

    /// Gives out the next slot; none where the page is full. Slots are never
    /// used twice: that of a dead rank is kept for the report.
    pub fn join(&self, ask: &abi::cos_ask) -> Option<u32> {
        let slot = self.nr_used.load(Ordering::Relaxed);
        if slot >= self.nr_slots {
            return None;
        }
        let at = self.slot_at(slot);
        // SAFETY: `slot` is below the capacity that was mapped.
        unsafe {
            addr_of_mut!((*at).job).write_volatile(ask.job);
            addr_of_mut!((*at).world_rank).write_volatile(ask.world_rank);
            addr_of_mut!((*at).pid).write_volatile(ask.pid);
            addr_of_mut!((*at).tid).write_volatile(ask.tid);
        }
        self.nr_used.store(slot + 1, Ordering::Release);
        // SAFETY: the header is mapped, and the word is aligned.
        let shown = unsafe { AtomicU32::from_ptr(addr_of_mut!((*self.base.as_ptr()).nr_used)) };
        shown.store(slot + 1, Ordering::Release);
        Some(slot)
    }

    /// Every slot that was given out, as it reads now.
    pub fn slots(&self) -> Vec<abi::cos_slot> {
        (0..self.nr_used.load(Ordering::Acquire))
            // SAFETY: only slots that were mapped are given out.
            .map(|slot| unsafe { self.slot_at(slot).read_volatile() })
            .collect()
    }

    fn slot_at(&self, slot: u32) -> *mut abi::cos_slot {
        // SAFETY: callers pass a slot below `nr_slots`; the slots follow the header.
        unsafe {
            self.base
                .as_ptr()
                .add(1)
                .cast::<abi::cos_slot>()
                .add(slot as usize)
        }
    }
}

impl AsFd for JobPage {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for JobPage {
    fn drop(&mut self) {
        // SAFETY: mapped in new() with this size; no reference into it is left.
        // It can only fail for a range that is not mapped.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), page_bytes(self.nr_slots)) };
    }
}

fn sealed_memory(bytes: u64) -> Result<OwnedFd> {
    // Beyond this limit the kernel kills with SIGXFSZ instead of refusing.
    let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    ensure!(
        bytes <= limit,
        "the file size limit (ulimit -f) is below the {bytes} bytes of a page"
    );
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = match fs::memfd_create("cosched-page", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => fs::memfd_create("cosched-page", flags), // before Linux 6.3
        other => other,
    }
    .context("cannot create a memfd for the job page")?;
    fs::ftruncate(&fd, bytes)
        .and_then(|()| fs::fallocate(&fd, FallocateFlags::empty(), 0, bytes))
        .with_context(|| format!("cannot allocate the {bytes} bytes of the job page"))?;
    fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
        .context("cannot seal the job page")?;
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_PARAMS: ParamBytes = [0; size_of::<abi::cos_params>()];

    fn ask(world_rank: u32) -> abi::cos_ask {
        abi::cos_ask {
            job: 7,
            world_rank,
            pid: 1,
            tid: 1,
            ..Default::default()
        }
    }

    #[test]
    fn gives_out_each_slot_once_and_then_is_full() {
        let page = JobPage::new(2, &NO_PARAMS, 100).unwrap();
        assert_eq!(
            [page.join(&ask(0)), page.join(&ask(1)), page.join(&ask(2))],
            [Some(0), Some(1), None]
        );
        let ranks: Vec<u32> = page.slots().iter().map(|slot| slot.world_rank).collect();
        assert_eq!(ranks, [0, 1]);
    }

    #[test]
    fn no_one_can_shrink_it_or_lift_its_seals() {
        let page = JobPage::new(1, &NO_PARAMS, 0).unwrap();
        assert_eq!(fs::ftruncate(&page, 0), Err(Errno::PERM));
        assert_eq!(fs::ftruncate(&page, 1 << 30), Err(Errno::PERM));
        assert_eq!(
            fs::fcntl_add_seals(&page, SealFlags::WRITE),
            Err(Errno::PERM)
        );
    }
}
