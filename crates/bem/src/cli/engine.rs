//! `bem-engine --resume`: the name under which an image starts the machine. A program called so is `bem serve` over `/var/lib/bem`.
//!
//! With `--resume` a state must be there. Where its key is not, as in a container that was started from an image, a new history
//! begins that names the old head. Clauses: IMG-1, IMG-4.

use super::Answer;
use super::serve::{self, ServeArguments};
use crate::images::restore::resume_in_place;
use crate::places;
use anyhow::{Result, bail};
use clap::Args;
use std::ffi::OsString;
use std::path::Path;

/// The machine of an image: bem serve over /var/lib/bem.
#[derive(Args)]
#[command(after_help = "Example: bem engine --resume --state /var/lib/bem")]
pub struct EngineArguments {
    /// Go on with the state that is there; without its key as a new history that names the old head
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    serve: ServeArguments,
}

/// The words of the command line; those of a program called `bem-engine` become those of `bem engine`.
pub fn arguments(words: Vec<OsString>) -> Vec<OsString> {
    let name = words.first().map(Path::new).and_then(Path::file_name);
    if name.is_none_or(|name| name != "bem-engine") {
        return words;
    }
    let mut rest = words.into_iter().skip(1);
    let rest: Vec<OsString> = rest.by_ref().collect();
    let mut changed: Vec<OsString> = vec!["bem".into(), "engine".into()];
    // Where logs go and settings come from follows from where the state lies.
    let is_said = |word: &OsString| {
        let word = word.to_string_lossy();
        word == "--state" || word.starts_with("--state=")
    };
    if !rest.iter().any(is_said) {
        changed.extend(["--state".into(), places::STATE.into()]);
    }
    changed.extend(rest);
    changed
}

/// `bem engine`
pub fn run(arguments: &EngineArguments) -> Result<Answer> {
    let state = arguments.serve.state();
    places::refuse_root(state)?;
    if arguments.resume {
        if !state.join("ledger").is_dir() && !state.join("restored.tmp").is_dir() {
            bail!("{} holds no state to resume; without --resume a new one begins", state.display());
        }
        if let Some((origin, head)) = resume_in_place(state, arguments.serve.key())? {
            say!("resumed    head {head}, a new history that goes on from head {origin}");
        }
    }
    serve::run(&arguments.serve)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_says_what_it_does() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(arguments(words("/usr/bin/bem serve")), words("/usr/bin/bem serve"));
        let engine = "bem engine --state /var/lib/bem --resume";
        assert_eq!(arguments(words("/usr/bin/bem-engine --resume")), words(engine));
        let elsewhere = "bem engine --state=x --resume";
        assert_eq!(arguments(words("bem-engine --state=x --resume")), words(elsewhere));
    }
}
