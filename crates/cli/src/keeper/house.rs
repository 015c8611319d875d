// SPDX-License-Identifier: Apache-2.0
//! The directories that keepers live in.
//!
//! Each is 0700, of one user, and holds two names: `keeper.sock` and `lock`,
//! which its keeper holds locked as long as it lives. `cosched run` makes one
//! with a random name; the keeper of another node one whose name every rank of
//! the job can work out (shim and `cosched keep --print-path` agree on it):
//!
//! ```text
//! BASE/cosched-UID-HASH/keeper.sock
//!   BASE  $XDG_RUNTIME_DIR where this user owns it and may write it, else /tmp
//!   HASH  FNV-1a (64 bits, 16 lower-case digits) over the bytes of COSCHED_KEEPER
//! ```
//!
//! A killed keeper leaves its directory behind; sweep() removes what is ours
//! and no longer locked.

use anyhow::{ensure, Context, Result};
use cosched_model::fnv1a;
use rustix::{
    fs::{access, flock, Access, FlockOperation},
    process::geteuid,
};
use std::{
    env,
    ffi::OsStr,
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    time::Duration,
};

/// The address of a socket holds 107 bytes; `/cosched-XXXXXX/keeper.sock` takes 27.
const MAX_BASE_BYTES: usize = 80;
const PREFIX: &str = "cosched-";
const SOCKET: &str = "keeper.sock";
const LOCK: &str = "lock";
/// A younger directory may belong to a keeper that has not locked it yet.
const SWEEP_AGE: Duration = Duration::from_secs(60);

/// A keeper's own directory; removed with it.
pub struct House {
    path: PathBuf,
    _lock: File,
}

impl House {
    /// One with a random name, for the keeper of `cosched run`.
    pub fn build() -> Result<House> {
        let short = Some(base()).filter(|base| base.as_os_str().len() <= MAX_BASE_BYTES);
        let base = short.unwrap_or_else(|| PathBuf::from("/tmp"));
        let path = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(6)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&base)
            .with_context(|| format!("cannot create a directory in {}", base.display()))?
            .keep();
        let lock = open_lock(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(House { path, _lock: lock })
    }

    /// The one that ranks find by themselves; none where another keeper has it.
    pub fn claim(path: &Path) -> Result<Option<House>> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if !path.is_dir() => {
                return Err(error).with_context(|| format!("cannot create {}", path.display()))
            }
            _ => {}
        }
        ensure!(
            is_private(path),
            "{} is not a private directory of this user",
            path.display()
        );
        let lock = open_lock(path)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        // Its last keeper may have removed it between our open and our lock.
        let shown = fs::symlink_metadata(path.join(LOCK)).map(|m| m.ino()).ok();
        ensure!(
            shown == Some(lock.metadata()?.ino()),
            "{} is being removed",
            path.display()
        );
        let house = House {
            path: path.to_owned(),
            _lock: lock,
        };
        match fs::remove_file(house.socket()) {
            Err(error) if house.socket().exists() => {
                Err(error).context("cannot remove a dead socket")
            }
            _ => Ok(Some(house)),
        }
    }

    /// Where its keeper listens.
    pub fn socket(&self) -> PathBuf {
        self.path.join(SOCKET)
    }
}

impl Drop for House {
    fn drop(&mut self) {
        empty(&self.path);
    }
}

/// Where the keeper of this node listens for the ranks of a job that was started elsewhere.
pub fn shared_socket(keeper: &OsStr) -> PathBuf {
    let name = format!(
        "{PREFIX}{}-{:016x}",
        geteuid().as_raw(),
        fnv1a(keeper.as_bytes())
    );
    base().join(name).join(SOCKET)
}

/// Removes the directories of this user whose keepers are dead.
pub fn sweep() {
    for base in [base(), PathBuf::from("/tmp")] {
        let Ok(entries) = fs::read_dir(base) else {
            continue;
        };
        for entry in entries
            .flatten()
            .filter(|e| is_name_of_ours(&e.file_name()))
        {
            if is_abandoned(&entry.path()) {
                empty(&entry.path());
            }
        }
    }
}

fn is_name_of_ours(name: &OsStr) -> bool {
    let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
        return false;
    };
    let shared = format!("{}-", geteuid().as_raw());
    let (part, len) = rest
        .strip_prefix(&shared)
        .map_or((rest, 6), |hash| (hash, 16));
    part.len() == len && part.bytes().all(|b| b.is_ascii_alphanumeric())
}

fn is_abandoned(path: &Path) -> bool {
    let is_socket =
        || fs::symlink_metadata(path.join(SOCKET)).is_ok_and(|m| m.file_type().is_socket());
    let is_old = || age(path).is_some_and(|age| age > SWEEP_AGE);
    let is_free = || {
        File::open(path.join(LOCK))
            .is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok())
    };
    is_private(path) && is_old() && is_socket() && is_free()
}

fn age(path: &Path) -> Option<Duration> {
    fs::symlink_metadata(path)
        .ok()?
        .modified()
        .ok()?
        .elapsed()
        .ok()
}

fn is_private(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|m| {
        m.is_dir() && m.uid() == geteuid().as_raw() && m.permissions().mode() & 0o777 == 0o700
    })
}

fn open_lock(dir: &Path) -> Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(dir.join(LOCK))
        .with_context(|| format!("cannot open {}", dir.join(LOCK).display()))
}

/// Only the two names that a keeper makes; anything else keeps the directory.
/// Whatever fails here is left for the next sweep.
fn empty(path: &Path) {
    let _ = fs::remove_file(path.join(SOCKET));
    let _ = fs::remove_file(path.join(LOCK));
    let _ = fs::remove_dir(path);
}

fn base() -> PathBuf {
    let is_ours = |dir: &PathBuf| {
        fs::metadata(dir).is_ok_and(|m| m.uid() == geteuid().as_raw())
            && access(dir, Access::WRITE_OK).is_ok()
    };
    let runtime = env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(is_ours);
    runtime.unwrap_or_else(|| PathBuf::from("/tmp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_one_keeper_at_a_time_and_takes_over_from_a_dead_one() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("cosched-0-0123456789abcdef");
        let house = House::claim(&path).unwrap().unwrap();
        assert!(House::claim(&path).unwrap().is_none());
        fs::write(house.socket(), "").unwrap();
        std::mem::forget(house); // killed: nothing is cleaned up, only the lock goes
        fs::remove_file(path.join(LOCK)).unwrap();
        let heir = House::claim(&path).unwrap().unwrap();
        assert!(!heir.socket().exists());
        drop(heir);
        assert!(!path.exists());
    }

    #[test]
    fn refuses_a_directory_that_others_may_enter() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("open");
        DirBuilder::new().mode(0o755).create(&path).unwrap();
        assert!(House::claim(&path).is_err());
    }

    #[test]
    fn sweeps_only_names_of_its_own() {
        let uid = geteuid().as_raw();
        for (name, ours) in [
            ("cosched-aB3xYz".to_owned(), true),
            (format!("cosched-{uid}-0123456789abcdef"), true),
            (format!("cosched-{}-0123456789abcdef", uid + 1), false),
            ("cosched-results".to_owned(), false),
            ("cosched-".to_owned(), false),
        ] {
            assert_eq!(is_name_of_ours(OsStr::new(&name)), ours, "{name}");
        }
    }

    #[test]
    fn leaves_a_living_keeper_alone() {
        let house = House::build().unwrap();
        sweep();
        assert!(house.path.is_dir());
    }
}
