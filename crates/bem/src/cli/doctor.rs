//! `bem doctor`: what this machine offers, and what would be missing without it. Everything here is optional. Must not
//! know what uses it. Clauses: GLE-9.

use super::Answer;
use super::fit::hanging;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What this machine offers: one line each, found with its version, or what would be missing without it.
#[derive(Args)]
#[command(after_help = "Example: bem doctor --json")]
pub struct DoctorArguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// How something is looked for.
enum Look {
    /// Instructions of the processor.
    Avx2,
    /// The first of these programs that starts, with these words after its name.
    Program(&'static [&'static str], &'static [&'static str]),
    /// A server program that Debian keeps out of the path.
    Postgres,
    /// A module of Python.
    Module(&'static str),
    /// The addresses behind this name.
    Name(&'static str),
}

/// Something that a machine may offer.
struct Offer {
    key: &'static str,
    name: &'static str,
    look: Look,
    without: &'static str,
}

const OFFERS: &[Offer] = &[
    Offer {
        key: "avx2",
        name: "AVX2",
        look: Look::Avx2,
        without: "circuits are interpreted instead of compiled: the same answers, slower",
    },
    Offer {
        key: "names",
        name: "name resolution",
        look: Look::Name("localhost"),
        without: "databases and registries are reached by their addresses only",
    },
    Offer {
        key: "cxx",
        name: "C++ compiler",
        look: Look::Program(&["c++", "g++", "clang++"], &["--version"]),
        without: "BEM cannot be built from source (its solver is C++), and exported C headers cannot be tried as C++",
    },
    Offer {
        key: "cc",
        name: "C compiler",
        look: Look::Program(&["cc"], &["--version"]),
        without: "exported C programs and their self-tests cannot be tried here",
    },
    Offer {
        key: "rustc",
        name: "Rust compiler",
        look: Look::Program(&["rustc"], &["--version"]),
        without: "exported Rust programs and their self-tests cannot be tried here",
    },
    Offer {
        key: "node",
        name: "Node.js",
        look: Look::Program(&["node"], &["--version"]),
        without: "exported JavaScript and its self-tests cannot be tried here",
    },
    Offer {
        key: "iverilog",
        name: "Icarus Verilog",
        look: Look::Program(&["iverilog"], &["-V"]),
        without: "exported Verilog modules and their benches cannot be tried here",
    },
    Offer {
        key: "postgresql_client",
        name: "PostgreSQL client",
        look: Look::Program(&["psql"], &["--version"]),
        without: "the databases that tools use cannot be looked at by psql",
    },
    Offer {
        key: "postgresql_server",
        name: "PostgreSQL server",
        look: Look::Postgres,
        without: "database tools need a server elsewhere, and their tests do not run",
    },
    Offer {
        key: "chromium",
        name: "Chromium",
        look: Look::Program(&["chromium", "chromium-browser", "google-chrome"], &["--version"]),
        without: "browser tools and the tests of pages do not run",
    },
    Offer {
        key: "skopeo",
        name: "skopeo",
        look: Look::Program(&["skopeo"], &["--version"]),
        without: "images cannot be copied to and from registries by other tools",
    },
    Offer {
        key: "runc",
        name: "runc",
        look: Look::Program(&["runc"], &["--version"]),
        without: "images cannot be started here",
    },
    Offer {
        key: "python",
        name: "Python",
        look: Look::Program(&["python3", "python"], &["--version"]),
        without: "no Gymnasium worlds, no Python exports, no Python module",
    },
    Offer {
        key: "numpy",
        name: "numpy",
        look: Look::Module("numpy"),
        without: "exported Python decides one row at a time, and the Python module cannot be used",
    },
    Offer {
        key: "gymnasium",
        name: "Gymnasium",
        look: Look::Module("gymnasium"),
        without: "Gymnasium worlds cannot be played",
    },
    Offer {
        key: "ray",
        name: "Ray",
        look: Look::Module("ray"),
        without: "the pipeline runs on threads of one machine only",
    },
    Offer {
        key: "valgrind",
        name: "valgrind",
        look: Look::Program(&["valgrind"], &["--version"]),
        without: "instructions a step are not counted (cargo xtask count)",
    },
];

/// The first line that a program says of itself, if it starts and succeeds.
fn first_line(program: &str, words: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(words).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    output.status.success().then(|| line.to_string())
}

/// The server programs where Debian puts them, the newest version first.
fn postgres_programs() -> Vec<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin/postgres")).collect();
    found.sort();
    found.reverse();
    found
}

fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

impl Look {
    /// The version that was found.
    fn find(&self) -> Option<String> {
        match self {
            Look::Avx2 => has_avx2().then(|| "in this processor".to_string()),
            Look::Program(names, words) => names.iter().find_map(|name| first_line(name, words)),
            Look::Postgres => first_line("postgres", &["--version"]).or_else(|| {
                let programs = postgres_programs();
                programs.iter().find_map(|path| first_line(path.to_str()?, &["--version"]))
            }),
            Look::Name(name) => {
                let found = std::net::ToSocketAddrs::to_socket_addrs(&(*name, 0)).ok()?;
                let found: Vec<String> = found.map(|address| address.ip().to_string()).collect();
                (!found.is_empty()).then(|| format!("{name} is {}", found.join(", ")))
            }
            Look::Module(module) => {
                let words = format!("import {module}; print({module}.__version__)");
                first_line("python3", &["-c", &words]).map(|version| format!("{module} {version}"))
            }
        }
    }
}

/// `bem doctor`
pub fn run(arguments: &DoctorArguments) -> anyhow::Result<Answer> {
    let found: Vec<(&Offer, Option<String>)> =
        OFFERS.iter().map(|offer| (offer, offer.look.find())).collect();
    if arguments.json {
        let entry = |(offer, version): &(&Offer, Option<String>)| {
            let value = json!({ "found": version.is_some(), "version": version, "without": offer.without });
            (offer.key.to_string(), value)
        };
        let object: serde_json::Map<_, _> = found.iter().map(entry).collect();
        say!("{}", json!({ "version": env!("CARGO_PKG_VERSION"), "machine": object }));
        return Ok(Answer::Yes);
    }
    say!("bem {}", env!("CARGO_PKG_VERSION"));
    for (offer, version) in &found {
        let text = version.clone().unwrap_or_else(|| format!("missing: {}", offer.without));
        hanging(&format!("{:<18} {text}", offer.name), 19).iter().for_each(|line| say!("{line}"));
    }
    Ok(Answer::Yes)
}
