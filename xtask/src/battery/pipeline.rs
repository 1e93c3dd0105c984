//! The pipeline at length: transfer to twice the size, distillation beside its ablations, Ray with a node that is lost.

use crate::{built_bem, run, target};
use anyhow::Result;

/// Ten families at twice the size, five seeds for every unit of scale.
pub fn transfer(scale: u64) -> Result<()> {
    let seeds = format!("BEM_TRANSFER_SEEDS={}", 5 * scale);
    let test =
        ["cargo", "test", "--release", "--package", "bem-engine", "--test", "transfer", "--", "--nocapture"];
    run("env", &[&[seeds.as_str()][..], &test[..]].concat())
}

/// Seven domains and a late one, as it is and without masking and without distillation, one seed for every unit of scale.
pub fn pipeline(scale: u64) -> Result<()> {
    let folder = target().join("battery-pipeline");
    let _ = std::fs::remove_dir_all(&folder);
    for seed in 1..=scale {
        let seed = seed.to_string();
        for (name, words) in [
            ("whole", ["--compare"].as_slice()),
            ("unmasked", &["--no-masking"]),
            ("alone", &["--no-distillation"]),
        ] {
            let out = folder.join(format!("{name}-{seed}")).display().to_string();
            let cargo = [
                "run",
                "--release",
                "--quiet",
                "--package",
                "bem",
                "--",
                "pipeline",
                "run",
                "--seed",
                &seed,
                "--out",
                &out,
            ];
            run("cargo", &[&cargo[..], words].concat())?;
        }
    }
    Ok(())
}

/// Two raylets on this machine, one of which is removed in the middle: the head is that of threads. The environment that
/// `BEM_PYTHON` names must have the packages bem and ray.
pub fn ray(_: u64) -> Result<()> {
    let python = std::env::var("BEM_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let bem = built_bem()?;
    run(&python, &["bench/ray_lost_node.py", "--bem", &bem])
}
