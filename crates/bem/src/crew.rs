//! Who works on units: threads of this process, processes of this program, or actors and tasks of a Ray cluster.
//!
//! All of them are sent the same bytes and answer with the same bytes ([`bem_engine::climb::message`]); answers are handed
//! back in the order of the orders. A worker that dies is started again and its unit with it: that costs time and nothing else.
//! A frame between processes is the unit's number, the number of the machine whose unit it is, the length and the bytes.
//! Clauses: PIPE-4, SCC-15; decisions D-132, D-321.

mod ray;

use crate::interrupt;
use anyhow::{Context as _, Result, anyhow, bail};
use bem_engine::climb::message;
use ray::RayEngine;
use std::io::{Read, Write};
use std::ops::Deref;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

/// Bytes of one message at most.
const FRAME_BYTES_MAX: u32 = 1 << 29;
/// Times that a unit is handed to a new process after its worker died.
const RETRIES: u32 = 8;

/// A unit to be worked on, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Which machine's unit it is: the same number for every unit of a specialist.
    pub machine: u32,
    /// The message.
    pub bytes: Vec<u8>,
}

impl Deref for Order {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A message between processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The number of the unit in its round.
    pub number: u32,
    /// Order or answer, and whose.
    pub order: Order,
}

/// Where units are worked on.
pub enum Crew {
    /// So many threads of this process.
    Threads(usize),
    /// So many processes of this program.
    Processes(usize),
    /// Actors and tasks of a Ray cluster, through the Python package.
    Ray(RayEngine),
}

/// Writes a frame.
pub fn write_frame(to: &mut impl Write, number: u32, machine: u32, bytes: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(std::io::Error::other)?;
    to.write_all(&[number.to_le_bytes(), machine.to_le_bytes(), length.to_le_bytes()].concat())?;
    to.write_all(bytes)?;
    to.flush()
}

/// Reads a frame; none at the end.
pub fn read_frame(from: &mut impl Read) -> std::io::Result<Option<Frame>> {
    let mut head = [0; 12];
    let mut read = 0;
    while read < head.len() {
        match from.read(&mut head[read..])? {
            0 if read == 0 => return Ok(None),
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => read += count,
        }
    }
    let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four of twelve bytes"));
    let (number, machine, length) = (word(0), word(4), word(8));
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
    Ok(Some(Frame { number, order: Order { machine, bytes } }))
}

impl Crew {
    /// A Ray cluster at this address, or one that is started here when it is needed; so many units at once.
    pub fn ray(address: Option<String>, at_once: usize) -> Crew {
        Crew::Ray(RayEngine::new(address, at_once))
    }

    /// Works on all orders; `answered` is told of each answer with the number of its order, as they come.
    pub fn work(
        &self,
        orders: &[Order],
        answered: &mut dyn FnMut(usize, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        if orders.is_empty() {
            return Ok(());
        }
        match self {
            Crew::Threads(count) => share(*count, orders, answered, |_| {
                Ok(|_: usize, order: &Order| Ok(message::work(order, &mut || !interrupt::is_asked())))
            }),
            Crew::Processes(count) => share(*count, orders, answered, |_| {
                let mut worker = None;
                Ok(move |number: usize, order: &Order| ask(&mut worker, number as u32, order))
            }),
            Crew::Ray(engine) => engine.work(orders, answered),
        }
    }
}

/// Threads that each take the next order until there is none; each has a worker of its own.
fn share<W>(
    count: usize,
    orders: &[Order],
    answered: &mut dyn FnMut(usize, Vec<u8>) -> Result<()>,
    worker: impl Fn(usize) -> Result<W> + Sync,
) -> Result<()>
where
    W: FnMut(usize, &Order) -> Result<Vec<u8>>,
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

    fn ask(&mut self, number: u32, order: &Order) -> std::io::Result<Vec<u8>> {
        write_frame(&mut self.orders, number, order.machine, order)?;
        match read_frame(&mut self.answers)? {
            Some(frame) if frame.number == number => Ok(frame.order.bytes),
            _ => Err(std::io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Sends an order to this thread's process, and to a new one where that has died.
fn ask(worker: &mut Option<Worker>, number: u32, order: &Order) -> Result<Vec<u8>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_and_what_is_cut_or_too_long_is_an_error() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, 7, 3, b"unit").unwrap();
        write_frame(&mut bytes, 8, 0, b"").unwrap();
        let frame = |number, machine, bytes: &[u8]| {
            Some(Frame { number, order: Order { machine, bytes: bytes.to_vec() } })
        };
        let mut from = bytes.as_slice();
        assert_eq!(read_frame(&mut from).unwrap(), frame(7, 3, b"unit"));
        assert_eq!(read_frame(&mut from).unwrap(), frame(8, 0, b""));
        assert_eq!(read_frame(&mut from).unwrap(), None);
        for cut in 1..16 {
            assert!(read_frame(&mut &bytes[..cut]).is_err(), "{cut}");
        }
        assert!(read_frame(&mut [[0; 8].as_slice(), &[255; 4]].concat().as_slice()).is_err());
    }
}
