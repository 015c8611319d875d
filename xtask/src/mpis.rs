// SPDX-License-Identifier: Apache-2.0
//! Mpis: newer MPIs from newer Debian suites, unpacked beside the system.
//!
//! Every dependency is fetched (suite.rs), libc6 too. Nothing is installed and root
//! is not needed: packages are unpacked below target/mpis/SUITE/root, and programs in
//! target/mpis/SUITE/bin start them with that suite's own dynamic loader. A
//! program that `mpicc.*` from there builds names that loader itself, so it runs
//! as any other. `cargo xtask build` builds the workloads for what it finds there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::suite::Suite;
use crate::tree::{output, Missing, Tree};

/// Programs of both MPIs that start others, or are started by them.
const LAUNCHERS: [&str; 6] = [
    "mpirun.openmpi",
    "prterun",
    "prte",
    "prted",
    "mpirun.mpich",
    "hydra_pmi_proxy",
];

/// With all that they depend on, and headers without what those depend on.
const WHOLE: [&str; 2] = ["openmpi-bin", "mpich"];
const HEADERS: [&str; 2] = ["libopenmpi-dev", "libmpich-dev"];

/// Which suites, unless told otherwise.
pub const SUITES: [&str; 2] = ["trixie", "sid"];

/// Fetches and unpacks each suite that is not there yet.
pub fn all(tree: &Tree, suites: &[String]) -> Result<()> {
    for suite in suites {
        let dir = tree.target.join("mpis").join(suite);
        if compilers(&dir).is_empty() {
            fetch(&dir, suite)?;
            wrap(&dir)?;
        }
        eprintln!("mpis: {suite}: {}", dir.join("bin").display());
    }
    Ok(())
}

/// The compilers of one unpacked suite, as path and MPI's name; made last, so
/// that they stand for the whole.
pub fn compilers(suite: &Path) -> Vec<(PathBuf, &'static str)> {
    let name = |mpi| (suite.join("bin").join(format!("mpicc.{mpi}")), mpi);
    let all = ["openmpi", "mpich"].map(name);
    all.into_iter().filter(|(path, _)| path.is_file()).collect()
}

fn fetch(dir: &Path, name: &str) -> Result<()> {
    let suite = Suite::open(name, &dir.join("apt"))?;
    suite
        .install(&WHOLE)
        .and_then(|()| suite.download(&HEADERS))
        .map_err(|why| {
            Missing(format!(
                "cannot fetch the MPIs of {name} from {}: {why:#}",
                suite.mirror
            ))
        })?;
    suite.unpack(&dir.join("root"))?;
    suite.close()
}

/// What the programs in bin/ need to know of an unpacked suite.
struct Unpacked {
    bin: PathBuf,
    usr: PathBuf,
    /// usr/lib/MULTIARCH.
    lib: PathBuf,
    loader: PathBuf,
    /// Directories of libraries, joined by colons.
    search: String,
}

fn wrap(dir: &Path) -> Result<()> {
    let (bin, usr) = (dir.join("bin"), dir.join("root/usr"));
    let multiarch = output(Command::new("gcc").arg("-print-multiarch"))?;
    let lib = usr.join("lib").join(multiarch.trim());
    let loader = loader(&lib)?;
    // prrte4 and pmix2/lib: private libraries of Open MPI's launcher.
    let search = ["", "/openmpi/lib", "/prrte4", "/pmix2/lib"];
    let search = search
        .map(|sub| format!("{}{sub}", lib.display()))
        .join(":");
    fs::create_dir_all(&bin).with_context(|| format!("cannot make {}", bin.display()))?;
    let unpacked = Unpacked {
        bin,
        usr,
        lib,
        loader,
        search,
    };
    LAUNCHERS
        .into_iter()
        .try_for_each(|name| unpacked.wrap_launcher(name))?;
    unpacked.wrap_compiler("openmpi", &["mpi", "open_mpi"])?;
    unpacked.wrap_compiler("mpich", &["mpich"])
}

impl Unpacked {
    /// bin/NAME: the suite's NAME under the suite's loader.
    fn wrap_launcher(&self, name: &str) -> Result<()> {
        let (bin, usr) = (self.bin.display(), self.usr.display());
        let (loader, search) = (self.loader.display(), &self.search);
        let text = format!(
            "export OPAL_PREFIX='{usr}' PRTE_PREFIX='{usr}' PMIX_PREFIX='{usr}'\n\
             export OMPI_PRTERUN='{bin}/prterun'\n\
             exec '{loader}' --library-path '{search}' --argv0 '{bin}/{name}' \
             '{usr}/bin/{name}' \"$@\"\n"
        );
        program(&self.bin.join(name), &text)
    }

    /// bin/mpicc.MPI, linking those of `libs` that the suite has. The linker sees
    /// this system's older libc; the loader finds the newer one.
    fn wrap_compiler(&self, mpi: &str, libs: &[&str]) -> Result<()> {
        let at = self.lib.join(mpi);
        let present = libs
            .iter()
            .filter(|name| at.join(format!("lib/lib{name}.so")).exists());
        let libs: String = present.map(|name| format!(" -l{name}")).collect();
        let (at, loader, search) = (at.display(), self.loader.display(), &self.search);
        let text = format!(
            "exec cc -I'{at}/include' \"$@\" -L'{at}/lib'{libs} -Wl,--allow-shlib-undefined \
             -Wl,--dynamic-linker='{loader}' -Wl,--disable-new-dtags -Wl,-rpath,'{search}'\n"
        );
        program(&self.bin.join(format!("mpicc.{mpi}")), &text)
    }
}

fn loader(lib: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(lib).with_context(|| format!("cannot list {}", lib.display()))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let found = paths.find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("ld-linux") && name.contains(".so.")
    });
    found.with_context(|| format!("no dynamic loader in {}", lib.display()))
}

fn program(path: &Path, text: &str) -> Result<()> {
    fs::write(path, format!("#!/bin/sh\n{text}"))
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)))
        .with_context(|| format!("cannot write {}", path.display()))
}
