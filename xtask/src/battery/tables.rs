//! Three public tables against scikit-learn, as supervised and as bandit problems. `xtask/tables.py` does the work and judges.

use super::{commit, results, text};
use crate::{run, target, tools};
use anyhow::Result;

/// One five-fold cross-validation for every unit of scale.
pub fn tables(scale: u64) -> Result<()> {
    tools::install_python(&[("scikit-learn", "sklearn"), ("numpy", "numpy")])?;
    let bem = target().join("release").join("bem").display().to_string();
    let page = results("tables.md")?;
    run("python3", &["xtask/tables.py", &bem, &commit()?, &scale.to_string(), text(&page)?])
}

#[cfg(test)]
mod tests {
    use crate::{output, root, target};

    #[test]
    fn what_is_kept_of_a_measurement_is_named_by_all_it_depends_on() {
        let folder = target().join(format!("kept-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("examples")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        for name in ["program", "script", "examples/world", "examples/table"] {
            write(name, name);
        }
        let key = || {
            let code = "import sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1]); import kept\n\
                        print(kept.key(sys.argv[2] + '/program', [sys.argv[2] + '/script', sys.argv[2] + '/examples'], []))";
            let (scripts, place) = (root().join("xtask"), folder.display().to_string());
            output("python3", &["-c", code, &scripts.display().to_string(), &place]).unwrap()
        };
        let first = key();
        assert_eq!(first, key());
        for name in ["program", "script", "examples/world", "examples/table", "examples/another"] {
            write(name, "changed");
            assert_ne!(first, key(), "{name}");
            match name {
                "examples/another" => std::fs::remove_file(folder.join(name)).unwrap(),
                _ => write(name, name),
            }
            assert_eq!(first, key(), "{name}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
