//! A world in another program: the process behind [`bem_games::import::pipe`], with a time limit on every line.
//!
//! A thread reads the program's lines, so that waiting can end; the program's own messages on standard error pass
//! through. Dropping the process closes its input, gives it a moment to leave, and then ends it. Clauses: GLE-9.

use bem_games::import::pipe::{LINE_BYTES_MAX, Transport};
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// How long a program may take to leave after its input was closed.
const GRACE: Duration = Duration::from_millis(500);

/// What is said of a program that is gone.
const ENDED: &str = "the program has ended";

/// A running program that speaks line by line.
pub struct Process {
    child: Child,
    /// None once the input is closed.
    input: Option<ChildStdin>,
    lines: Receiver<Result<String, String>>,
    timeout: Duration,
}

impl Process {
    /// Starts the command in a shell; no line may take longer than `timeout`.
    pub fn start(command: &str, timeout: Duration) -> Result<Process, String> {
        // A process group of its own, so that what the shell starts can be ended with it.
        let mut child = Command::new("sh")
            .args(["-c", command])
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

impl Transport for Process {
    fn send(&mut self, line: &str) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("the program's input is closed")?;
        let text = format!("{line}\n");
        let sent = input.write_all(text.as_bytes()).and_then(|()| input.flush());
        sent.map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => self.end(),
            _ => format!("the program does not read: {error}"),
        })
    }

    fn receive(&mut self) -> Result<String, String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::environment::Environment as _;
    use bem_games::import::pipe::PipeWorld;

    fn open(command: &str, timeout: Duration) -> Result<PipeWorld<Process>, String> {
        let process = Process::start(command, timeout)?;
        PipeWorld::open(process).map_err(|error| error.to_string())
    }

    const HELLO: &str = r#"{"hello":1,"obs_bits":1,"actions":2,"horizon":9,"reward_range":[0,1]}"#;

    #[test]
    fn a_silent_program_is_given_up() {
        let error = open("sleep 30", Duration::from_millis(50)).err().unwrap();
        assert_eq!(error, "line 1: no answer within 0.05 s (--env-timeout)");
    }

    #[test]
    fn a_dead_program_is_noticed() {
        let error = open("true", Duration::from_secs(10)).err().unwrap();
        assert_eq!(error, "line 1: the program has ended with exit status 0");
        let mut world = open(&format!("echo '{HELLO}'; read line; exit 3"), Duration::from_secs(10)).unwrap();
        assert_eq!(
            world.reset(1).unwrap_err().to_string(),
            "line 2: the program has ended with exit status 3"
        );
        let error = open("kill -9 $$", Duration::from_secs(10)).err().unwrap();
        assert_eq!(error, "line 1: the program has ended by signal 9");
    }

    #[test]
    fn an_endless_line_is_refused() {
        let error = open("yes | tr -d '\\n'", Duration::from_secs(10)).err().unwrap();
        assert_eq!(error, "line 1: a line of more than 65536 bytes");
    }

    #[test]
    fn lines_go_both_ways() {
        let command = format!("echo '{HELLO}'; while read line; do echo '{{\"obs\":\"1\"}}'; done");
        let mut world = open(&command, Duration::from_secs(10)).unwrap();
        world.reset(1).unwrap();
        assert!(world.observation().get(0));
    }

    #[test]
    fn gymnasium_worlds_keep_the_protocol_for_whole_episodes() {
        let program =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gymnasium_env.py");
        for (name, bits, actions) in [("FrozenLake", 4, 4), ("CliffWalking", 6, 4), ("Taxi", 11, 6)] {
            let command = format!("python3 {} {name}", program.display());
            let mut world = open(&command, Duration::from_secs(60)).unwrap_or_else(|error| {
                panic!("{error}: if the Python package gymnasium is missing, run `cargo xtask test`")
            });
            assert_eq!((world.shape().observation_bits, world.shape().actions), (bits, actions), "{name}");
            let mut random = bem_base::prng::Prng::stream(1, name);
            for seed in 0..3 {
                world.reset(seed).unwrap();
                while !world.step(random.below(u64::from(actions)) as u16).unwrap().done {}
            }
        }
    }
}
