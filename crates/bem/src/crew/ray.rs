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
/// How long a process that was told to end is waited for between two looks.
const LOOK_ENDING: Duration = Duration::from_millis(20);
/// A process that was told to end is ended after this time.
const END_AFTER: Duration = Duration::from_secs(15);
/// The same where somebody waits who has pressed Ctrl-C. A cluster elsewhere notices that it is gone.
const END_AFTER_INTERRUPT: Duration = Duration::from_secs(5);

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
        self.work_until(&interrupt::is_asked, orders, answered)
    }

    /// The same, with whoever says that somebody has asked to stop.
    fn work_until(
        &self,
        is_asked: &dyn Fn() -> bool,
        orders: &[Order],
        answered: &mut dyn FnMut(usize, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let mut kept = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        // Only a round that has gone well leaves the process for the next one.
        let mut process = kept.take().map_or_else(|| self.start(), Ok)?;
        for (number, order) in orders.iter().enumerate() {
            let frame = Frame { number: number as u32, order: order.clone() };
            process.orders.send(frame).ok().context(ENDED)?;
        }
        match gather(orders.len(), &process.answers, is_asked, answered)? {
            true => *kept = Some(process),
            false => process.end_after = END_AFTER_INTERRUPT,
        }
        Ok(())
    }
}

/// Takes one answer for each of so many units, in whatever order they come; false where somebody has asked to stop before all had
/// come. Those that have come by then are taken.
fn gather(
    units: usize,
    answers: &Receiver<std::io::Result<Frame>>,
    is_asked: &dyn Fn() -> bool,
    answered: &mut dyn FnMut(usize, Vec<u8>) -> Result<()>,
) -> Result<bool> {
    let mut open: BTreeSet<usize> = (0..units).collect();
    while !open.is_empty() {
        let is_over = is_asked();
        let frame = match answers.recv_timeout(if is_over { Duration::ZERO } else { LOOK }) {
            Ok(frame) => frame.context("the Ray engine")?,
            Err(RecvTimeoutError::Timeout) if is_over => return Ok(false),
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => bail!(ENDED),
        };
        let number = frame.number as usize;
        if units <= number {
            bail!("the Ray engine answers unit {number}, and was given {units}");
        }
        if !open.remove(&number) {
            bail!("the Ray engine answers unit {number} twice");
        }
        answered(number, frame.order.bytes)?;
    }
    Ok(true)
}

/// The process, with a thread at either end so that nobody waits for it who may be interrupted.
struct Process {
    child: Child,
    orders: Sender<Frame>,
    answers: Receiver<std::io::Result<Frame>>,
    /// How long it may take to end when it is told to.
    end_after: Duration,
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
        Ok(Process { child, orders, answers, end_after: END_AFTER })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Without its sender the thread that writes closes the process's input, which tells it to end.
        self.orders = channel().0;
        let began = Instant::now();
        while began.elapsed() < self.end_after {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(LOOK_ENDING),
                _ => return,
            }
        }
        // With all that Ray has started in its group: some of that outlives its parent.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::path::Path;

    /// Answers every unit with its bytes and its machine, and counts how often it was started. Some units ask for something else.
    const ENGINE: &str = r#"
import struct, sys, time
open("starts", "a").write("x")
head, late = struct.Struct("<III"), []

def answer(number, machine, body):
    sys.stdout.buffer.write(head.pack(number, machine, len(body)) + body)
    sys.stdout.buffer.flush()

while data := sys.stdin.buffer.read(head.size):
    number, machine, length = head.unpack(data)
    order = sys.stdin.buffer.read(length)
    frame = number, machine, order + bytes([machine])
    if order == b"late":
        late.append(frame)
    elif order == b"foreign":
        answer(number + 100, machine, order)
    elif order == b"die":
        sys.exit(3)
    elif order == b"cut":
        sys.stdout.buffer.write(data[:7])
        sys.exit(0)
    elif order != b"silent":
        answer(*frame)
    if order == b"twice":
        answer(*frame)
    if order == b"now":
        while late:
            answer(*late.pop())
"#;

    type Answers = Vec<(usize, Vec<u8>)>;

    fn order(machine: u32, bytes: &[u8]) -> Order {
        Order { machine, bytes: bytes.to_vec() }
    }

    fn start(folder: &Path) -> Process {
        let mut command = Command::new("python3");
        command.args(["-c", ENGINE]).current_dir(folder);
        Process::start(command).unwrap()
    }

    fn begin(engine: &RayEngine, folder: &Path) {
        *engine.process.lock().unwrap() = Some(start(folder));
    }

    fn is_kept(engine: &RayEngine) -> bool {
        engine.process.lock().unwrap().is_some()
    }

    /// A round until so many answers have come: the answers in the order in which they came, and how it ended.
    fn round(engine: &RayEngine, until: usize, orders: &[&[u8]]) -> (Answers, Result<()>) {
        let orders: Vec<Order> = (4..).zip(orders).map(|(machine, bytes)| order(machine, bytes)).collect();
        let (mut answers, come) = (Answers::new(), Cell::new(0));
        let ended = engine.work_until(&|| until <= come.get(), &orders, &mut |number, bytes| {
            come.set(come.get() + 1);
            answers.push((number, bytes));
            Ok(())
        });
        (answers, ended)
    }

    #[test]
    fn one_process_serves_all_rounds_and_another_one_follows_where_it_has_died() {
        let folder = tempfile::tempdir().unwrap();
        let engine = RayEngine::new(None, 1);
        let starts = || std::fs::read(folder.path().join("starts")).unwrap().len();
        begin(&engine, folder.path());
        for number in 0..3u8 {
            let (answers, ended) = round(&engine, usize::MAX, &[&[number], &[number, number]]);
            ended.unwrap();
            assert_eq!(answers, [(0, vec![number, 4]), (1, vec![number, number, 5])]);
        }
        assert_eq!(starts(), 1);
        // What it has answered before it died is kept.
        let (answers, died) = round(&engine, usize::MAX, &[b"one", b"die"]);
        assert_eq!(
            (answers, died.unwrap_err().to_string()),
            (vec![(0, b"one\x04".to_vec())], ENDED.to_string())
        );
        assert!(!is_kept(&engine));
        begin(&engine, folder.path());
        round(&engine, usize::MAX, &[b"live"]).1.unwrap();
        assert_eq!(starts(), 2);
    }

    #[test]
    fn answers_come_in_any_order() {
        let folder = tempfile::tempdir().unwrap();
        let engine = RayEngine::new(None, 3);
        begin(&engine, folder.path());
        let (answers, ended) = round(&engine, usize::MAX, &[b"late", b"late", b"now", b"after"]);
        ended.unwrap();
        let places: Vec<usize> = answers.iter().map(|(place, _)| *place).collect();
        assert_eq!(places, [2, 1, 0, 3]);
        assert_eq!(answers[1], (1, b"late\x05".to_vec()));
        assert!(is_kept(&engine));
    }

    #[test]
    fn an_answer_that_comes_twice_that_nobody_asked_for_or_that_is_cut_off_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for (orders, wrong) in [
            ([b"twice".as_slice(), b"silent"], "answers unit 0 twice"),
            ([b"foreign".as_slice(), b"silent"], "answers unit 100, and was given 2"),
            ([b"cut".as_slice(), b"silent"], "the Ray engine"),
        ] {
            let engine = RayEngine::new(None, 1);
            begin(&engine, folder.path());
            let said = round(&engine, usize::MAX, &orders).1.unwrap_err().to_string();
            assert!(said.contains(wrong), "{said}");
            // Nobody goes on with a process that answers wrongly.
            assert!(!is_kept(&engine));
        }
    }

    #[test]
    fn an_interrupt_keeps_the_answers_that_have_come_and_ends_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let engine = RayEngine::new(None, 2);
        begin(&engine, folder.path());
        // Asked for when the second answer has come; the third never does.
        let (answers, ended) = round(&engine, 2, &[b"one", b"two", b"silent"]);
        ended.unwrap();
        assert_eq!(answers, [(0, b"one\x04".to_vec()), (1, b"two\x05".to_vec())]);
        assert!(!is_kept(&engine));
        // What waits to be taken when it is asked for is taken; a round whose last answer is among it is whole.
        for units in [2, 3] {
            let (send, answers) = channel();
            for number in [1, 0] {
                send.send(Ok(Frame { number, order: order(0, &[7]) })).unwrap();
            }
            let mut taken = Vec::new();
            let is_whole = gather(units, &answers, &|| true, &mut |number, _| {
                taken.push(number);
                Ok(())
            });
            assert_eq!((is_whole.unwrap(), taken), (units == 2, vec![1, 0]));
        }
    }

    #[test]
    fn a_process_that_does_not_end_when_it_is_told_to_is_ended() {
        let mut command = Command::new("python3");
        command.args(["-c", "import time; time.sleep(1000)"]);
        let mut process = Process::start(command).unwrap();
        process.end_after = Duration::ZERO;
        let place = format!("/proc/{}", process.child.id());
        assert!(Path::new(&place).exists());
        drop(process);
        // Its number is free again only when it has ended and was waited for.
        assert!(!Path::new(&place).exists());
    }
}
