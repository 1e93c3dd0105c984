//! A program that speaks line by line, with a time limit on every line.
//!
//! A thread reads the program's lines, so that waiting can end; the program's own messages on standard error pass
//! through. Dropping the process closes its input, gives it a moment to leave, and then ends it. Clause: GLE-9.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Bytes of one line.
pub const LINE_BYTES_MAX: usize = 1 << 16;

/// How long a program may take to leave after its input was closed.
const GRACE: Duration = Duration::from_millis(500);

/// What is said of a program that is gone.
const ENDED: &str = "the program has ended";

/// A running program that is a child of this one and speaks line by line over its pipes.
pub struct Process {
    child: Child,
    /// None once the input is closed.
    input: Option<ChildStdin>,
    lines: Receiver<Result<String, String>>,
    timeout: Duration,
}

impl Process {
    /// Starts the command in a shell, in this folder (the present one if it is empty); no line may take longer than `timeout`.
    pub fn start(command: &str, folder: &Path, timeout: Duration) -> Result<Process, String> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        // A process group of its own, so that what the shell starts can be ended with it.
        let mut child = Command::new("sh")
            .args(["-c", command])
            .current_dir(folder)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the command {command:?} cannot be started: {error}"))?;
        let output = child.stdout.take().ok_or("the program has no output")?;
        let input = child.stdin.take();
        // One line may wait here; a program that floods its output blocks instead of filling the memory.
        let (sender, lines) = sync_channel(1);
        std::thread::spawn(move || {
            let mut reader = BufReader::new(output);
            loop {
                let line = read_line(&mut reader);
                let last = line.is_err();
                if sender.send(line).is_err() || last {
                    return;
                }
            }
        });
        Ok(Process { child, input, lines, timeout })
    }
}

impl Process {
    /// How the program ended, waiting a moment for it: its output closes before it is gone.
    fn end(&mut self) -> String {
        let pause = Duration::from_millis(5);
        for _ in 0..GRACE.as_millis() / pause.as_millis() {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(pause),
                Ok(Some(status)) => {
                    return match (status.code(), status.signal()) {
                        (Some(code), _) => format!("{ENDED} with exit status {code}"),
                        (None, Some(signal)) => format!("{ENDED} by signal {signal}"),
                        (None, None) => ENDED.to_string(),
                    };
                }
                Err(_) => break,
            }
        }
        "the program has closed its output".to_string()
    }
}

/// One line without its end, at most as long as the protocol allows.
fn read_line(reader: &mut BufReader<ChildStdout>) -> Result<String, String> {
    let mut bytes = Vec::new();
    let limit = LINE_BYTES_MAX as u64 + 2;
    reader.take(limit).read_until(b'\n', &mut bytes).map_err(|error| format!("reading failed: {error}"))?;
    if bytes.is_empty() {
        return Err(ENDED.to_string());
    }
    if !bytes.ends_with(b"\n") && LINE_BYTES_MAX < bytes.len() {
        return Err(format!("a line of more than {LINE_BYTES_MAX} bytes"));
    }
    String::from_utf8(bytes)
        .map(|text| text.trim_end().to_string())
        .map_err(|_| "a line that is not UTF-8".to_string())
}

impl Process {
    /// Sends one line; the line end is added.
    pub fn send(&mut self, line: &str) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("the program's input is closed")?;
        let text = format!("{line}\n");
        let sent = input.write_all(text.as_bytes()).and_then(|()| input.flush());
        sent.map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => self.end(),
            _ => format!("the program does not read: {error}"),
        })
    }

    /// Waits for one line, without its line end.
    pub fn receive(&mut self) -> Result<String, String> {
        match self.lines.recv_timeout(self.timeout) {
            Ok(Err(reason)) if reason == ENDED => Err(self.end()),
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("no answer within {} s (--env-timeout)", self.timeout.as_secs_f64()))
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.end()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.input = None;
        let pause = Duration::from_millis(5);
        for _ in 0..GRACE.as_millis() / pause.as_millis() {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(pause);
        }
        // A program that ignores the end of its input. It may be gone by now, which is just as well.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
