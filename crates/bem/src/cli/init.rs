//! `bem init`: a working starting point for a problem of one's own: a world and the commands that learn it.
//!
//! What it writes is complete: the commands in its README run as they stand, and a test runs them. Nothing that is there
//! is replaced. Clauses: GLE-9.

use super::Answer;
use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use std::io::Write as _;
use std::path::PathBuf;

/// What the problem comes as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum From {
    /// A table of examples, one column of which is the right action
    Csv,
    /// A log of decisions with their chances and what they brought
    Log,
    /// A simulation as a Python program
    Python,
    /// A Markov decision process as a table of transitions
    Json,
}

impl From {
    /// Names and texts of the files.
    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            From::Csv => &[
                ("README.md", include_str!("init/README-csv.md")),
                ("data.csv", include_str!("init/data.csv")),
            ],
            From::Log => &[
                ("README.md", include_str!("init/README-log.md")),
                ("log.csv", include_str!("init/log.csv")),
            ],
            From::Python => &[
                ("README.md", include_str!("init/README-python.md")),
                ("world.py", include_str!("init/world.py")),
            ],
            From::Json => &[
                ("README.md", include_str!("init/README-json.md")),
                ("world.json", include_str!("init/world.json")),
            ],
        }
    }
}

/// Write a working starting point for a problem of one's own.
#[derive(Args)]
#[command(after_help = "Example: bem init my-problem\n\
    Example: bem init --from csv my-table, then put your rows into its data.csv")]
pub struct InitArguments {
    /// Where it goes; files that are there are never replaced [default: the current folder]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// What the problem comes as
    #[arg(long, value_enum, default_value_t = From::Python)]
    from: From,
}

/// `bem init`
pub fn run(arguments: &InitArguments) -> Result<Answer> {
    let directory = arguments.directory.clone().unwrap_or_else(|| PathBuf::from("."));
    let files = arguments.from.files();
    if let Some((name, _)) = files.iter().find(|(name, _)| directory.join(name).symlink_metadata().is_ok()) {
        bail!(
            "{} is there already: nothing was written; name another folder",
            directory.join(name).display()
        );
    }
    std::fs::create_dir_all(&directory).with_context(|| format!("{} cannot be made", directory.display()))?;
    for (name, text) in files {
        let path = directory.join(name);
        // Never over a file that came up in between.
        let made = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
        let named = || format!("{} cannot be written", path.display());
        made.with_context(named)?.write_all(text.as_bytes()).with_context(named)?;
        say!("wrote {}", path.display());
    }
    say!("next:");
    if directory.as_os_str() != "." {
        say!("  cd {}", directory.display());
    }
    commands(files[0].1).iter().for_each(|command| say!("  {command}"));
    Ok(Answer::Yes)
}

/// The commands of a README, in order.
fn commands(readme: &str) -> Vec<&str> {
    readme.lines().skip_while(|line| *line != "```sh").skip(1).take_while(|line| *line != "```").collect()
}
