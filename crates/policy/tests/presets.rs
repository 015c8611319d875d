// SPDX-License-Identifier: Apache-2.0
//! What a preset file may say, and what it is told when it says anything else.

use cosched_policy::{built_in, load, raw, resolve, table::QUESTIONS, Body, Preset};
use proptest::prelude::*;

const SHIM: &[Body] = &[Body::Shim];

const GOOD: &str = r#"
name = "mine"
about = "a preset of one's own"
source = "this test"
wait = { answer = "spin_block", spin = "50us" }
arrival = "none"
fairness = "none"
periodic = "none"
order = "local"
quantum = "local"
allocation = "shared"
"#;

/// What reading GOOD says after `from` was replaced by `to`.
fn said(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    let text = GOOD.replacen(from, to, 1);
    let outcome = Preset::parse("mine.toml", &text);
    outcome.expect_err("it must be refused").to_string()
}

fn refused(word: &str) -> String {
    load(word).expect_err("it must be refused").to_string()
}

#[test]
fn every_file_in_presets_is_built_in_under_its_name() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../presets");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    let presets = built_in().unwrap();
    let mut names: Vec<String> = presets.iter().map(|p| format!("{}.toml", p.name)).collect();
    files.sort();
    names.sort();
    assert_eq!(names, files);
    for preset in presets {
        assert_eq!(load(&preset.name).unwrap(), preset);
    }
}

#[test]
fn every_preset_runs_in_the_simulator_and_those_of_wait_on_the_shim_alone() {
    let mut on_the_shim = Vec::new();
    for preset in built_in().unwrap() {
        let resolved = resolve(&preset, &[Body::Sim]).unwrap();
        for taken in resolved.taken {
            assert!(matches!(taken.owner, Body::Sim | Body::Local), "{taken:?}");
        }
        match resolve(&preset, SHIM) {
            Ok(_) => on_the_shim.push(preset.name),
            Err(gap) => assert!(
                gap.to_string().contains(": no present body answers "),
                "{gap}"
            ),
        }
    }
    let alone = [
        "auto",
        "uncoordinated",
        "local-block",
        "implicit",
        "spin-yield",
    ];
    assert_eq!(on_the_shim, alone);
}

#[test]
fn presets_of_dynamic_coscheduling_need_the_kernel_body_alone() {
    for preset in built_in().unwrap() {
        if preset.name.starts_with("dcs-") {
            resolve(&preset, &[Body::Shim, Body::Kernel]).unwrap();
            assert!(
                resolve(&preset, &[Body::Kernel]).is_err(),
                "{}",
                preset.name
            );
        }
    }
}

#[test]
fn dcs_spin_compiles_to_equation_1_of_the_paper() {
    let preset = load("dcs-spin").unwrap();
    let params = resolve(&preset, &[Body::Sim]).unwrap().params().0;
    let [wait, arrival, fairness, ..] = params.answer;
    assert_eq!(wait, raw::COS_WAIT_SPIN);
    assert_eq!(arrival, raw::COS_ARRIVAL_BOOST);
    assert_eq!(fairness, raw::COS_FAIRNESS_QUEUE_CYCLE);
    assert_eq!(params.arg[2], [u64::MAX, 0, 20_000_000, 0, 0, 0]);
}

#[test]
fn a_limit_is_never_left_to_the_local_scheduler() {
    let limited = GOOD.replace("\"shared\"", "{ answer = \"shared\", max_mpl = 4 }");
    let preset = Preset::parse("mine", &limited).unwrap();
    let line = resolve(&preset, SHIM).unwrap_err().to_string();
    assert!(
        line.starts_with("mine: allocation: no present body answers shared: it is the daemon's"),
        "{line}"
    );
    resolve(&preset, &[Body::Shim, Body::Daemon]).unwrap();
}

#[test]
fn implicit_compiles_to_the_bytes_of_the_paper() {
    let params = resolve(&load("implicit").unwrap(), SHIM).unwrap().params();
    assert_eq!(params.0.abi, raw::COS_POLICY_ABI);
    assert_eq!(
        params.0.answer,
        [raw::COS_WAIT_SPIN_BLOCK, 0, 0, 0, 0, 0, 0, 0]
    );
    assert_eq!(params.0.arg[0], [1_600_000, 0, 0, 0, 0, 0]);
    assert_eq!(params.0.arg[1..], [[0; 6]; 7]);
}

#[test]
fn auto_takes_its_other_answer_where_a_body_is_missing() {
    let auto = resolve(&load("auto").unwrap(), SHIM).unwrap();
    let [wait, arrival, ..] = auto.taken;
    assert_eq!(
        (wait.owner, wait.choice.answer.word),
        (Body::Shim, "adaptive")
    );
    assert_eq!(
        (arrival.owner, arrival.choice.answer.word),
        (Body::Local, "none")
    );
    assert_eq!(arrival.instead_of.unwrap().answer.word, "boost");
    assert_eq!(auto.params().0.answer[0], raw::COS_WAIT_ADAPTIVE);
}

#[test]
fn tables_and_inline_tables_mean_the_same() {
    let inline = r#"wait = { answer = "spin_block", spin = "50us" }"#;
    let table = GOOD.replace(inline, "") + "[wait]\nanswer = 'spin_block'\nspin = '50us'\n";
    assert_eq!(Preset::parse("a", &table), Preset::parse("b", GOOD));
}

#[test]
fn a_misspelt_key_is_refused_with_the_right_one() {
    let line = said("periodic =", "periodc =");
    assert!(
        line.starts_with("mine.toml: periodc: unknown key: did you mean \"periodic\"?"),
        "{line}"
    );
    let line = said("spin = ", "spni = ");
    assert!(
        line.starts_with("mine.toml: wait.spni: unknown key: did you mean \"spin\"?"),
        "{line}"
    );
    let line = said("\"none\"", "{ prefer = 'boost', esle = 'none' }");
    assert!(
        line.starts_with("mine.toml: arrival.esle: unknown key: did you mean \"else\"?"),
        "{line}"
    );
}

#[test]
fn an_unknown_answer_lists_the_known_ones() {
    let line = said("\"spin_block\"", "\"spinblock\"");
    assert_eq!(
        line,
        "mine.toml: wait: unknown answer \"spinblock\": did you mean \"spin_block\"? \
         known: spin, block, spin_block, spin_yield, adaptive"
    );
}

#[test]
fn a_value_without_its_unit_or_out_of_range_is_refused() {
    for bare in ["1600", "\"1600\""] {
        let line = said("\"50us\"", bare);
        assert_eq!(
            line,
            "mine.toml: wait.spin: 1600 has no unit: write \"1600us\" if microseconds are meant"
        );
    }
    let line = said("\"50us\"", "\"2h\"");
    assert!(
        line.contains("wait.spin: \"2h\" is out of range: write at most \"3600s\""),
        "{line}"
    );
    let line = said("\"50us\"", "[]");
    assert!(
        line.contains("wait.spin: array where a duration belongs"),
        "{line}"
    );
}

#[test]
fn what_is_missing_is_named() {
    assert!(
        said("order = \"local\"", "").contains("order: not answered: a preset answers all seven")
    );
    assert!(
        said(", spin = \"50us\"", "").contains("wait.spin: missing, and spin_block has no default")
    );
    assert!(said("\"none\"", "{ prefer = 'boost' }").contains("arrival.else: missing"));
    assert!(said("\"none\"", "{ spin = '1us' }").contains("arrival.spin: unknown key"));
    assert!(said("\"none\"", "7").contains("arrival: no answer: name one, known: none, boost"));
    assert!(said("name = \"mine\"", "").contains("name: missing"));
    assert!(said("\"mine\"", "\"two\\nlines\"").contains("name: not a line of text"));
}

#[test]
fn an_answer_never_takes_two_forms_at_once() {
    let line = said(
        "\"none\"",
        "{ answer = 'none', prefer = 'boost', else = 'none' }",
    );
    assert!(line.contains("unknown key"), "{line}");
}

#[test]
fn what_is_no_toml_is_refused_with_its_line() {
    assert!(said("arrival = \"none\"", "arrival = = 1").starts_with("mine.toml:6: not TOML: "));
}

#[test]
fn a_gap_without_an_else_names_question_and_body() {
    let text = GOOD.replacen("\"none\"", "\"boost\"", 1);
    let preset = Preset::parse("mine.toml", &text).unwrap();
    let line = resolve(&preset, SHIM).unwrap_err().to_string();
    assert!(
        line.starts_with("mine: arrival: no present body answers boost: it is the kernel's, and"),
        "{line}"
    );
    assert!(!line.contains('\n'));
    let line = resolve(&load("spin").unwrap(), &[])
        .unwrap_err()
        .to_string();
    assert!(line.contains("the shim is not present here"), "{line}");
}

#[test]
fn shorthand_sets_the_wait_alone() {
    let params = |word| resolve(&load(word).unwrap(), SHIM).unwrap().params().0;
    let mut expected = params("uncoordinated");
    expected.answer[0] = raw::COS_WAIT_SPIN_BLOCK;
    expected.arg[0][0] = 50_000;
    let short = params("spin_block:50us");
    assert_eq!((short.answer, short.arg), (expected.answer, expected.arg));
    assert_eq!(params("adaptive").arg, params("auto").arg);
    assert_eq!(load("spin_yield:0us").unwrap().name, "spin_yield:0us");
}

#[test]
fn wrong_words_are_refused_in_one_line_with_what_to_do() {
    assert!(refused("implict")
        .starts_with("no policy \"implict\": did you mean \"implicit\"? known: auto"));
    assert!(refused("spin_block").contains("how long?: write spin_block:50us"));
    assert!(refused("spin_block:50").contains("write \"50us\""));
    assert!(refused("block:50us").contains("write block alone"));
    assert!(refused("adaptive:50us").contains("write adaptive alone"));
    assert!(refused("/nowhere/x.toml").starts_with("cannot read the preset \"/nowhere/x.toml\""));
    assert!(refused("/").starts_with("cannot read the preset \"/\""));
    assert!(refused("/dev/zero").contains("longer than"));
    for word in ["", "a\nb", "\u{0}", "spin_block:", ":", "é/é"] {
        assert!(!refused(word).contains('\n'), "{word:?}");
    }
}

/// A preset with any answers and any parameters in their range.
fn any_preset() -> impl Strategy<Value = Preset> {
    let side = || {
        (
            any::<prop::sample::Index>(),
            prop::array::uniform6(any::<u64>()),
        )
    };
    let want = || (side(), proptest::option::of(side()));
    let line = || "[^\\p{C}]{1,20}";
    (line(), line(), line(), prop::array::uniform7(want())).prop_map(
        |(name, about, source, wants)| {
            let mut question = QUESTIONS.iter();
            let wants = wants.map(|(prefer, or_else)| {
                let answers = question.next().expect("seven").answers;
                let choice = |(index, args): (prop::sample::Index, [u64; 6])| {
                    let answer = index.get(answers);
                    let mut choice = cosched_policy::Choice {
                        answer,
                        args: [0; 6],
                    };
                    for arg in answer.args {
                        choice.args[arg.at] = args[arg.at] % (arg.max + 1);
                    }
                    choice
                };
                cosched_policy::Want {
                    prefer: choice(prefer),
                    or_else: or_else.map(choice),
                }
            });
            Preset {
                name,
                about,
                source,
                wants,
            }
        },
    )
}

proptest! {
    #[test]
    fn the_reader_never_panics_and_says_one_line(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes);
        if let Err(error) = Preset::parse("x", &text) {
            prop_assert!(!error.to_string().contains('\n'), "{error}");
        }
    }

    #[test]
    fn nor_on_a_damaged_preset(at in 0..GOOD.len(), len in 0..40usize, with in "[a-z0-9='\"{},.\\[\\]\n ]{0,12}") {
        let end = (at + len).min(GOOD.len());
        let text = format!("{}{with}{}", &GOOD[..at], &GOOD[end..]);
        if let Err(error) = Preset::parse("x", &text) {
            prop_assert!(!error.to_string().contains('\n'), "{error}");
        }
    }

    #[test]
    fn what_is_written_reads_back(preset in any_preset()) {
        prop_assert_eq!(Preset::parse("x", &preset.to_toml()), Ok(preset));
    }

    #[test]
    fn resolving_is_deterministic_and_never_takes_what_was_not_named(preset in any_preset(), shim in any::<bool>()) {
        let present: &[Body] = if shim { SHIM } else { &[] };
        let outcome = resolve(&preset, present);
        prop_assert_eq!(&outcome, &resolve(&preset, present));
        for (want, taken) in preset.wants.iter().zip(outcome.iter().flat_map(|r| r.taken)) {
            prop_assert!(taken.choice == want.prefer || Some(taken.choice) == want.or_else);
            prop_assert!(taken.owner == Body::Local || present.contains(&taken.owner));
        }
    }
}
