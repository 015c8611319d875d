// SPDX-License-Identifier: Apache-2.0
//! What a decision costs in the kernel: each function of the contract is a BPF program
//! (tests/bpf/decide.bpf.c), the kernel takes it, and the longest way through the
//! instructions that the kernel then has is counted. Without a loop no event can cost
//! more; a loop is a failure here.

use cosched_tests::{bpf_object, need, superuser, tool};
use libbpf_rs::{
    query::{ProgInfoIter, ProgInfoQueryOptions},
    Object, ObjectBuilder, Program,
};
use std::os::fd::AsFd;

/// Promised of each event.
const MAX_INSTRUCTIONS: u32 = 300;

/// `struct bpf_insn`, as far as it tells where to go on.
#[derive(Clone, Copy, Debug)]
struct Insn {
    code: u8,
    source: u8,
    offset: i16,
    immediate: i32,
}

impl Insn {
    fn from_bytes(bytes: &[u8]) -> Self {
        let array = |at| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        Insn {
            code: bytes[0],
            source: bytes[1] >> 4,
            offset: i16::from_ne_bytes([bytes[2], bytes[3]]),
            immediate: i32::from_ne_bytes(array(4)),
        }
    }

    fn target(self, at: usize, distance: i32) -> usize {
        let target = at as i64 + 1 + i64::from(distance);
        usize::try_from(target).expect("the kernel checked it")
    }

    /// Where the program may be after this one, and the function that it calls.
    fn next(self, at: usize) -> (Vec<usize>, Option<usize>) {
        const JUMP: u8 = 0x05;
        const JUMP_32: u8 = 0x06;
        const WIDE: u8 = 0x18;
        const CALLS_OWN: u8 = 1;
        let jump = || self.target(at, i32::from(self.offset));
        match (self.code & 0x07, self.code & 0xf0) {
            _ if self.code == WIDE => (vec![at + 2], None),
            (JUMP, 0x90) => (vec![], None),
            (JUMP, 0x80) if self.source == CALLS_OWN => {
                (vec![at + 1], Some(self.target(at, self.immediate)))
            }
            (JUMP, 0x80) => (vec![at + 1], None),
            (JUMP, 0x00) => (vec![jump()], None),
            (JUMP_32, 0x00) => (vec![self.target(at, self.immediate)], None),
            (JUMP | JUMP_32, _) => (vec![at + 1, jump()], None),
            _ => (vec![at + 1], None),
        }
    }
}

/// How far an instruction has been followed.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Unknown,
    Open,
    Longest(u32),
}

/// The most instructions from @at to an exit; nothing where a way comes back to itself.
fn longest(program: &[Insn], at: usize, ways: &mut [Way]) -> Option<u32> {
    match ways[at] {
        Way::Longest(length) => return Some(length),
        Way::Open => return None,
        Way::Unknown => ways[at] = Way::Open,
    }
    let (nexts, called) = program[at].next(at);
    let mut length = 0;
    for next in nexts {
        length = length.max(longest(program, next, ways)?);
    }
    if let Some(called) = called {
        length += longest(program, called, ways)?;
    }
    ways[at] = Way::Longest(length + 1);
    Some(length + 1)
}

fn longest_way(program: &[Insn]) -> Option<u32> {
    longest(program, 0, &mut vec![Way::Unknown; program.len()])
}

/// As the kernel has it: with its own guards of divisions and look-ups.
fn in_the_kernel(program: &Program) -> Vec<Insn> {
    // Names may be those of another test's programs.
    let id = Program::id_from_fd(program.as_fd()).expect("it is loaded");
    let wanted = ProgInfoQueryOptions::default().include_xlated_prog_insns(true);
    let mut all = ProgInfoIter::with_query_opts(wanted);
    let info = all.find(|info| info.id == id).expect("it is loaded");
    let insns = info.xlated_prog_insns.chunks_exact(8);
    insns.map(Insn::from_bytes).collect()
}

fn load(clang: &str) -> Object {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let object = bpf_object(folder.path(), clang, "decide.bpf.c", &[]);
    let open = ObjectBuilder::default().open_file(object);
    open.and_then(|open| open.load())
        .expect("the kernel takes it")
}

#[test]
fn no_event_costs_more_than_promised() {
    let test = "root_instructions::no_event_costs_more_than_promised";
    let (Some(()), Some(clang)) = (need(test, superuser()), need(test, tool("clang"))) else {
        return;
    };
    let object = load(&clang);
    let mut asked = Vec::new();
    for program in object.progs() {
        let name = program.name().to_string_lossy().into_owned();
        let cost = longest_way(&in_the_kernel(&program));
        println!("{name}: {cost:?} instructions at most");
        let cost = cost.unwrap_or_else(|| panic!("{name} has a loop"));
        assert!(cost <= MAX_INSTRUCTIONS, "{name}: {cost}");
        asked.push(name);
    }
    for (decision, _) in cosched_policy::native::DECISIONS {
        assert!(asked.iter().any(|name| name == decision), "{decision}");
    }
}

/// That the longest way is found, and a loop is.
#[test]
fn the_count_follows_every_way() {
    let insn = |code, offset, immediate| Insn {
        code,
        source: u8::from(code == 0x85),
        offset,
        immediate,
    };
    let (plain, exit) = (insn(0xb7, 0, 0), insn(0x95, 0, 0));
    let if_skip = |n| insn(0x15, n, 0);
    assert_eq!(longest_way(&[plain, exit]), Some(2));
    assert_eq!(longest_way(&[if_skip(1), plain, exit]), Some(3));
    assert_eq!(longest_way(&[insn(0x18, 0, 0), plain, exit]), Some(2));
    assert_eq!(longest_way(&[insn(0x05, 1, 0), plain, exit]), Some(2));
    let calls_next_but_one = insn(0x85, 0, 1);
    let program = [calls_next_but_one, exit, plain, plain, exit];
    assert_eq!(longest_way(&program), Some(5));
    assert_eq!(longest_way(&[plain, if_skip(-2), exit]), None);
}
