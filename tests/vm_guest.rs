// SPDX-License-Identifier: Apache-2.0
//! The guest keeps what crates/vm promises: another kernel with sched_ext on the
//! host's files, and all that a job says, writes and ends with comes back. One boot
//! answers most questions; the others are ends that take the guest with them.

use std::fs;
use std::time::{Duration, Instant};

use cosched_tests::{guest, need, root};
use cosched_vm::{Error, Job};

/// Prints `name value` lines; what it leaves running or writes must not matter.
const QUESTIONS: &str = r#"
echo release $(uname -r)
echo sched_ext $(cat /sys/kernel/sched_ext/state)
echo cpus $(nproc)
echo user $(id -u)
echo dir $(pwd)
echo processes $(readlink /proc/[0-9]*/exe | wc -l)
echo mounts $(for type in cgroup2 bpf tracefs debugfs devpts; do cut -d" " -f3 /proc/mounts | grep -xm1 $type; done)
echo interfaces $(ls /sys/class/net)
echo loopback $( (: >/dev/tcp/guest/9) 2>&1 | grep -om1 refused)
modprobe veth && ip link add near type veth peer name far && echo veth $(ls -d /sys/class/net/near)
test -s /boot/config-$(uname -r) && echo config there
touch "$MARK" && echo mark written
echo back >"$COSCHED_EXCHANGE/answer"
cp "$COSCHED_EXCHANGE/question" "$COSCHED_EXCHANGE/copy"
echo complaint >/dev/stderr
setsid sleep 1000 &
seq 100000
exit 7
"#;

fn value<'a>(said: &'a str, name: &str) -> &'a str {
    let lines = said.lines().filter_map(|line| line.split_once(' '));
    let mut values = lines.filter(|(key, _)| *key == name);
    values.next().map_or("", |(_, value)| value)
}

#[test]
fn a_guest_is_another_kernel_on_the_same_files() {
    let Some(guest) = need("a_guest_is_another_kernel_on_the_same_files", guest()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let exchange = folder.path().join("it's an exchange, odd=true");
    fs::create_dir(&exchange).unwrap();
    fs::write(exchange.join("question"), [0, 255, 10]).unwrap();
    let mark = folder.path().join("mark");
    let job = Job::new("bash").args(["-c", QUESTIONS]);
    let job = job
        .env("MARK", &mark)
        .exchange(&exchange)
        .dir(root().canonicalize().unwrap());
    let mut live = Vec::new();
    let outcome = guest
        .run_into(
            &job.timeout(Duration::from_secs(180)),
            &mut live,
            std::io::sink(),
        )
        .unwrap();
    let said = String::from_utf8(outcome.stdout).unwrap();
    let host = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    // init, two that copy output, and what asks.
    let processes: usize = value(&said, "processes").parse().unwrap();
    assert!(processes <= 8, "{processes} processes in a quiet guest");
    assert_eq!(outcome.code, 7, "{said}{}", outcome.console);
    assert_eq!(said.as_bytes(), live);
    assert_eq!(String::from_utf8_lossy(&outcome.stderr), "complaint\n");
    assert_ne!(value(&said, "release"), host.trim());
    assert_eq!(value(&said, "sched_ext"), "disabled");
    assert_eq!(value(&said, "cpus"), "2");
    assert_eq!(value(&said, "user"), "0");
    assert_eq!(
        value(&said, "dir"),
        root().canonicalize().unwrap().to_str().unwrap()
    );
    assert_eq!(value(&said, "mounts"), "cgroup2 bpf tracefs debugfs devpts");
    assert_eq!(value(&said, "interfaces"), "lo");
    assert_eq!(value(&said, "loopback"), "refused");
    assert_eq!(value(&said, "veth"), "/sys/class/net/near");
    assert_eq!(value(&said, "config"), "there");
    assert_eq!(value(&said, "mark"), "written");
    assert!(!mark.exists(), "the guest wrote to the host");
    assert!(said.ends_with("\n99999\n100000\n"), "output was cut off");
    assert_eq!(fs::read(exchange.join("answer")).unwrap(), b"back\n");
    assert_eq!(fs::read(exchange.join("copy")).unwrap(), [0, 255, 10]);
}

#[test]
fn a_command_that_hangs_is_ended() {
    let Some(guest) = need("a_command_that_hangs_is_ended", guest()) else {
        return;
    };
    let begun = Instant::now();
    let job = Job::new("sleep").arg("1000").cpus(1);
    let error = guest
        .run(&job.timeout(Duration::from_secs(12)))
        .unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_panic_is_an_error_that_says_so() {
    let Some(guest) = need("a_panic_is_an_error_that_says_so", guest()) else {
        return;
    };
    let job = Job::new("sh").args(["-c", "echo c >/proc/sysrq-trigger"]);
    let error = guest.run(&job).unwrap_err();
    assert!(matches!(error, Error::Died { .. }), "{error}");
    assert!(error.to_string().contains("Kernel panic"), "{error}");
}
