//! The Ray engine: one process of the Python package for a whole run, which hands units out as actors and tasks.
//!
//! Whoever is asked to stop keeps the answers that have come and ends the process; what was under way is worked on again by
//! whoever goes on. Must not know what a unit is. Clauses: PIPE-4, SCC-15; decisions D-132, D-247, D-321.

use super::{Frame, Order, read_frame, write_frame};
use crate::interrupt;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer is waited for between two looks for an interrupt.
const LOOK: Duration = Duration::from_millis(100);
/// A process that was told to end is ended after this time.
const END_AFTER: Duration = Duration::from_secs(15);

/// What a process that has ended leaves to be said.
const ENDED: &str = "the Ray engine has ended; its words are above";

/// A Ray cluster, reached through the Python package.
pub struct RayEngine {
    /// The cluster's address; without one a cluster is started here.
    address: Option<String>,
    /// How many units are worked on at once.
    at_once: usize,
    /// The process, from the first round on.
    process: Mutex<Option<Process>>,
}

impl RayEngine {
    pub fn new(address: Option<String>, at_once: usize) -> RayEngine {
        RayEngine { address, at_once, process: Mutex::new(None) }
    }

    fn start(&self) -> Result<Process> {
        let python = std::env::var_os("BEM_PYTHON").unwrap_or_else(|| "python3".into());
        let mut command = Command::new(&python);
        command.args(["-m", "bem.ray_engine", "--at-once", &self.at_once.to_string()]);
        if let Some(address) = &self.address {
            command.args(["--address", address]);
        }
        Process::start(command)
            .with_context(|| format!("--engine ray needs {} with the packages bem and ray", python.display()))
    }

    /// Works on all orders; answers come as they are ready. Where somebody asks to stop, it ends with those that have come.
    pub fn work(
        &self,
        orders: &[Order],
        answered: &mut dyn FnMut(usize, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let mut kept = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        // Only a round that has gone well leaves the process for the next one.
        let process = kept.take().map_or_else(|| self.start(), Ok)?;
        for (number, order) in orders.iter().enumerate() {
            let frame = Frame { number: number as u32, order: order.clone() };
            process.orders.send(frame).ok().context(ENDED)?;
        }
        let mut open: BTreeSet<u32> = (0..orders.len() as u32).collect();
        while !open.is_empty() {
            let wait = if interrupt::is_asked() { Duration::ZERO } else { LOOK };
            let frame = match process.answers.recv_timeout(wait) {
                Ok(frame) => frame.context("the Ray engine")?,
                Err(RecvTimeoutError::Timeout) if interrupt::is_asked() => return Ok(()),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => bail!(ENDED),
            };
            if !open.remove(&frame.number) {
                bail!("the Ray engine answers unit {} twice", frame.number);
            }
            answered(frame.number as usize, frame.order.bytes)?;
        }
        *kept = Some(process);
        Ok(())
    }
}

/// The process, with a thread at either end so that nobody waits for it who may be interrupted.
struct Process {
    child: Child,
    orders: Sender<Frame>,
    answers: Receiver<std::io::Result<Frame>>,
}

impl Process {
    fn start(mut command: Command) -> Result<Process> {
        // In a group of its own, Ctrl-C at the terminal is this process's to hear, which ends the other one.
        let mut child = command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the Ray engine cannot be started")?;
        let (Some(mut input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("a process without its ends");
        };
        let (orders, to_write) = channel::<Frame>();
        std::thread::spawn(move || {
            for Frame { number, order } in to_write {
                if write_frame(&mut input, number, order.machine, &order).is_err() {
                    return;
                }
            }
        });
        let (read, answers) = channel();
        std::thread::spawn(move || {
            while let Some(frame) = read_frame(&mut output).transpose() {
                let is_error = frame.is_err();
                if read.send(frame).is_err() || is_error {
                    return;
                }
            }
        });
        Ok(Process { child, orders, answers })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Without its sender the thread that writes closes the process's input, which tells it to end.
        self.orders = channel().0;
        let began = Instant::now();
        while began.elapsed() < END_AFTER {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(LOOK),
                _ => return,
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every unit with its bytes and its machine, and counts how often it was started.
    const ENGINE: &str = r#"
import struct, sys
open("starts", "a").write("x")
head = struct.Struct("<III")
while data := sys.stdin.buffer.read(head.size):
    number, machine, length = head.unpack(data)
    body = sys.stdin.buffer.read(length) + bytes([machine])
    if body.startswith(b"die"):
        sys.exit(3)
    sys.stdout.buffer.write(head.pack(number, machine, len(body)) + body)
    sys.stdout.buffer.flush()
"#;

    fn order(machine: u32, bytes: &[u8]) -> Order {
        Order { machine, bytes: bytes.to_vec() }
    }

    #[test]
    fn one_process_serves_all_rounds_and_another_one_follows_where_it_has_died() {
        let folder = tempfile::tempdir().unwrap();
        let engine = RayEngine::new(None, 1);
        let start = || {
            let mut command = Command::new("python3");
            command.args(["-c", ENGINE]).current_dir(folder.path());
            Process::start(command).unwrap()
        };
        let starts = || std::fs::read(folder.path().join("starts")).unwrap().len();
        *engine.process.lock().unwrap() = Some(start());
        for round in 0..3u8 {
            let mut answers = Vec::new();
            let orders = [order(4, &[round]), order(5, &[round, round])];
            engine
                .work(&orders, &mut |number, bytes| {
                    answers.push((number, bytes));
                    Ok(())
                })
                .unwrap();
            answers.sort();
            assert_eq!(answers, [(0, vec![round, 4]), (1, vec![round, round, 5])]);
        }
        assert_eq!(starts(), 1);
        let died = engine.work(&[order(1, b"die")], &mut |_, _| Ok(())).unwrap_err();
        assert_eq!(died.to_string(), ENDED);
        assert!(engine.process.lock().unwrap().is_none());
        *engine.process.lock().unwrap() = Some(start());
        engine.work(&[order(1, b"live")], &mut |_, _| Ok(())).unwrap();
        assert_eq!(starts(), 2);
    }
}
