//! `bem serve`: the long-lived process; and finding out whether a folder is one's. The work is done by `bem-serve`.
//!
//! The folder of a server holds its ledger, its inbox, its tokens and the salt of its key. Clauses: VM-13, IMG-1.

use super::config::ConfigFile;
use super::fit::hanging;
use super::image_options::ImageOptions;
use super::{Answer, verify};
use crate::beside_thread::BesideThread;
use crate::file_store::FileStore;
use crate::images::secrets::Secrets;
use crate::images::{self, format, migrate};
use crate::pipeline_beside::PipelineBeside;
use crate::places::{self, Places};
use crate::translated::Rounding;
use crate::{climb_beside, interrupt, keys, pipeline_beside, start_from};
use anyhow::{Context, Result, bail};
use bem_base::plain::plain;
use bem_base::words::quantity;
use bem_data::Declared;
use bem_ledger::LedgerError;
use bem_ledger::entry::Entry;
use bem_ledger::reader::EntryReader;
use bem_ledger::store::Store;
use bem_runtime::history::played::played;
use bem_runtime::history::{self, HistoryError, Replayed};
use bem_runtime::input::{Input, WorldSpec, is_name};
use bem_runtime::service::{Service, ServiceConfig};
use bem_runtime::tools::keyed_hash;
use bem_serve::core::{Advisor, ToolParts};
use bem_serve::domains::Domains;
use bem_serve::{Auditing, LogReading, ServeOptions, Starting, tokens, webhooks};
use bem_workers::catalog_file::CatalogFile;
use bem_workers::host::{Host, HostOptions};
use clap::Args;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Decide now and learn from rewards that come later, over HTTP.
#[derive(Args)]
#[command(after_help = "Example: bem serve --state ads-state\n\
    Example: curl -H \"Authorization: Bearer $(cat ads-state/token)\" \\\n           \
    http://127.0.0.1:7420/v1/worlds\n\
    The folder is made at the first start, with an admin's token in it; starting it\n\
    again goes on. Ctrl-C and SIGTERM stop it cleanly.\n\
    DIR/etc/config.toml and DIR/etc/catalog.toml are taken where --config and\n\
    --tools name nothing; for /var/lib/bem they lie in /etc/bem, and logs in\n\
    /var/log/bem.\n\
    With --pipeline N, GET /v1/domains says how its domains stand, and\n\
    POST /v1/domains {\"name\": \"stack\"} takes one more in; bem verify DIR/pipeline\n\
    audits its histories.\n\
    bem verify and bem replay work on the folder, also while it runs.")]
pub struct ServeArguments {
    /// Where it listens; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:7420", value_name = "ADDR:PORT")]
    listen: SocketAddr,
    /// The folder of its state
    #[arg(long, default_value = "./bem-state", value_name = "DIR")]
    state: PathBuf,
    /// The file of the admin's token; made if it is not there [default: DIR/token]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A proxy with TLS stands before it: other addresses than loopback are allowed
    #[arg(long)]
    behind_proxy: bool,
    /// A name under which the proxy reaches it, as in the Host header
    #[arg(long, value_name = "HOST", requires = "behind_proxy")]
    host: Vec<String>,
    /// Requests a second that one token may make
    #[arg(long, default_value_t = 50_000, value_name = "N")]
    rate: u32,
    /// All random streams come from this
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Climb the ladder while nobody asks, with at most so many decisions a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    climb: Option<u32>,
    /// Work on a pipeline of domains in DIR/pipeline while nobody asks, without end, with at most so many steps a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pipeline: Option<u32>,
    /// The domains that it begins with; others come in by POST /v1/domains [default: as for bem pipeline run]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "pipeline")]
    domains: Vec<String>,
    /// What a new world begins with: a run, a circuit, or a log of steps (.jsonl, .csv); may be given for several worlds
    #[arg(long, value_name = "WORLD=RUN|CIRCUIT|FILE.jsonl")]
    start_from: Vec<String>,
    /// The catalog of tools: bem tools check says what is wrong with it
    #[arg(long, value_name = "CATALOG.toml")]
    tools: Option<PathBuf>,
    /// A program of the control core that runs at barriers over the catalog and the bus; it may ask for what only reads
    #[arg(long, value_name = "PROGRAM", requires = "tools")]
    routine: Option<PathBuf>,
    /// A model of the catalog that is asked for candidates; they pass the gate like all others
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Seconds that somebody may take for a question before it is given to others
    #[arg(long, default_value_t = 600, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    lease: u64,
    /// Who is told what happens to questions and patches: targets with their secrets, docs/guide/people.md
    #[arg(long, value_name = "FILE.toml")]
    webhooks: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigFile,
    /// The file of the key that signs the history; made if it is not there [default: as for bem run]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    saved: ImageOptions,
}

impl ServeArguments {
    /// The folder of its state.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The file of its key, if one is named.
    pub fn key(&self) -> Option<&Path> {
        self.key.as_deref()
    }
}

/// `bem serve`
pub fn run(arguments: &ServeArguments) -> Result<Answer> {
    crate::memory::give_large_blocks_back();
    bem_serve::check_address(arguments.listen, arguments.behind_proxy)?;
    if arguments.rate == 0 {
        bail!("--rate 0 would let nobody in: 1 or more");
    }
    let state = &arguments.state;
    places::refuse_root(state)?;
    let tools = arguments.tools.clone().or_else(|| Places::of(state).catalog());
    let catalog = tools.as_deref().map(CatalogFile::load).transpose()?;
    let advisor = match (&arguments.model, &catalog) {
        (Some(name), Some(catalog)) => Some(Advisor::of(catalog, name)?),
        (Some(name), None) => {
            bail!("--model {name}: there is no catalog of tools; name one with --tools CATALOG.toml")
        }
        (None, _) => None,
    };
    let routine = arguments.routine.as_deref().map(super::isa::read_program).transpose()?;
    let webhooks = arguments.webhooks.as_deref().map(webhooks::load).transpose()?.unwrap_or_default();
    let opened = open(arguments)?;
    for (name, reason) in &opened.rejected {
        note!("bem: {name} cannot be used ({reason}); an earlier state is taken");
    }
    let begin = |rate| {
        PipelineBeside::open(state, rate, &arguments.domains, arguments.seed, arguments.key.as_deref())
    };
    let pipeline = arguments.pipeline.map(begin).transpose()?;
    let token_file = arguments.token_file.clone().unwrap_or_else(|| state.join("token"));
    let (admin, _) = tokens::admin_token(&token_file)?;
    let options = ServeOptions {
        listen: arguments.listen,
        state: state.clone(),
        admin,
        hosts: arguments.host.clone(),
        behind_proxy: arguments.behind_proxy,
        rate: arguments.rate,
        has_empty: false,
        starts: starts(arguments, &opened)?,
        lease: Duration::from_secs(arguments.lease),
        webhooks,
        auditing: Some(auditing(state)),
        logs: Some(logs(state)),
        domains: pipeline.as_ref().map(|pipeline| Domains(pipeline.desk())),
    };
    interrupt::listen();
    let bus = state.join("bus.sock");
    let host = catalog.map(|catalog| {
        let host = HostOptions { socket: Some(bus.clone()), ..HostOptions::default() };
        Host::start(Arc::new(catalog), &host)
    });
    let host = host.transpose()?;
    let has_tools = host.is_some();
    let parts = host.map(|host| ToolParts { host, advisor, routine });
    let token = token_file.display().to_string();
    let (mut agent, mut climber, mut worker) = (None, None, None);
    let served = bem_serve::run(opened, &options, parts, interrupt::is_asked, |address, handle| {
        let secrets = [Some(token_file.clone()), arguments.key.clone(), keys::secret_path().ok()];
        agent = Some(arguments.saved.start(state, secrets.into_iter().flatten().collect(), handle));
        climber = arguments.climb.map(|rate| climb_beside::start(rate, handle));
        worker = pipeline.map(|pipeline| pipeline_beside::start(pipeline, handle));
        say!("listening  http://{address}");
        say!("token      {token}");
        if has_tools {
            say!("bus        {}", bus.display());
        }
        let _ = std::io::Write::flush(&mut std::io::stdout());
    });
    climber.into_iter().chain(worker).for_each(BesideThread::stop);
    if let Some(agent) = agent {
        agent.stop();
    }
    served?;
    say!("stopped    {}", state.display());
    Ok(Answer::Yes)
}

/// The audit that the page of the history asks for: the one of `bem verify`.
fn auditing(state: &Path) -> Auditing {
    let folder = state.to_path_buf();
    Auditing(Arc::new(move |checkpoint| {
        verify::audit_server(&folder, checkpoint).map_err(|error| format!("{error:#}"))
    }))
}

/// The log of a world, from the ledger in the folder.
fn logs(state: &Path) -> LogReading {
    let folder = state.to_path_buf();
    LogReading(Arc::new(move |world, after, tell| {
        let mut store = super::ledger_directory::open(&folder).map_err(|error| format!("{error:#}"))?;
        played(&mut store, world, after, tell).map_err(|error| error.to_string())
    }))
}

/// What new worlds begin with. A world that was asked already goes on with what it knows, and that is said.
fn starts(arguments: &ServeArguments, opened: &history::Opened<FileStore>) -> Result<Option<Starting>> {
    let mut paths = BTreeMap::new();
    for text in &arguments.start_from {
        let (name, path) = text.split_once('=').filter(|(name, _)| is_name(name)).with_context(|| {
            format!("--start-from {text}: must be WORLD=PATH, with a run, a circuit or a log")
        })?;
        let path = PathBuf::from(path);
        if !path.exists() {
            bail!("--start-from {text}: {} is not there", path.display());
        }
        if opened.player.service.find(name).is_ok() {
            note!("bem: world {name} is there already and goes on with what it knows");
        }
        if paths.insert(name.to_string(), path).is_some() {
            bail!("--start-from {text}: world {name} is named twice");
        }
    }
    let start = move |spec: &WorldSpec| {
        let Some(path) = paths.get(&spec.name) else { return Ok(None) };
        let encoder = match spec.note.is_empty() {
            true => None,
            false => Some(Declared::encoder_of(&spec.note).map_err(|error| error.to_string())?),
        };
        let started = start_from::open(path, &spec.shape, encoder.as_ref(), Rounding::Refused);
        started.map(|(start, _)| Some(start)).map_err(|error| format!("{error:#}"))
    };
    Ok((!arguments.start_from.is_empty()).then(|| Starting(Arc::new(start))))
}

fn open(arguments: &ServeArguments) -> Result<history::Opened<FileStore>> {
    let state = &arguments.state;
    let ledger = state.join("ledger");
    let key = arguments.key.as_deref();
    let options = arguments.saved.log_options();
    let set = Places::of(state).config();
    migrate::settle(state)?;
    if !ledger.join("checkpoint").exists() {
        let parameters = arguments.config.load_or(set.as_deref())?;
        let config = ServiceConfig { seed: arguments.seed, parameters };
        std::fs::create_dir_all(state).with_context(|| state.display().to_string())?;
        let signer = keys::for_new_run(key, state)?;
        let store = FileStore::open_locked(&ledger).with_context(|| ledger.display().to_string())?;
        let opened = history::create(store, signer, env!("CARGO_PKG_VERSION"), config, options)?;
        migrate::raise(state)?;
        return Ok(opened);
    }
    format::check(format::read(state)?, &state.display().to_string())?;
    let mut store = FileStore::open_locked(&ledger).with_context(|| ledger.display().to_string())?;
    let kept = history::configuration(&mut store)
        .with_context(|| format!("{} holds no server's history", state.display()))?;
    arguments.config.check_against(&kept.parameters)?;
    if let Some(words) = arguments.config.difference_from(set.as_deref(), &kept.parameters)? {
        note!("bem: {words}");
    }
    let signer = keys::for_known_run(key, state, &public_key(&mut store)?)?;
    let opened = history::open(store, signer, options).map_err(|error| match error {
        HistoryError::State { .. } | HistoryError::Input { .. } | HistoryError::Ledger(LedgerError::Diverged { .. }) => {
            anyhow::Error::new(error).context(format!(
                "{} was written by a learner that this program does not have: bem image migrate --state {} begins a new history from \
                 its worlds, circuits and logs, and keeps the old one",
                state.display(),
                state.display()
            ))
        }
        other => other.into(),
    })?;
    save_before_migration(arguments, key)?;
    migrate::raise(state)?;
    Ok(opened)
}

/// A folder of an older format becomes an image before it is changed.
fn save_before_migration(arguments: &ServeArguments, key: Option<&Path>) -> Result<()> {
    let state = &arguments.state;
    if format::read(state)? == format::CURRENT {
        return Ok(());
    }
    let more: Vec<&Path> = key.into_iter().collect();
    let secrets = Secrets::of(state, &more)?;
    let mut layout = images::open_layout_locked(&arguments.saved.layout(state))?;
    let taken = images::snapshot(&mut layout, state, "before migration", &secrets, false)?;
    note!("bem: {} was saved before {} is migrated", taken.tag, state.display());
    Ok(())
}

/// The key that genesis names.
pub fn public_key<S: Store>(store: &mut S) -> Result<[u8; 32]> {
    let mut reader = EntryReader::open(store)?;
    match reader.next(store)?.map(Entry::from_bytes) {
        Some(Ok(Entry::Genesis(genesis))) => Ok(genesis.public_key),
        _ => bail!("the first entry is not genesis"),
    }
}

/// Whether the history in a store is a server's.
pub fn is_service<S: Store>(store: &mut S) -> bool {
    history::configuration(store).is_ok()
}

/// Where contents lie that stay out of the history, with the key of their hashes.
struct Volume {
    folder: PathBuf,
    key: Option<[u8; 32]>,
}

impl Volume {
    fn beside(directory: &Path) -> Volume {
        let folder = directory.join("sensitive");
        let key = std::fs::read(folder.join("key")).ok().and_then(|bytes| bytes.try_into().ok());
        Volume { folder, key }
    }

    /// The answer of a tool that an input stands for, where it is withheld and not here, in words.
    fn lacks(&self, service: &Service, input: &Input) -> Option<String> {
        let Input::ToolDone(done) = input else { return None };
        let is_withheld = service.tools().in_flight().get(&done.request).is_some_and(|ask| ask.is_sensitive);
        if !is_withheld || done.response.is_empty() {
            return None;
        }
        let path = self.folder.join(format!("{}.response", done.request));
        let contents = std::fs::read(&path).ok();
        let stands = contents.zip(self.key).map(|(contents, key)| keyed_hash(&key, &contents));
        stands.is_none_or(|digest| digest.as_bytes()[..] != done.response[..]).then(|| {
            format!(
                "stopped before input {}: the answer to request {} is sensitive, and {} does not hold it",
                service.last() + 1,
                done.request,
                path.display()
            )
        })
    }
}

/// `bem replay` of a server's folder.
pub fn replay(store: &mut FileStore, to: Option<u64>, directory: &Path) -> Result<Answer> {
    let (progress, volume) = (super::bench::progress_bar(1, false), Volume::beside(directory));
    let mut lacks = |service: &Service, input: &Input| volume.lacks(service, input);
    let replayed = history::replay_until(store, to, &mut lacks, &mut |position, size| {
        progress.set_length(size);
        progress.set_position(position);
    });
    progress.finish_and_clear();
    match replayed {
        Ok(Replayed { service, missing }) => {
            let head = bem_ledger::recover::read_checkpoint(store)?.checkpoint.head.digest();
            let part = match (&missing, to) {
                (Some(_), _) => "up to one that is withheld",
                (None, Some(_)) => "as far as asked",
                (None, None) => "all of them",
            };
            say!(
                "{}: {} played again, {part}; every entry as recorded",
                directory.display(),
                quantity(service.last(), "input")
            );
            for (_, world) in service.worlds() {
                let statistics = world.statistics();
                let line = format!(
                    "  {:<20} {}, {}, {} in force; policy: {}",
                    world.spec().name,
                    quantity(statistics.decisions, "decision"),
                    quantity(statistics.rewards, "reward"),
                    quantity(statistics.applied, "patch"),
                    plain(&world.acting().in_force().words)
                );
                hanging(&line, 23).iter().for_each(|part| say!("{part}"));
            }
            if let Some(words) = missing {
                say!("{words}");
                return Ok(Answer::No);
            }
            if to.is_none() {
                say!("  head {head}");
            }
            Ok(Answer::Yes)
        }
        Err(error @ (HistoryError::Ledger(LedgerError::Diverged { .. }) | HistoryError::Input { .. })) => {
            say!("{error}");
            Ok(Answer::No)
        }
        Err(other) => Err(other.into()),
    }
}
