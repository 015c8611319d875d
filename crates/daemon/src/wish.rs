// SPDX-License-Identifier: Apache-2.0
//! From the preset that a request names to parameters and to who answers what.
//!
//! Parameters are never taken as bytes: the daemon reads the preset itself, by its
//! name or as text, so that whatever reaches the kernel was compiled from the table
//! of answers. A name is never a path here.
//!
//! A job without the shim waits as its program does. For `spin` that is the very
//! answer, and for `adaptive` only advice is missing; any other answer to `wait`
//! would be claimed and not given, so it is refused.

use crate::bounds::Bounds;
use crate::refusal::Refusal;
use cosched_control::{document::Answer, Mode};
use cosched_model::abi;
use cosched_policy::{raw, resolve, Body, Error, Params, Preset, Resolved};

/// Who asks, and with what.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    /// Whose request it is.
    pub uid: u32,
    /// The ranks have the preloaded library.
    pub has_shim: bool,
    /// What the kernel body does here.
    pub mode: Mode,
}

/// A preset, settled.
#[derive(Clone, Debug)]
pub struct Settled {
    /// Its name.
    pub preset: String,
    /// For the kernel body.
    pub params: Params,
    /// For people.
    pub answers: Vec<Answer>,
}

/// The preset @name, or @text where it is a file's, as far as @bounds allow.
pub fn settle(
    bounds: &Bounds,
    asker: Asker,
    name: &str,
    text: Option<&str>,
) -> Result<Settled, Refusal> {
    let preset = match text {
        Some(text) => {
            bounds.custom(asker.uid)?;
            Preset::parse("preset", text).map_err(refusal)?
        }
        None => {
            let preset = by_name(name)?;
            bounds.preset(asker.uid, name)?;
            preset
        }
    };
    let policy = answer(&preset, asker)?;
    bounds.slices(asker.uid, &policy)?;
    Ok(Settled {
        preset: preset.name.clone(),
        params: policy.params(),
        answers: shown(&policy, asker.has_shim),
    })
}

fn by_name(name: &str) -> Result<Preset, Refusal> {
    if name.contains('/') || name.ends_with(".toml") {
        return Err(Refusal::unknown(format!(
            "no preset {name:?}: a file travels as text, by COS_CONTROL_PRESET_TEXT"
        )));
    }
    cosched_policy::load(name).map_err(refusal)
}

/// With the bodies that this job has.
fn answer(preset: &Preset, asker: Asker) -> Result<Resolved, Refusal> {
    let mut present = vec![];
    if asker.mode == Mode::Schedule {
        present.push(Body::Kernel);
    }
    if asker.has_shim || waits_by_itself(preset) {
        present.push(Body::Shim);
    }
    resolve(preset, &present).map_err(refusal)
}

fn waits_by_itself(preset: &Preset) -> bool {
    let answer = preset.wants[raw::COS_Q_WAIT as usize].prefer.answer;
    matches!(
        answer.code,
        Some(raw::COS_WAIT_SPIN | raw::COS_WAIT_ADAPTIVE)
    )
}

fn shown(policy: &Resolved, has_shim: bool) -> Vec<Answer> {
    let shown = policy.taken.iter().map(|taken| {
        let word = taken.choice.answer.word;
        if taken.owner == Body::Shim && !has_shim {
            return Answer {
                question: taken.question.word.to_owned(),
                owner: "program".to_owned(),
                answer: "as it does by itself".to_owned(),
                instead_of: Some(word.to_owned()),
            };
        }
        Answer {
            question: taken.question.word.to_owned(),
            owner: taken.owner.word().to_owned(),
            answer: word.to_owned(),
            instead_of: taken.instead_of.map(|choice| choice.answer.word.to_owned()),
        }
    });
    shown.collect()
}

/// A missing body is this machine's fault, an unknown name or a bad file the caller's.
fn refusal(error: Error) -> Refusal {
    let status = match error {
        Error::Gap { .. } => abi::COS_CONTROL_CANNOT,
        _ => abi::COS_CONTROL_UNKNOWN,
    };
    Refusal::of(status, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Sources};

    fn bounds() -> Bounds {
        let config = Config::read(&Sources {
            file: Some("/dev/null".into()),
            ..Sources::default()
        });
        Bounds::of(&config.unwrap())
    }

    fn ask(has_shim: bool, mode: Mode, name: &str) -> Result<Settled, Refusal> {
        let asker = Asker {
            uid: 0,
            has_shim,
            mode,
        };
        settle(&bounds(), asker, name, None)
    }

    #[test]
    fn questions_belong_to_who_is_there() {
        let owner = |settled: &Settled, question: usize| settled.answers[question].owner.clone();
        let both = ask(true, Mode::Schedule, "auto").unwrap();
        assert_eq!([owner(&both, 0), owner(&both, 1)], ["shim", "kernel"]);
        let alone = ask(false, Mode::Schedule, "auto").unwrap();
        assert_eq!([owner(&alone, 0), owner(&alone, 1)], ["program", "kernel"]);
        let seen = ask(false, Mode::Observe, "auto").unwrap();
        assert_eq!(owner(&seen, 1), "local scheduler");
        assert!(ask(false, Mode::Schedule, "dcs-spin").is_ok());
    }

    #[test]
    fn what_nobody_here_can_answer_is_refused_in_one_line() {
        for (has_shim, mode, name, says) in [
            (true, Mode::Observe, "dcs-spin", "arrival"),
            (false, Mode::Schedule, "implicit", "wait"),
            (true, Mode::Schedule, "gang", "allocation"),
            (true, Mode::Schedule, "dcs-spni", "did you mean"),
            (true, Mode::Schedule, "/etc/passwd", "travels as text"),
            (true, Mode::Schedule, "x.toml", "travels as text"),
        ] {
            let line = ask(has_shim, mode, name).unwrap_err().line;
            assert!(line.contains(says) && line.lines().count() == 1, "{line}");
        }
    }

    #[test]
    fn a_file_of_a_users_own_is_read_only_where_that_is_allowed() {
        let text = cosched_policy::load("auto").unwrap().to_toml();
        let asker = |uid| Asker {
            uid,
            has_shim: true,
            mode: Mode::Schedule,
        };
        let line = settle(&bounds(), asker(1000), "", Some(&text))
            .unwrap_err()
            .line;
        assert!(line.contains("users.custom"), "{line}");
        assert_eq!(
            settle(&bounds(), asker(0), "", Some(&text)).unwrap().preset,
            "auto"
        );
        assert!(settle(&bounds(), asker(0), "", Some("name = 1")).is_err());
    }
}
