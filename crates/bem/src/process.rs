//! A world in another program, stepped over a tool bus (TOOL_ENV): what stands behind `--env-cmd`, and behind a task that names
//! an ENV_TASK of a catalog.
//!
//! The bus is private: one simulator, as many requests as lines, and a worker that works where the caller would only wait,
//! so that a step costs no more changes of thread than the program itself. Clauses: GLE-9, TOOL-8; decisions D-74, D-205.

use bem_base::ids::ObjectId;
use bem_games::import::pipe::Transport;
use bem_tools::bus::{Channel, Request, key};
use bem_tools::cbor::Item;
use bem_tools::limits::PAYLOAD_MAX;
use bem_tools::worker::{Port, serve_one};
use bem_workers::catalog_file::{CatalogFile, Simulator};
use bem_workers::mapping::Shared;
use bem_workers::simulator::Simulators;
use std::sync::Arc;
use std::time::Duration;

/// A running program that is asked line by line over a tool bus.
pub struct Process {
    channel: Channel<Arc<Shared>>,
    port: Port<Arc<Shared>>,
    tool: Simulators,
    simulator: ObjectId,
    number: u64,
    is_open: bool,
    /// What the program answered to the last line.
    answer: Option<Result<String, String>>,
}

impl Process {
    /// Starts the command in a shell when its first line is asked for; no line may take longer than `timeout`.
    pub fn start(command: &str, timeout: Duration) -> Result<Process, String> {
        let simulator = Simulator { command: command.to_string(), timeout };
        let (catalog, simulator) =
            CatalogFile::for_simulator(simulator).map_err(|error| error.to_string())?;
        Process::named(Arc::new(catalog), simulator)
    }

    /// The simulator of this identifier in a catalog; it starts when its first line is asked for.
    pub fn named(catalog: Arc<CatalogFile>, simulator: ObjectId) -> Result<Process, String> {
        let kind = catalog.catalog.find("env").ok_or("the bus has no simulators")?;
        let mapping = Arc::new(Shared::create().map_err(|error| format!("{error:#}"))?);
        let channel = Channel::new(kind, Arc::clone(&mapping));
        let port = Port::open(mapping, 1).map_err(|error| error.to_string())?;
        let tool = Simulators::new(catalog);
        Ok(Process { channel, port, tool, simulator, number: 0, is_open: false, answer: None })
    }

    /// One request: the operation, and the line if there is one.
    fn ask(&mut self, operation: u16, line: Option<&str>) -> Result<String, String> {
        let payload =
            line.map(|line| Item::fields([(0, Item::Text(line.to_string()))]).to_bytes()).unwrap_or_default();
        self.number += 1;
        let asked = Request {
            operation,
            flags: 0,
            resource: self.simulator,
            payload: &payload,
            capacity: PAYLOAD_MAX as u32,
            number: self.number,
            key: key(self.number, &payload),
            is_idempotent: false,
            lease: u64::MAX,
            patience: 0,
        };
        self.channel.enqueue(&asked, 0).map_err(|refused| refused.to_string())?;
        serve_one(&mut self.port, &mut self.tool);
        let mut completed = Vec::new();
        self.channel.poll(0, 1, &mut completed);
        let done = completed.pop().ok_or("the simulator's worker has not answered")?;
        if let Some(code) = done.error {
            let words = String::from_utf8_lossy(&done.response).into_owned();
            return Err(if words.is_empty() { code.words().to_string() } else { words });
        }
        let answer = Item::from_bytes(&done.response).map_err(|error| error.to_string())?;
        let line = answer.field(0).and_then(Item::text).map(str::to_string);
        line.ok_or_else(|| "the simulator answers without a line".to_string())
    }
}

impl Transport for Process {
    fn send(&mut self, line: &str) -> Result<(), String> {
        // What goes wrong is said where the answer is missing.
        self.answer = Some(self.ask(1, Some(line)));
        Ok(())
    }

    fn receive(&mut self) -> Result<String, String> {
        if !self.is_open {
            self.is_open = true;
            return self.ask(0, None);
        }
        self.answer.take().unwrap_or_else(|| Err("nothing was asked".to_string()))
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
