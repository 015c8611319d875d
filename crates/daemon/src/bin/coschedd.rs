// SPDX-License-Identifier: Apache-2.0
//! coschedd: attaches the kernel body, listens, and detaches when it ends.
//!
//! Order matters: what this machine lacks is said before anything is touched, the
//! socket is taken before programs are attached, so that two daemons never both
//! do, and `ready` is told when both are there. Exit code: 0 told to end, 1 the
//! kernel took the scheduler away, 2 configuration, 3 this machine cannot.

use clap::Parser;
use cosched_daemon::{attach, kernel::Kernel, lack, listen, Config, Doors, End, Server, Sources};
use rustix::pipe::{pipe_with, PipeFlags};
use sd_notify::NotifyState;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    low_level::pipe,
};
use std::{
    fs,
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::ExitCode,
};
use tracing::{error, info};

/// The daemon of cosched: jobs run at the same time at their fair share
///
/// It needs root, or CAP_BPF and CAP_PERFMON. Where the kernel has no sched_ext it
/// sees and counts, and changes nothing. SIGHUP reads the configuration again.
#[derive(Parser)]
#[command(name = "coschedd", version, max_term_width = 100)]
#[command(after_help = "\
A flag goes before the environment, that before the file, that before the default;
`coschedd --check-config` prints each value with its origin and the keys for --set.
Exit code: 0 told to end, 1 the kernel took the scheduler away, 2 usage or
configuration, 3 this machine cannot.")]
struct Args {
    /// The configuration [default: /etc/cosched/coschedd.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set one value, e.g. scheduler.slice=2ms
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// As --set control.socket=PATH
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// As --set scheduler.observe_only=true
    #[arg(long)]
    observe_only: bool,
    /// Print the configuration with the origin of each value, and end
    #[arg(long)]
    check_config: bool,
}

/// One line and an exit code.
struct Fault(u8, String);

fn cannot(why: impl std::fmt::Display) -> Fault {
    Fault(3, why.to_string())
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .init();
    match run(Args::parse()) {
        Ok(code) => code,
        Err(Fault(code, line)) => {
            eprintln!("coschedd: {line}");
            ExitCode::from(code)
        }
    }
}

fn run(args: Args) -> Result<ExitCode, Fault> {
    let check = args.check_config;
    let sources = sources(args);
    let config = Config::read(&sources).map_err(|error| Fault(2, error.to_string()))?;
    if check {
        return print(&config);
    }
    if let Some(lack) = lack() {
        return Err(cannot(lack));
    }
    let (stop, reload) = signals().map_err(cannot)?;
    let socket = config.socket();
    let listener = listen(&socket).map_err(cannot)?;
    let doors = Doors {
        listener,
        stop,
        reload,
    };
    let end = serve(doors, sources, config);
    // A socket that stays is replaced by the next one, so a failure is no harm.
    let _ = fs::remove_file(&socket);
    end
}

fn serve(doors: Doors, sources: Sources, config: Config) -> Result<ExitCode, Fault> {
    let body = attach(&config.scheduling(), config.observes_only()).map_err(cannot)?;
    let socket = config.socket();
    let mode = body.mode().word();
    let why = body
        .why_observe()
        .map(|why| format!(": {why}"))
        .unwrap_or_default();
    let line = format!("{mode}{why}");
    info!(
        "coschedd {} on {}: {line}",
        env!("CARGO_PKG_VERSION"),
        socket.display()
    );
    let mut server = Server::new(doors, sources, config, body);
    let _ = sd_notify::notify(&[NotifyState::Ready, NotifyState::Status(&line)]);
    let end = server.serve().map_err(cannot);
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    drop(server);
    match end? {
        End::Told => info!("told to end; detached"),
        End::Ejected(ejection) if ejection.on_request => {
            info!(
                "the scheduler was taken away on request: {}; ending",
                ejection.why
            );
        }
        End::Ejected(ejection) => {
            error!(
                "the kernel took the scheduler away: {}; stock scheduling is back",
                ejection.why
            );
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn sources(args: Args) -> Sources {
    let mut flags = args.set;
    flags.extend(
        args.socket
            .map(|path| format!("control.socket={}", absolute(&path).display())),
    );
    if args.observe_only {
        flags.push("scheduler.observe_only=true".to_owned());
    }
    let environment = std::env::vars_os();
    let environment = environment
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Sources {
        file: args.config,
        flags,
        environment: environment.collect(),
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn print(config: &Config) -> Result<ExitCode, Fault> {
    let mut out = io::stdout().lock();
    for setting in config.shown() {
        let (key, value, origin) = (setting.key, setting.value, setting.origin);
        writeln!(out, "{key} = {value}    # {origin}; {}", setting.meaning).map_err(cannot)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Readable when it is time to end, and when the configuration is to be read again.
fn signals() -> io::Result<(OwnedFd, OwnedFd)> {
    let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let (reloads, reload) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    pipe::register(SIGTERM, stop.try_clone()?)?;
    pipe::register(SIGINT, stop)?;
    pipe::register(SIGHUP, reload)?;
    Ok((stopped, reloads))
}
