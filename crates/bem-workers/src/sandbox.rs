//! What a worker in a process of its own can reach: its roots and databases, and nothing else of the file system.
//!
//! Landlock takes away everything that is not named, for this process and all that it starts. That it is fully enforced is
//! asked of the kernel and then tried: the folder of all folders and a connection must be refused. Where one of these does not
//! hold the worker does not start; a kernel without Landlock is said, never passed over. Clauses: TOOL-3, TOOL-4; decision D-203.

use crate::catalog_file::{Backend, CatalogFile, Place, Secret};
use anyhow::{Context, Result, bail};
use bem_tools::catalog::flag;
use bem_tools::operation::Role;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus,
};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::path::{Path, PathBuf};

/// The version of Landlock that is asked for: file system with truncation, and TCP.
const VERSION: ABI = ABI::V4;

/// A port that nobody listens at: a connection to it is refused by the sandbox, or by the machine.
const PROBED_PORT: u16 = 1;

/// What a process is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforced {
    /// Its kind reaches out by its nature: models, simulators.
    Nothing,
    /// Landlock holds it to what is named.
    Fully {
        /// Folders and files that it may reach.
        places: usize,
        /// Ports that it may connect to.
        ports: usize,
    },
}

impl core::fmt::Display for Enforced {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Enforced::Nothing => {
                formatter.write_str("no sandbox: this kind reaches other programs and machines")
            }
            Enforced::Fully { places, ports } => write!(
                formatter,
                "Landlock fully enforced: {places} places and {ports} ports, everything else was tried and refused"
            ),
        }
    }
}

/// Tries what must be refused by now.
fn tried(places: &[(PathBuf, bool)], ports: &[u16]) -> Result<()> {
    let is_refused = |kind: Option<ErrorKind>| kind == Some(ErrorKind::PermissionDenied);
    let has_all = places.iter().any(|(path, _)| path.canonicalize().is_ok_and(|path| path == Path::new("/")));
    if !has_all && !is_refused(std::fs::read_dir("/").err().map(|error| error.kind())) {
        bail!("Landlock says that it is enforced, and the folder / can be read");
    }
    let connected = TcpStream::connect(("127.0.0.1", PROBED_PORT));
    if !ports.contains(&PROBED_PORT) && !is_refused(connected.err().map(|error| error.kind())) {
        bail!("Landlock says that it is enforced, and a connection can be made");
    }
    Ok(())
}

/// Gives up everything but what the catalog names for this kind.
pub fn enter(role: Role, catalog: &CatalogFile) -> Result<Enforced> {
    let all = AccessFs::from_all(VERSION);
    let mut places: Vec<(PathBuf, bool)> = Vec::new();
    let mut ports: Vec<u16> = Vec::new();
    match role {
        Role::Files => {
            for root in &catalog.roots {
                if let Place::Folder(folder) = &root.place {
                    places.push((folder.clone(), root.flags & flag::READ_ONLY == 0));
                }
            }
        }
        Role::Database => {
            for database in catalog.databases.values() {
                match &database.backend {
                    Backend::Sqlite { path, .. } => {
                        // The journal lies beside the file.
                        let folder = path.parent().map(std::path::Path::to_path_buf).unwrap_or_default();
                        places.push((folder, database.flags & flag::READ_ONLY == 0));
                    }
                    Backend::Postgres(server) => {
                        ports.push(server.config.get_ports().first().copied().unwrap_or(5_432));
                        places.extend(
                            server.password.as_ref().and_then(Secret::file).map(|file| (file, false)),
                        );
                        // Names of hosts are looked up when a connection is made.
                        let names = ["/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf"];
                        let files = names.map(PathBuf::from).into_iter().filter(|file| file.exists());
                        places.extend(files.map(|file| (file, false)));
                    }
                }
            }
        }
        // The prover needs nothing.
        Role::Prover => {}
        Role::Model | Role::Environment | Role::Custom | Role::People => return Ok(Enforced::Nothing),
    }
    let refused = "Landlock is not available here: say --no-sandbox to work without it";
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(all)
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(VERSION)))
        .and_then(Ruleset::create)
        .context(refused)?;
    let mut ruleset = ruleset;
    for (path, is_written) in &places {
        let access = if *is_written { all } else { AccessFs::from_read(VERSION) };
        let access = if path.is_file() { access & AccessFs::from_file(VERSION) } else { access };
        let opened = PathFd::new(path).with_context(|| path.display().to_string())?;
        ruleset = ruleset.add_rule(PathBeneath::new(opened, access)).context(refused)?;
    }
    for port in &ports {
        ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)).context(refused)?;
    }
    let status = ruleset.restrict_self().context(refused)?;
    if status.ruleset != RulesetStatus::FullyEnforced {
        bail!("{refused}");
    }
    tried(&places, &ports)?;
    Ok(Enforced::Fully { places: places.len(), ports: ports.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    /// What a thread that has entered the sandbox of a kind may do; none where the kernel has no Landlock.
    fn inside<T: Send + 'static>(
        role: Role,
        catalog: &CatalogFile,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let catalog = catalog.clone();
        let looked = std::thread::spawn(move || match enter(role, &catalog) {
            Ok(enforced) => {
                assert!(matches!(enforced, Enforced::Fully { .. }), "{enforced}");
                Some(look())
            }
            Err(error) => {
                // Written past the test's own output, which is not shown when it passes.
                let _ = writeln!(std::io::stderr(), "NOT TRIED, this kernel has no Landlock: {error:#}");
                assert!(error.to_string().contains("--no-sandbox"), "{error:#}");
                None
            }
        });
        looked.join().expect("no panic")
    }

    fn can_read(path: &Path) -> bool {
        std::fs::read(path).is_ok()
    }

    #[test]
    fn a_worker_reaches_its_roots_and_databases_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        for name in ["open", "kept", "data"] {
            std::fs::create_dir(base.join(name)).unwrap();
            std::fs::write(base.join(name).join("file"), name).unwrap();
        }
        std::fs::write(base.join("outside"), "SECRET").unwrap();
        symlink(base.join("outside"), base.join("open/link")).unwrap();
        let text = "[[root]]\nname = \"open\"\npath = \"open\"\n\
            [[root]]\nname = \"kept\"\npath = \"kept\"\nflags = [\"read_only\"]\n\
            [[database]]\nname = \"stock\"\nsqlite = \"data/stock.db\"\n";
        std::fs::write(base.join("data/stock.db"), "").unwrap();
        let catalog = CatalogFile::parse("c", text.to_string(), base.clone(), None).unwrap();
        let place = base.clone();
        let seen = inside(Role::Files, &catalog, move || {
            let write = |path: &str| std::fs::write(place.join(path), "x").is_ok();
            [
                can_read(&place.join("open/file")),
                write("open/new"),
                can_read(&place.join("kept/file")),
                write("kept/new"),
                can_read(&place.join("outside")),
                can_read(&place.join("open/link")),
                can_read(&place.join("data/file")),
                can_read(Path::new("/etc/passwd")),
                std::net::TcpStream::connect("127.0.0.1:1")
                    .is_err_and(|error| error.raw_os_error() == Some(13)),
            ]
        });
        assert!(
            seen.is_none_or(|seen| seen == [true, true, true, false, false, false, false, false, true]),
            "{seen:?}"
        );
        let place = base.clone();
        let seen = inside(Role::Database, &catalog, move || {
            [
                can_read(&place.join("data/stock.db")),
                can_read(&place.join("open/file")),
                can_read(&place.join("outside")),
            ]
        });
        assert!(seen.is_none_or(|seen| seen == [true, false, false]), "{seen:?}");
        let seen = inside(Role::Prover, &catalog, move || can_read(&base.join("open/file")));
        assert!(seen.is_none_or(|seen| !seen), "{seen:?}");
    }
}
