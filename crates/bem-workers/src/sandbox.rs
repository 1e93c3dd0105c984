//! What a worker in a process of its own can reach: its roots and databases, and nothing else of the file system.
//!
//! Landlock takes away everything that is not named, for this process and all that it starts. That it is fully enforced is
//! checked; a kernel without it is said, never passed over. Clauses: TOOL-3, TOOL-4.

use crate::catalog_file::{Backend, CatalogFile, Place, Secret};
use anyhow::{Context, Result, bail};
use bem_tools::catalog::flag;
use bem_tools::operation::Role;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus,
};
use std::path::PathBuf;

/// The version of Landlock that is asked for: file system with truncation, and TCP.
const VERSION: ABI = ABI::V4;

/// Gives up everything but what the catalog names for this kind.
pub fn enter(role: Role, catalog: &CatalogFile) -> Result<()> {
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
        Role::Model | Role::Environment | Role::Custom | Role::People => return Ok(()),
    }
    let refused = "Landlock is not available here: say --no-sandbox to work without it";
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(all)
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(VERSION)))
        .and_then(Ruleset::create)
        .context(refused)?;
    let mut ruleset = ruleset;
    for (path, is_written) in places {
        let access = if is_written { all } else { AccessFs::from_read(VERSION) };
        let access = if path.is_file() { access & AccessFs::from_file(VERSION) } else { access };
        let opened = PathFd::new(&path).with_context(|| path.display().to_string())?;
        ruleset = ruleset.add_rule(PathBeneath::new(opened, access)).context(refused)?;
    }
    for port in ports {
        ruleset = ruleset.add_rule(NetPort::new(port, AccessNet::ConnectTcp)).context(refused)?;
    }
    let status = ruleset.restrict_self().context(refused)?;
    if status.ruleset != RulesetStatus::FullyEnforced {
        bail!("{refused}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    /// What a thread that has entered the sandbox of a kind may do; none where the kernel has no Landlock.
    fn inside<T: Send + 'static>(
        role: Role,
        catalog: &CatalogFile,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let catalog = catalog.clone();
        let looked = std::thread::spawn(move || match enter(role, &catalog) {
            Ok(()) => Some(look()),
            Err(error) => {
                println!("not tried: {error:#}");
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
