//! Everything that is served, as a function of the inputs so far.
//!
//! A request is checked first ([`Service::ask`] and its like): what is refused, or was said before, is no input and leaves no
//! trace. An input that passed gets the next number and takes effect ([`Service::apply`]). Must not know who asks, the ledger
//! or when rounds are worked on. Clauses: VM-13, LOG-4, LOG-5; decisions D-67, D-68.

use crate::frozen::Frozen;
use crate::input::{Input, SpecError, WorldIndex, WorldSpec, fits, is_name};
use crate::limits::{EPISODE_BYTES_MAX, START_BYTES_MAX, WORLDS_MAX};
use crate::offers::{self, Proposed};
use crate::people::oversight::Oversight;
use crate::people::{Note, People};
use crate::round::{Brought, Done, Job};
use crate::tools::Tools;
use crate::world::World;
use bem_base::digest::hash_parts;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_engine::chronicle::PatchNote;
use bem_engine::learner::Offers;
use bem_engine::serving::{Begun, Choice, Round, Searching, settings_of};
use bem_engine::start::Start;
use bem_engine::state::RestoreError;
use bem_ledger::entry::ToolCall;
use bem_machine::config::GenesisConfig;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The first words of a service's configuration.
const MAGIC: &str = "bem service 1";

/// What a history of a service begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceConfig {
    /// All random streams come from this.
    pub seed: u64,
    /// The parameters in force.
    pub parameters: Arc<GenesisConfig>,
}

impl ServiceConfig {
    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.text(MAGIC);
        writer.u64(self.seed);
        self.parameters.encode(&mut writer);
        writer.into_bytes()
    }

    /// Reads canonical bytes back; other histories have other configurations.
    pub fn from_bytes(bytes: &[u8]) -> Result<ServiceConfig, DecodeError> {
        let mut reader = Reader::new(bytes);
        let foreign = reader.error("not the configuration of a service");
        if reader.text()? != MAGIC {
            return Err(foreign);
        }
        let (seed, parameters) = (reader.u64()?, Arc::new(GenesisConfig::decode(&mut reader)?));
        reader.finish()?;
        Ok(ServiceConfig { seed, parameters })
    }
}

/// What kind of refusal it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The request itself is wrong.
    Bad,
    /// What it names is not there, or not any more.
    Missing,
    /// It contradicts what is there.
    Conflict,
    /// There is no room.
    Full,
    /// There is no room just now: it may be asked again.
    Busy,
    /// Others may, this caller may not.
    Forbidden,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What kind it is.
    pub kind: RefusalKind,
    /// The field that is wrong.
    pub field: &'static str,
    /// One word for programs.
    pub code: &'static str,
    /// One line for people.
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(
        kind: RefusalKind,
        field: &'static str,
        code: &'static str,
        message: String,
    ) -> Refusal {
        Refusal { kind, field, code, message }
    }
}

impl From<SpecError> for Refusal {
    fn from(error: SpecError) -> Refusal {
        Refusal::new(RefusalKind::Bad, error.field, "bad_field", error.reason)
    }
}

/// What an input brought.
#[derive(Debug)]
pub enum Effect {
    /// A world is there, with what was decided about patches before its first step.
    Opened(WorldIndex, Vec<PatchNote>),
    /// A decision.
    Decided(Begun, Choice),
    /// An outcome was booked.
    Rewarded,
    /// A world is gone.
    Forgotten(WorldIndex),
    /// A round is to be worked on.
    Began(Box<Job>),
    /// A round takes effect; nothing where it was too early to search.
    Published(WorldIndex, Option<Brought>),
    /// Something came from people; what follows is in the notes.
    People,
    /// A request to a tool moved on.
    Tool(Box<ToolCall>),
    /// Somebody proposed machines for a world.
    Proposed,
}

/// Everything that is served.
#[derive(Debug)]
pub struct Service {
    config: ServiceConfig,
    /// The number of the last input.
    last: u64,
    /// By place; nothing where a world was forgotten.
    worlds: Vec<Option<World>>,
    names: BTreeMap<String, WorldIndex>,
    /// A world that is about to be opened: it was tried when it was checked.
    tried: Option<(WorldSpec, Box<(Searching, Round)>)>,
    pub(crate) people: People,
    /// What the last input did to questions.
    pub(crate) moved: Vec<Note>,
    /// Requests to tools.
    tools: Tools,
    /// What models propose, by world.
    offers: BTreeMap<u16, Offers>,
}

impl Service {
    /// Nothing is served yet.
    pub fn new(config: ServiceConfig) -> Service {
        Service {
            config,
            last: 0,
            worlds: Vec::new(),
            names: BTreeMap::new(),
            tried: None,
            people: People::default(),
            moved: Vec::new(),
            tools: Tools::default(),
            offers: BTreeMap::new(),
        }
    }

    /// What the last input did to questions.
    pub fn moved(&self) -> &[Note] {
        &self.moved
    }

    /// Requests to tools.
    pub fn tools(&self) -> &Tools {
        &self.tools
    }

    /// How much was ever proposed for a world.
    pub fn offered(&self, world: WorldIndex) -> u64 {
        self.offers.get(&world.0).map_or(0, Offers::count)
    }

    /// What the history begins with.
    pub fn config(&self) -> &ServiceConfig {
        &self.config
    }

    /// The number of the last input.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The worlds that are served, by name.
    pub fn worlds(&self) -> impl Iterator<Item = (WorldIndex, &World)> {
        self.names.values().filter_map(|index| Some((*index, self.world(*index)?)))
    }

    /// The worlds that are served as they were declared, by place.
    pub(crate) fn specs(&self) -> BTreeMap<u16, WorldSpec> {
        self.worlds().map(|(index, world)| (index.0, world.spec().clone())).collect()
    }

    /// A world by its place.
    pub fn world(&self, index: WorldIndex) -> Option<&World> {
        self.worlds.get(usize::from(index.0))?.as_ref()
    }

    pub(crate) fn world_mut(&mut self, index: WorldIndex) -> Option<&mut World> {
        self.worlds.get_mut(usize::from(index.0))?.as_mut()
    }

    /// A world by its name.
    pub fn find(&self, name: &str) -> Result<(WorldIndex, &World), Refusal> {
        let missing = || {
            let shown = if is_name(name) { name } else { "of this name" };
            Refusal::new(RefusalKind::Missing, "world", "unknown_world", format!("there is no world {shown}"))
        };
        let index = *self.names.get(name).ok_or_else(missing)?;
        Ok((index, self.world(index).ok_or_else(missing)?))
    }

    /// A new world: an input if it is new, nothing if it is there as it is.
    pub fn create(&mut self, spec: WorldSpec) -> Result<Option<Input>, Refusal> {
        spec.check()?;
        if let Ok((_, known)) = self.find(&spec.name) {
            return match *known.spec() == spec {
                true => Ok(None),
                false => {
                    let message = format!("world {} is there with another shape", spec.name);
                    Err(Refusal::new(RefusalKind::Conflict, "name", "other_shape", message))
                }
            };
        }
        if WORLDS_MAX <= self.worlds.len() {
            let message = format!("all {WORLDS_MAX} worlds of this history were used");
            return Err(Refusal::new(RefusalKind::Full, "name", "too_many_worlds", message));
        }
        // A world that the machine cannot hold is refused before it is an input.
        let opened = self.open(&spec, self.worlds.len());
        let opened =
            opened.map_err(|reason| Refusal::new(RefusalKind::Bad, "actions", "does_not_fit", reason))?;
        self.tried = Some((spec.clone(), Box::new(opened)));
        Ok(Some(Input::World(Box::new(spec))))
    }

    fn open(&self, spec: &WorldSpec, place: usize) -> Result<(Searching, Round), String> {
        let parts =
            [&self.config.seed.to_le_bytes()[..], &(place as u64).to_le_bytes(), spec.name.as_bytes()];
        let digest = hash_parts("bem/served-world", &parts);
        let seed = digest.as_bytes().iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte));
        let settings = settings_of(&self.config.parameters, seed);
        let opened = Searching::open(&spec.shape, settings, spec.min_propensity, &spec.forbidden);
        opened.map_err(|error| error.to_string())
    }

    /// What a new world begins with, as far as it fits the world and an input has room for it: the latest episodes are kept.
    pub fn start_for(spec: &WorldSpec, start: Start) -> Result<Box<Start>, Refusal> {
        let length = |start: &Start| {
            let mut writer = Writer::new();
            start.encode(&mut writer);
            writer.as_bytes().len()
        };
        let mut start = Start { baseline: None, ..start }.fitting(&spec.shape);
        while START_BYTES_MAX < length(&start) && !start.episodes.is_empty() {
            start.episodes.drain(..start.episodes.len().div_ceil(8));
        }
        if start.is_empty() || START_BYTES_MAX < length(&start) {
            let Shape { observation_bits, actions, horizon, .. } = spec.shape;
            let message = format!(
                "nothing of it fits world {}: {observation_bits} bits, {actions} actions, episodes of at most {horizon} steps, at most \
                 {START_BYTES_MAX} bytes",
                spec.name
            );
            return Err(Refusal::new(RefusalKind::Bad, "start_from", "does_not_fit", message));
        }
        Ok(Box::new(start))
    }

    /// A decision that is asked for.
    pub fn ask(&self, world: WorldIndex, observation: Bits, episode: &str) -> Result<Input, Refusal> {
        let served = self.served(world)?;
        if !fits(&observation, &served.spec().shape) {
            let message = format!("obs has more than {} bits", served.spec().shape.observation_bits);
            return Err(Refusal::new(RefusalKind::Bad, "obs", "out_of_range", message));
        }
        if EPISODE_BYTES_MAX < episode.len() {
            let message = format!("episode has more than {EPISODE_BYTES_MAX} bytes");
            return Err(Refusal::new(RefusalKind::Bad, "episode", "out_of_range", message));
        }
        served.check_episode(episode)?;
        Ok(Input::Decide { world, observation, episode: episode.to_string() })
    }

    /// An outcome: an input if it is new, nothing if it was said before.
    pub fn reward(
        &self,
        world: WorldIndex,
        decision: u64,
        outcome: Outcome,
    ) -> Result<Option<Input>, Refusal> {
        let is_new = self.served(world)?.check_reward(decision, outcome)?;
        let Outcome { reward, done, bad } = outcome;
        Ok(is_new.then_some(Input::Reward { world, decision, reward, done, bad }))
    }

    /// What is seen after a decision says that its step was BAD: an input if its outcome came without that.
    pub fn find_bad(&self, world: WorldIndex, decision: u64) -> Option<Input> {
        self.world(world)?.is_to_be_bad(decision).then_some(Input::Bad { world, decision })
    }

    fn served(&self, world: WorldIndex) -> Result<&World, Refusal> {
        let gone =
            || Refusal::new(RefusalKind::Missing, "world", "unknown_world", "the world is gone".to_string());
        self.world(world).ok_or_else(gone)
    }

    /// A round that should begin now, if one should: the one that people want first, or the first by name.
    pub fn due_round(&self) -> Option<Input> {
        // What people want to be learned first comes first; otherwise the first by name.
        let due = self
            .worlds()
            .filter(|(index, world)| self.may_learn(*index) && world.is_round_due(self.offered(*index)));
        let wanted = due.map(|(index, _)| index).reduce(|best, next| {
            if self.people.prior(best.0) < self.people.prior(next.0) { next } else { best }
        })?;
        Some(Input::Search { world: wanted })
    }

    /// Whether a round is under way somewhere.
    pub fn is_searching(&self) -> bool {
        self.worlds().any(|(_, world)| world.is_searching())
    }

    /// An input takes effect and gets the next number. `done` is what a round brought, for the input that publishes it. An
    /// error means that the input does not fit what came before: no history has it.
    pub fn apply(&mut self, input: &Input, done: Option<Done>) -> Result<Effect, &'static str> {
        let number = self.last + 1;
        self.moved.clear();
        self.maintain(number);
        let effect = match input {
            Input::People(said) => self.apply_people(said, number)?,
            Input::World(spec) => self.open_world(spec)?,
            Input::Start { world, start } => {
                let served = self.world_mut(*world).ok_or("a start in a world that is not served")?;
                served.begin_with(Start::clone(start))?;
                Effect::Rewarded
            }
            Input::Decide { world, observation, episode } => {
                let world = self.world_mut(*world).ok_or("a decision in a world that is not served")?;
                world.check_episode(episode).map_err(|_| "an episode that this world does not have")?;
                let (begun, choice) = world.decide(number, *observation, episode);
                Effect::Decided(begun, choice)
            }
            Input::Reward { world, decision, reward, done, bad } => {
                let index = *world;
                let world = self.world_mut(index).ok_or("a reward in a world that is not served")?;
                let outcome = Outcome { reward: *reward, done: *done, bad: *bad };
                let episodes = world.statistics().returns.count;
                match world.check_reward(*decision, outcome) {
                    Ok(true) => world.reward(*decision, outcome),
                    _ => return Err("a reward that its decision cannot have"),
                }
                self.watch_outcome(index, (*decision, *bad), episodes, number);
                Effect::Rewarded
            }
            Input::Bad { world, decision } => {
                let index = *world;
                let world = self.world_mut(index).ok_or("a BAD step in a world that is not served")?;
                if !world.find_bad(*decision) {
                    return Err("a step that cannot be found to be BAD");
                }
                let episodes = world.statistics().returns.count;
                self.watch_outcome(index, (*decision, true), episodes, number);
                Effect::Rewarded
            }
            Input::Forget { world } => {
                let place = usize::from(world.0);
                let gone = self.worlds.get_mut(place).and_then(Option::take);
                let gone = gone.ok_or("a world is forgotten that is not served")?;
                self.names.remove(&gone.spec().name);
                self.offers.remove(&world.0);
                self.drop_questions(*world, number);
                Effect::Forgotten(*world)
            }
            Input::Search { world } => {
                let approval = self.oversees().then_some(self.people.control.human_weight_pox);
                let offers = self.offers.get(&world.0).cloned().unwrap_or_default();
                let served = self.world_mut(*world).ok_or("a round in a world that is not served")?;
                let begun = served.begin_round(*world, offers, approval);
                Effect::Began(Box::new(begun.ok_or("a round begins in another")?))
            }
            Input::Publish { world } => {
                let done = done.filter(|done| done.world == *world).ok_or("no round has brought this")?;
                let oversight = Oversight { world: *world, people: &self.people };
                match self.worlds.get_mut(usize::from(world.0)).and_then(Option::as_mut) {
                    Some(served) if served.is_searching() => {
                        let publishing = served.publish(done, number, &oversight);
                        Effect::Published(*world, self.watch_round(*world, publishing, number))
                    }
                    Some(_) => return Err("a round takes effect that has not begun"),
                    // The world was forgotten while it was worked on.
                    None => Effect::Published(*world, None),
                }
            }
            Input::ToolAsk(ask) => Effect::Tool(Box::new(self.tools.ask(number, ask)?)),
            Input::ToolDone(done) => Effect::Tool(Box::new(self.tools.end(number, done)?)),
            Input::Propose(proposed) => self.take_offers(proposed)?,
        };
        self.last = number;
        Ok(effect)
    }

    /// What a model proposed waits for the next round of its world.
    fn take_offers(&mut self, proposed: &Proposed) -> Result<Effect, &'static str> {
        let Proposed { world, request, machines } = proposed;
        let served = self.world(*world).ok_or("a proposal for a world that is not served")?;
        let fits = machines.iter().all(|machine| machine.fits(&served.spec().shape));
        if !fits || self.last < *request || self.tools.is_unused() {
            return Err("a proposal that nobody can have made");
        }
        let offers = self.offers.entry(world.0).or_default();
        machines.iter().for_each(|machine| offers.push(machine.clone()));
        Ok(Effect::Proposed)
    }

    fn open_world(&mut self, spec: &WorldSpec) -> Result<Effect, &'static str> {
        if self.names.contains_key(&spec.name) || WORLDS_MAX <= self.worlds.len() {
            return Err("a world that is there already, or one too many");
        }
        let tried = self.tried.take().filter(|(tried, _)| tried == spec);
        let opened = match tried {
            Some((_, opened)) => Ok(*opened),
            None => self.open(spec, self.worlds.len()),
        };
        let (searching, round) = opened.map_err(|_| "a world that the machine cannot hold")?;
        let index = WorldIndex(self.worlds.len() as u16);
        let (world, notes) = World::new(spec.clone(), searching, round, self.last + 1);
        self.worlds.push(Some(world));
        self.names.insert(spec.name.clone(), index);
        Ok(Effect::Opened(index, notes))
    }

    /// The canonical bytes; no round may be under way.
    pub fn encode(&self) -> Vec<u8> {
        self.freeze().into_bytes()
    }

    /// The canonical bytes, to be put together elsewhere; no round may be under way.
    pub fn freeze(&self) -> Frozen {
        let mut frozen = Frozen::default();
        let writer = &mut frozen.writer;
        writer.bytes(&self.config.to_bytes());
        writer.u64(self.last);
        writer.length(self.worlds.len());
        for world in &self.worlds {
            frozen.writer.bool(world.is_some());
            if let Some(world) = world {
                Input::World(Box::new(world.spec.clone())).encode(&mut frozen.writer);
                world.encode(&mut frozen);
            }
        }
        self.people.encode(&mut frozen.writer);
        // A service that never asked a tool has no part of them.
        if !self.tools.is_unused() {
            self.tools.encode(&mut frozen.writer);
        }
        // Nothing is proposed where no tool was ever asked.
        offers::encode(&self.offers, &mut frozen.writer);
        frozen
    }

    /// Reads canonical bytes back.
    pub fn decode(bytes: &[u8]) -> Result<Service, RestoreError> {
        let mut reader = Reader::new(bytes);
        let config = ServiceConfig::from_bytes(reader.bytes()?)?;
        let last = reader.u64()?;
        let malformed = reader.error("worlds that no service can have");
        let count = reader.length(1)?;
        if WORLDS_MAX < count {
            return Err(malformed.into());
        }
        let mut service = Service { last, ..Service::new(config) };
        for place in 0..count {
            let world = match reader.bool()? {
                false => None,
                true => {
                    let Input::World(spec) = Input::decode(&mut reader)? else {
                        return Err(malformed.into());
                    };
                    service.names.insert(spec.name.clone(), WorldIndex(place as u16));
                    Some(World::decode(*spec, &mut reader)?)
                }
            };
            service.worlds.push(world);
        }
        service.people = People::decode(&mut reader)?;
        if 0 < reader.remaining() {
            service.tools = Tools::decode(&mut reader)?;
        }
        if 0 < reader.remaining() {
            service.offers = offers::decode(&service, &mut reader)?;
        }
        reader.finish()?;
        Ok(service)
    }
}
