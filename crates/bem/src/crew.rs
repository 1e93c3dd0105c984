//! Who works on units: threads of this process, processes of this program, or tasks of a Ray cluster.
//!
//! All of them are sent the same bytes and answer with the same bytes ([`bem_engine::climb::message`]); answers are handed
//! back in the order of the orders. A worker that dies is started again and its unit with it: that costs time and nothing else.
//! A frame between processes is the unit's number, the length and the bytes. Clauses: PIPE-4, SCC-15; decision D-132.

use crate::interrupt;
use anyhow::{Context as _, Result, anyhow, bail};
use bem_engine::climb::message;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

/// Bytes of one message at most.
const FRAME_BYTES_MAX: u32 = 1 << 29;
/// Times that a unit is handed to a new process after its worker died.
const RETRIES: u32 = 8;

/// Where units are worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Crew {
    /// So many threads of this process.
    Threads(usize),
    /// So many processes of this program.
    Processes(usize),
    /// Tasks of a Ray cluster, which are retried, through the Python package; without an address one is started here.
    Ray {
        /// The cluster's address.
        address: Option<String>,
        /// How many units are worked on at once.
        at_once: usize,
    },
}

/// Writes a frame.
pub fn write_frame(to: &mut impl Write, number: u32, bytes: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(std::io::Error::other)?;
    to.write_all(&[number.to_le_bytes(), length.to_le_bytes()].concat())?;
    to.write_all(bytes)?;
    to.flush()
}

/// Reads a frame; none at the end.
pub fn read_frame(from: &mut impl Read) -> std::io::Result<Option<(u32, Vec<u8>)>> {
    let mut head = [0; 8];
    let mut read = 0;
    while read < head.len() {
        match from.read(&mut head[read..])? {
            0 if read == 0 => return Ok(None),
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => read += count,
        }
    }
    let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four of eight bytes"));
    let (number, length) = (word(0), word(4));
    if FRAME_BYTES_MAX < length {
        return Err(std::io::Error::other(format!(
            "a message of {length} bytes, more than {FRAME_BYTES_MAX}"
        )));
    }
    let mut bytes = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut bytes)?;
    if bytes.len() < length as usize {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some((number, bytes)))
}

impl Crew {
    /// Works on all orders; `answered` is told of each answer with the number of its order, as they come.
    pub fn work(
        &self,
        orders: &[Vec<u8>],
        answered: &mut dyn FnMut(usize, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        if orders.is_empty() {
            return Ok(());
        }
        match self {
            Crew::Threads(count) => share(*count, orders, answered, |_| {
                Ok(|_: usize, order: &[u8]| Ok(message::work(order, &mut || !interrupt::is_asked())))
            }),
            Crew::Processes(count) => share(*count, orders, answered, |_| {
                let mut worker = None;
                Ok(move |number: usize, order: &[u8]| ask(&mut worker, number as u32, order))
            }),
            Crew::Ray { address, at_once } => ray(address.as_deref(), *at_once, orders, answered),
        }
    }
}

/// Threads that each take the next order until there is none; each has a worker of its own.
fn share<W>(
    count: usize,
    orders: &[Vec<u8>],
    answered: &mut dyn FnMut(usize, Vec<u8>) -> Result<()>,
    worker: impl Fn(usize) -> Result<W> + Sync,
) -> Result<()>
where
    W: FnMut(usize, &[u8]) -> Result<Vec<u8>>,
{
    let next = AtomicUsize::new(0);
    let (answers, come) = channel::<(usize, Result<Vec<u8>>)>();
    std::thread::scope(|scope| {
        for place in 0..count.min(orders.len()).max(1) {
            let (next, worker, answers) = (&next, &worker, answers.clone());
            scope.spawn(move || {
                let mut work = match worker(place) {
                    Ok(work) => work,
                    Err(error) => return drop(answers.send((0, Err(error)))),
                };
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(order) = orders.get(number).filter(|_| !interrupt::is_asked()) else { return };
                    if answers.send((number, work(number, order))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(answers);
        for (number, answer) in come {
            answered(number, answer?)?;
        }
        Ok(())
    })
}

/// A process that works on units, with its ends.
struct Worker {
    child: Child,
    orders: ChildStdin,
    answers: ChildStdout,
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Worker {
    fn start(mut command: Command) -> Result<Worker> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("a worker cannot be started")?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        let (Some(orders), Some(answers)) = (orders, answers) else { bail!("a worker without its ends") };
        Ok(Worker { child, orders, answers })
    }

    fn ask(&mut self, number: u32, order: &[u8]) -> std::io::Result<Vec<u8>> {
        write_frame(&mut self.orders, number, order)?;
        match read_frame(&mut self.answers)? {
            Some((answered, bytes)) if answered == number => Ok(bytes),
            _ => Err(std::io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Sends an order to this thread's process, and to a new one where that has died.
fn ask(worker: &mut Option<Worker>, number: u32, order: &[u8]) -> Result<Vec<u8>> {
    let mut last = None;
    for _ in 0..=RETRIES {
        let process = match worker {
            Some(process) => process,
            None => {
                let mut command = Command::new(std::env::current_exe().context("this program's own file")?);
                command.arg("unit-worker");
                worker.insert(Worker::start(command)?)
            }
        };
        match process.ask(number, order) {
            Ok(answer) => return Ok(answer),
            Err(error) => last = Some(error),
        }
        *worker = None;
        if interrupt::is_asked() {
            break;
        }
    }
    Err(anyhow!(
        "the worker of unit {number} died {RETRIES} times: {}",
        last.map_or(String::new(), |error| error.to_string())
    ))
}

/// All orders at once to the Python package, which hands them out as tasks; answers come back as they are ready.
fn ray(
    address: Option<&str>,
    at_once: usize,
    orders: &[Vec<u8>],
    answered: &mut dyn FnMut(usize, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let python = std::env::var_os("BEM_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = Command::new(&python);
    command.args(["-m", "bem.ray_engine", "--at-once", &at_once.to_string()]);
    if let Some(address) = address {
        command.args(["--address", address]);
    }
    let mut worker = Worker::start(command)
        .with_context(|| format!("--engine ray needs {} with the packages bem and ray", python.display()))?;
    for (number, order) in orders.iter().enumerate() {
        write_frame(&mut worker.orders, number as u32, order)
            .context("the Ray engine has ended; its words are above")?;
    }
    let mut open: BTreeSet<usize> = (0..orders.len()).collect();
    while !open.is_empty() {
        let frame = read_frame(&mut worker.answers).context("the Ray engine")?;
        let Some((number, bytes)) = frame else { bail!("the Ray engine has ended; its words are above") };
        if !open.remove(&(number as usize)) {
            bail!("the Ray engine answers unit {number} twice");
        }
        answered(number as usize, bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_and_what_is_cut_or_too_long_is_an_error() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, 7, b"unit").unwrap();
        write_frame(&mut bytes, 8, b"").unwrap();
        let mut from = bytes.as_slice();
        assert_eq!(read_frame(&mut from).unwrap(), Some((7, b"unit".to_vec())));
        assert_eq!(read_frame(&mut from).unwrap(), Some((8, Vec::new())));
        assert_eq!(read_frame(&mut from).unwrap(), None);
        for cut in 1..12 {
            assert!(read_frame(&mut &bytes[..cut]).is_err(), "{cut}");
        }
        assert!(read_frame(&mut [0, 0, 0, 0, 255, 255, 255, 255].as_slice()).is_err());
    }
}
