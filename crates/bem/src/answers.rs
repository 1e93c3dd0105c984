//! What a program has answered, written down while it plays: `answers.bin` in the run's folder.
//!
//! The program's answers are all that cannot be worked out again. They go to this file episode by episode, so that a process
//! that is killed loses the episode under way and nothing else; a learner that begins again takes its answers from here
//! and goes on with the program where they end. When the run is complete its ledger holds them, and the file goes away.
//!
//! ```text
//! "bem answers 2" text · configuration bytes · command text · timeout u64 · world bytes · then calls as in a record
//! ```
//!
//! The world is its file as the ledger keeps it, with a record without calls: shape, what is forbidden, features, and what the
//! learner began with. Clauses: LOG-4, LOG-5, GLE-9.

use anyhow::{Context as _, Result, bail};
use bem_base::encode::{Reader, Writer};
use bem_engine::climb::Climb;
use bem_engine::start::Start;
use bem_engine::world_file::WorldFile;
use bem_engine::world_file::record::Record;
use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

const FORMAT: &str = "bem answers 2";
const NAME: &str = "answers.bin";

/// What a run over a program needs to begin again.
pub struct Begun {
    /// The run at its start: seed, budget and parameters.
    pub climb: Climb,
    /// The program.
    pub command: String,
    /// Seconds that it may take for one line.
    pub timeout: u64,
    /// What it has answered.
    pub record: Record,
    /// What the learner began with.
    pub start: Start,
}

/// Where the file is.
pub fn path(directory: &Path) -> PathBuf {
    directory.join(NAME)
}

/// Reads the file; what was cut off while it was written is left out.
pub fn read(directory: &Path) -> Result<Begun> {
    let path = path(directory);
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let damaged = || format!("{} cannot be read", path.display());
    let mut reader = Reader::new(&bytes);
    let foreign = reader.error("written by another version of bem");
    if reader.text().with_context(damaged)? != FORMAT {
        return Err(foreign).with_context(damaged);
    }
    let climb = Climb::restore(reader.bytes().with_context(damaged)?).with_context(damaged)?;
    let command = reader.text().with_context(damaged)?.to_string();
    let timeout = reader.u64().with_context(damaged)?;
    let world = WorldFile::from_bytes(reader.bytes().with_context(damaged)?).with_context(damaged)?;
    let start = world.start();
    let Some(WorldFile::Record(record)) = world.world() else {
        bail!("{}: its world is no program", damaged());
    };
    let calls = bytes[reader.position()..].to_vec();
    Ok(Begun { climb, command, timeout, record: record.clone().with_calls(calls).whole_episodes(), start })
}

/// The file, open for writing.
pub struct Answers {
    file: File,
    path: PathBuf,
    /// Bytes of the head.
    head: u64,
    /// What it holds already, and how much of that was given again.
    known: Vec<u8>,
    given: usize,
    /// The first failure; nothing is written after it.
    failure: Option<anyhow::Error>,
}

impl Answers {
    /// Begins the file anew with the calls that are known from before; the world's record has no calls.
    pub fn create(
        directory: &Path,
        climb: &Climb,
        (command, timeout): (&str, u64),
        (world, start): (&Record, &Start),
        known: &[u8],
    ) -> Result<Answers> {
        let path = path(directory);
        let named = || format!("{} cannot be written", path.display());
        std::fs::create_dir_all(directory)
            .with_context(|| format!("{} cannot be made", directory.display()))?;
        let mut writer = Writer::new();
        writer.text(FORMAT);
        writer.bytes(&climb.snapshot());
        writer.text(command);
        writer.u64(timeout);
        let world = WorldFile::Record(world.clone());
        writer.bytes(&WorldFile::started(Some(world.clone()), start).unwrap_or(world).to_bytes());
        let head = writer.as_bytes().len() as u64;
        // Aside first: what is known from before is never lost on the way.
        let aside = path.with_extension("tmp");
        let mut file =
            OpenOptions::new().create(true).truncate(true).write(true).open(&aside).with_context(named)?;
        file.write_all(writer.as_bytes())
            .and_then(|()| file.write_all(known))
            .and_then(|()| file.sync_all())
            .and_then(|()| std::fs::rename(&aside, &path))
            .with_context(named)?;
        Ok(Answers { file, path, head, known: known.to_vec(), given: 0, failure: None })
    }

    /// Takes the bytes of an episode. Those that are known from before are compared; from the first difference on the file
    /// holds what is given now.
    pub fn take(&mut self, bytes: &[u8]) {
        if self.failure.is_none()
            && let Err(error) = self.write(bytes)
        {
            self.failure = Some(
                anyhow::Error::from(error).context(format!("{} cannot be written", self.path.display())),
            );
        }
    }

    fn write(&mut self, mut bytes: &[u8]) -> std::io::Result<()> {
        if self.given < self.known.len() {
            let same = bytes.len().min(self.known.len() - self.given);
            if self.known[self.given..][..same] == bytes[..same] {
                self.given += same;
                bytes = &bytes[same..];
            } else {
                self.known.truncate(self.given);
                let end = self.head + self.given as u64;
                self.file.set_len(end)?;
                self.file.seek(SeekFrom::Start(end))?;
            }
        }
        self.file.write_all(bytes)
    }

    /// The first failure, if there was one.
    pub fn failure(&mut self) -> Option<anyhow::Error> {
        self.failure.take()
    }
}

/// The run is complete without the file.
pub fn remove(directory: &Path) -> Result<()> {
    let path = path(directory);
    if path.exists() {
        std::fs::remove_file(&path).with_context(|| format!("{} cannot be removed", path.display()))?;
    }
    Ok(())
}
