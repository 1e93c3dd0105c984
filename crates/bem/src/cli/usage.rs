//! Reading the command line; what cannot be read is said in one line that names the argument and its value.

use super::Arguments;
use clap::error::{ContextKind, ErrorKind};
use clap::{Command, CommandFactory as _, Error, FromArgMatches as _};
use std::error::Error as _;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::process::ExitCode;

/// The arguments, or the exit code of a command line that asks for help or makes no sense.
pub fn parse(words: impl IntoIterator<Item = std::ffi::OsString>) -> Result<Arguments, ExitCode> {
    let mut command = with_negative_numbers(Arguments::command());
    let parsed =
        command.try_get_matches_from_mut(words).and_then(|matches| Arguments::from_arg_matches(&matches));
    parsed.map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            say_text!("{error}");
            super::finish(Ok(super::Answer::Yes))
        }
        _ => {
            note!("bem: {}", one_line(&error));
            ExitCode::from(2)
        }
    })
}

/// So many seeds from this one on; an error names the option that gave the first.
pub fn seeds(option: &str, first: u64, count: u64) -> anyhow::Result<std::ops::Range<u64>> {
    match first.checked_add(count) {
        Some(end) => Ok(first..end),
        None => anyhow::bail!("{option} {first} is out of range: 0 to {}", u64::MAX - count),
    }
}

/// `--seed -1` is a wrong value of `--seed`, not an unknown option `-1`.
fn with_negative_numbers(command: Command) -> Command {
    let takes_value = |argument: clap::Arg| {
        let takes_values = argument.get_action().takes_values();
        argument.allow_negative_numbers(takes_values)
    };
    command.mut_args(takes_value).mut_subcommands(with_negative_numbers)
}

/// What is wrong, in one line.
fn one_line(error: &Error) -> String {
    let text = |kind: ContextKind| error.get(kind).map(ToString::to_string);
    let argument = text(ContextKind::InvalidArg).unwrap_or_default();
    let value = text(ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::ValueValidation => {
            format!("{} cannot be {value:?}: {}", option_name(&argument), expected(error))
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            format!("a word is missing: one of {}", subcommands(&error.to_string()).join(", "))
        }
        _ => {
            // The library's words, without its advice on several lines, but with what it thinks was meant.
            let rendered = error.to_string();
            let mut lines = rendered.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
            let first = lines.next().unwrap_or_default();
            let mut line = first.trim_start_matches("error: ").to_string();
            for more in lines.filter(|more| !more.is_empty() && !more.starts_with("For more")) {
                line.push_str(if more.starts_with("tip:") { "; " } else { " " });
                line.push_str(more.trim_start_matches("tip: "));
            }
            line
        }
    }
}

/// `--seed` of `--seed <SEED>`.
fn option_name(argument: &str) -> &str {
    argument.split_whitespace().next().unwrap_or(argument)
}

/// The names below `Commands:` in a help text.
fn subcommands(help: &str) -> Vec<&str> {
    let names = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    // A name is indented by two; what goes on from the line before is indented further.
    let names = names.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect()
}

/// What would have been right.
fn expected(error: &Error) -> String {
    let Some(source) = error.source() else { return "it has another form".to_string() };
    if let Some(number) = source.downcast_ref::<ParseIntError>() {
        return match number.kind() {
            IntErrorKind::PosOverflow => format!("it must be at most {}", u64::MAX),
            _ => "it must be a whole number, 0 or more".to_string(),
        };
    }
    if source.downcast_ref::<ParseFloatError>().is_some() {
        return "it must be a number".to_string();
    }
    source.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::fit::WIDTH;

    fn says(words: &str) -> String {
        let words = std::iter::once("bem").chain(words.split_whitespace()).map(std::ffi::OsString::from);
        let mut command = with_negative_numbers(Arguments::command());
        one_line(&command.try_get_matches_from_mut(words).expect_err("the words make no sense"))
    }

    #[test]
    fn nonsense_is_said_in_one_line_with_argument_and_value() {
        let cases = [
            ("solve parity --seed -1", "--seed cannot be \"-1\": it must be a whole number, 0 or more"),
            ("solve parity --budget x", "--budget cannot be \"x\": it must be a whole number, 0 or more"),
            (
                "solve parity --budget 99999999999999999999999",
                "--budget cannot be \"99999999999999999999999\": it must be at most 18446744073709551615",
            ),
            ("run --minutes soon", "--minutes cannot be \"soon\": it must be a number"),
            (
                "sovle",
                "unrecognized subcommand 'sovle'; some similar subcommands exist: 'people', 'serve', 'prove', 'solve'",
            ),
            (
                "run --minutes 1 --steps 5",
                "the argument '--minutes <MINUTES>' cannot be used with '--steps <STEPS>'",
            ),
            ("games", "a word is missing: one of list, show, play"),
            ("verify", "the following required arguments were not provided: <DIRECTORY>"),
            ("table --sedes 3", "unexpected argument '--sedes' found; a similar argument exists: '--seeds'"),
        ];
        for (words, want) in cases {
            assert_eq!(says(words), want, "{words}");
        }
    }

    #[test]
    fn every_command_shows_an_example_that_fits_a_terminal() {
        fn check(command: &Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example: bem "), "{path} has no example in its help");
            let wide = help.lines().find(|line| WIDTH < line.chars().count());
            assert_eq!(wide, None, "{path}: a line is broken where a terminal ends, not where it should");
            command
                .get_subcommands()
                .filter(|inner| inner.get_name() != "help")
                .for_each(|inner| check(inner, &path));
        }
        let command = Arguments::command();
        command.get_subcommands().for_each(|inner| check(inner, "bem"));
    }
}
