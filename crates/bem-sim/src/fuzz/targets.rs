//! The decoders that are fuzzed, each with good inputs to start from.

use bem_base::digest::hash;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Environment;
use bem_base::prng::Prng;
use bem_checker::certificate::Certificate;
use bem_checker::cnf::Cnf;
use bem_checker::lrat_reader::StepReader;
use bem_circuit::netlist::Netlist;
use bem_engine::chronicle::{Chronicle, Happening};
use bem_engine::climb::{Climb, ClimbConfig, Unit};
use bem_engine::learner::state::SavedLearner;
use bem_engine::learner::{Learner, Settings};
use bem_engine::payload::Payload;
use bem_engine::solve::{Solution, solve};
use bem_engine::world_file::record::{Playback, Recorder};
use bem_engine::world_file::{GameFile, WorldFile};
use bem_evolve::patch::Patch;
use bem_games::catalog;
use bem_games::compose::TaskTree;
use bem_games::game::Game;
use bem_games::import::{self, Format, Seat};
use bem_isa::program::Program;
use bem_ledger::chain::ChainHead;
use bem_ledger::checkpoint::{Checkpoint, SignedCheckpoint};
use bem_ledger::entry::{Artefact, Entry, UnitEnd};
use bem_ledger::merkle::{Frontier, leaf_hash};
use bem_ledger::play::{PlayBlock, Sealer};
use bem_ledger::segment::SegmentHeader;
use bem_ledger::snapshot::{Part, Snapshot};
use bem_ledger::testing;
use bem_ledger::witness::WitnessRequest;
use bem_machine::config::GenesisConfig;
use bem_synth::library::Machine;
use bem_synth::policy::Policy;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

/// One decoder.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Good inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Reads an input; true if it was accepted. A broken promise is a panic.
    pub run: fn(&[u8]) -> bool,
}

/// All decoders of bytes and texts that come from outside a process.
pub const TARGETS: &[Target] = &[
    Target { name: "ledger_entry", seeds: entries, run: read_entry },
    Target { name: "ledger_checkpoint", seeds: checkpoints, run: read_checkpoint },
    Target { name: "ledger_request", seeds: requests, run: read_request },
    Target { name: "ledger_snapshot", seeds: snapshots, run: read_snapshot },
    Target { name: "ledger_segment", seeds: segments, run: read_segment },
    Target { name: "ledger_play", seeds: plays, run: read_play },
    Target { name: "ledger_unit_end", seeds: unit_ends, run: read_unit_end },
    Target { name: "ledger_artefact", seeds: artefacts, run: read_artefact },
    Target { name: "payload", seeds: payloads, run: read_payload },
    Target { name: "unit", seeds: units, run: read_unit },
    Target { name: "chronicle", seeds: chronicles, run: read_chronicle },
    Target { name: "climb", seeds: climbs, run: read_climb },
    Target { name: "learner", seeds: learners, run: read_learner },
    Target { name: "library", seeds: machines, run: read_machine },
    Target { name: "policy", seeds: policies, run: read_policy },
    Target { name: "patch", seeds: patches, run: read_patch },
    Target { name: "netlist", seeds: netlists, run: read_netlist },
    Target { name: "certificate", seeds: certificates, run: read_certificate },
    Target { name: "config", seeds: configs, run: read_config },
    Target { name: "program", seeds: programs, run: read_program },
    Target { name: "circuit_file", seeds: circuit_files, run: read_circuit_file },
    Target { name: "cnf_file", seeds: cnf_files, run: read_cnf_file },
    Target { name: "proof_file", seeds: proof_files, run: read_proof_file },
    Target { name: "config_file", seeds: config_files, run: read_config_file },
    Target { name: "assembly", seeds: assemblies, run: read_assembly },
    Target { name: "task_tree", seeds: task_trees, run: read_task_tree },
    Target { name: "game_nfg", seeds: normal_games, run: read_normal_game },
    Target { name: "game_efg", seeds: extensive_games, run: read_extensive_game },
    Target { name: "game_json", seeds: table_games, run: read_table_game },
    Target { name: "world_file", seeds: world_files, run: read_world_file },
];

fn bytes_of(encode: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new();
    encode(&mut writer);
    writer.into_bytes()
}

/// What was read must be written again as it was; bytes that were not read are refused by whoever reads last.
fn same<T>(
    bytes: &[u8],
    decode: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
    encode: impl FnOnce(&T, &mut Writer),
) -> bool {
    let mut reader = Reader::new(bytes);
    let Ok(value) = decode(&mut reader) else { return false };
    let again = bytes_of(|writer| encode(&value, writer));
    assert_eq!(again, &bytes[..reader.position()], "a second spelling");
    true
}

fn text(bytes: &[u8]) -> Option<&str> {
    core::str::from_utf8(bytes).ok()
}

/// A small solved task, from which most binary inputs are taken.
fn solution(family: &str, parameter: &str, value: &str) -> Solution {
    let game = game(family, parameter, value);
    solve(game.as_ref(), Settings { budget: 3_000, ..Settings::new(1) }, &mut |_| true)
        .expect("it can be played")
}

fn game(family: &str, parameter: &str, value: &str) -> Arc<dyn Game> {
    let family = catalog::family(family).expect("a family of the catalog");
    let texts = BTreeMap::from([(parameter.to_owned(), value.to_owned())]);
    let settings = catalog::settings(family, &texts).expect("a parameter in its range");
    catalog::build(family, &settings, 1).expect("a small game")
}

static SOLUTIONS: LazyLock<Vec<Solution>> = LazyLock::new(|| {
    vec![solution("parity", "n", "3"), solution("parity_stream", "n", "4"), solution("copy", "length", "3")]
});

fn entries() -> Vec<Vec<u8>> {
    let mut prng = Prng::stream(1, "fuzz entries");
    let genesis = Entry::Genesis(testing::genesis(1));
    core::iter::once(genesis)
        .chain((0..60).map(|_| testing::entry(&mut prng)))
        .map(|entry| entry.to_bytes())
        .collect()
}

fn read_entry(bytes: &[u8]) -> bool {
    let Ok(entry) = Entry::from_bytes(bytes) else { return false };
    assert_eq!(entry.to_bytes(), bytes, "a second spelling");
    true
}

fn note(size: u64) -> SignedCheckpoint {
    let head = ChainHead::start();
    testing::signer().sign(Checkpoint {
        instance: hash(b"fuzz"),
        size,
        root: hash(&size.to_le_bytes()),
        head,
    })
}

fn checkpoints() -> Vec<Vec<u8>> {
    let mut cosigned = note(7);
    cosigned.signatures.push(testing::signer().cosign(
        "witness.example",
        &cosigned.checkpoint,
        1_700_000_000,
    ));
    vec![
        note(0).to_text().into_bytes(),
        note(1 << 40).to_text().into_bytes(),
        cosigned.to_text().into_bytes(),
    ]
}

fn read_checkpoint(bytes: &[u8]) -> bool {
    let Ok(note) = SignedCheckpoint::parse(bytes) else { return false };
    assert_eq!(note.to_text().as_bytes(), bytes, "a second spelling");
    true
}

fn requests() -> Vec<Vec<u8>> {
    let proof = vec![hash(b"one"), hash(b"two")];
    let request = WitnessRequest { old_size: 3, proof, checkpoint: note(9) };
    vec![request.to_text().into_bytes()]
}

fn read_request(bytes: &[u8]) -> bool {
    let Ok(request) = WitnessRequest::parse(bytes) else { return false };
    assert_eq!(request.to_text().as_bytes(), bytes, "a second spelling");
    true
}

fn snapshots() -> Vec<Vec<u8>> {
    let part = |name: &str, bytes: &[u8]| Part { name: name.to_owned(), bytes: bytes.to_vec() };
    let (instance, head) = (hash(b"fuzz"), ChainHead::start());
    let parts = vec![part("climb", b"0123456789"), part("unit_3", b"abc")];
    let with = |parts| Snapshot { instance, entries: 3, head, step: 5, parts }.to_bytes().0;
    vec![with(parts), with(Vec::new())]
}

/// Plain damage dies at a digest. So the digests are mended, part by part, before a file is read the second time.
fn read_snapshot(bytes: &[u8]) -> bool {
    let read = |bytes: &[u8]| {
        let Ok((snapshot, _)) = Snapshot::from_bytes(bytes) else { return false };
        assert_eq!(snapshot.to_bytes().0, bytes, "a second spelling");
        true
    };
    let mut mended = bytes.to_vec();
    mend_manifest(&mut mended);
    read(bytes) | read(&mended)
}

fn mend_manifest(bytes: &mut [u8]) -> Option<()> {
    let mut reader = Reader::new(bytes);
    reader.raw(8).ok()?;
    let count = reader.u32().ok()?;
    reader.raw(84).ok()?;
    let mut declared = Vec::new();
    for _ in 0..count.min(64) {
        reader.text().ok()?;
        declared.push((usize::try_from(reader.u64().ok()?).ok()?, reader.position()));
        reader.raw(32).ok()?;
    }
    let end = reader.position();
    let mut start = end + 32;
    for (size, place) in declared {
        let content = hash(bytes.get(start..start.checked_add(size)?)?);
        bytes[place..place + 32].copy_from_slice(content.as_bytes());
        start += size;
    }
    let manifest = hash(&bytes[..end]);
    bytes.get_mut(end..end + 32)?.copy_from_slice(manifest.as_bytes());
    Some(())
}

fn segments() -> Vec<Vec<u8>> {
    let mut frontier = Frontier::new();
    let mut list = Vec::new();
    for number in 0..8u32 {
        let head = ChainHead::start();
        list.push(
            SegmentHeader { number, instance: hash(b"fuzz"), head, frontier: frontier.clone() }.to_bytes(),
        );
        frontier.push(leaf_hash(&number.to_le_bytes()));
    }
    list
}

fn read_segment(bytes: &[u8]) -> bool {
    let Ok((header, length)) = SegmentHeader::decode(bytes) else { return false };
    assert_eq!(header.to_bytes(), &bytes[..length], "a second spelling");
    true
}

fn plays() -> Vec<Vec<u8>> {
    let happenings = SOLUTIONS.iter().flat_map(|solution| solution.chronicle.happenings());
    let blocks = happenings.filter_map(|happening| match happening {
        Happening::Play(block) => Some(block),
        _ => None,
    });
    let list = blocks.map(|block| bytes_of(|writer| block.encode(writer)));
    list.filter(|bytes| bytes.len() < super::INPUT_BYTES_MAX).collect()
}

/// The episodes of a block that is accepted make the same block again.
fn read_play(bytes: &[u8]) -> bool {
    let Ok(block) = PlayBlock::decode(&mut Reader::new(bytes)) else { return false };
    let mut sealer = Sealer::new(block.first_step);
    for episode in block.episodes() {
        let full = sealer.push(episode.serial, episode.steps.iter().copied(), &block.chain);
        assert_eq!(full, None, "an input is smaller than a block may be");
    }
    let again = sealer.seal();
    assert!(block.steps == 0 || again.as_ref() == Some(&block), "a second spelling");
    same(bytes, PlayBlock::decode, PlayBlock::encode)
}

fn unit_ends() -> Vec<Vec<u8>> {
    let end =
        |words: &str| UnitEnd { circuit: hash(b"circuit"), chain: hash(b"chain"), words: words.to_owned() };
    ["", "xor of 8 bits"].map(|words| end(words).to_bytes()).to_vec()
}

fn read_unit_end(bytes: &[u8]) -> bool {
    let Ok(end) = UnitEnd::from_bytes(bytes) else { return false };
    assert_eq!(end.to_bytes(), bytes, "a second spelling");
    true
}

fn artefacts() -> Vec<Vec<u8>> {
    let artefact = |name: &str| Artefact { digest: hash(b"page"), name: name.to_owned() };
    ["report.html", "a"].map(|name| artefact(name).to_bytes()).to_vec()
}

fn read_artefact(bytes: &[u8]) -> bool {
    let Ok(artefact) = Artefact::from_bytes(bytes) else { return false };
    assert_eq!(artefact.to_bytes(), bytes, "a second spelling");
    true
}

/// Of every decision of the small solutions, those that were let in first.
fn payloads() -> Vec<Vec<u8>> {
    let happenings = SOLUTIONS.iter().flat_map(|solution| solution.chronicle.happenings());
    let notes = happenings.filter_map(|happening| match happening {
        Happening::Patch(note) => Some(note),
        _ => None,
    });
    let mut notes: Vec<_> = notes.collect();
    notes.sort_by_key(|note| !note.accepted);
    notes.into_iter().take(20).map(|note| note.payload.clone()).collect()
}

fn read_payload(bytes: &[u8]) -> bool {
    let Ok(payload) = Payload::from_bytes(bytes) else { return false };
    assert_eq!(payload.to_bytes(), bytes, "a second spelling");
    true
}

fn units() -> Vec<Vec<u8>> {
    let families = vec!["parity".to_owned(), "majority".to_owned()];
    let climb = Climb::new(ClimbConfig {
        seed: 1,
        stages: 2,
        unit_steps: 2_000,
        families,
        parameters: Arc::default(),
    })
    .expect("known families");
    climb.next(&BTreeSet::new()).iter().map(|unit| unit.to_bytes()).collect()
}

fn read_unit(bytes: &[u8]) -> bool {
    let Ok(unit) = Unit::from_bytes(bytes) else { return false };
    assert_eq!(unit.to_bytes(), bytes, "a second spelling");
    true
}

fn chronicles() -> Vec<Vec<u8>> {
    SOLUTIONS.iter().map(|solution| bytes_of(|writer| solution.chronicle.encode(writer))).collect()
}

fn read_chronicle(bytes: &[u8]) -> bool {
    same(bytes, Chronicle::decode, Chronicle::encode)
}

fn climbs() -> Vec<Vec<u8>> {
    let families = vec!["parity".to_owned()];
    let config = ClimbConfig { seed: 1, stages: 2, unit_steps: 2_000, families, parameters: Arc::default() };
    let mut climb = Climb::new(config).expect("a known family");
    let mut list = vec![climb.snapshot()];
    while let Some(unit) = climb.next(&BTreeSet::new()).filter(|_| list.len() < 5) {
        let worked = climb.work(&unit, &mut || true).expect("it can be played");
        climb.take(&worked.expect("nobody asks it to stop"));
        list.push(climb.snapshot());
    }
    list
}

fn read_climb(bytes: &[u8]) -> bool {
    let Ok(climb) = Climb::restore(bytes) else { return false };
    assert_eq!(climb.snapshot(), bytes, "a second spelling");
    true
}

/// The world of all fuzzed learners.
static WORLD: LazyLock<Arc<dyn Game>> = LazyLock::new(|| game("parity_stream", "n", "3"));

fn learners() -> Vec<Vec<u8>> {
    let mut world = WORLD.start();
    let mut learner = Learner::new(world.shape(), Settings { budget: 400, ..Settings::new(1) })
        .expect("the world fits the machine");
    let mut list = Vec::new();
    for unit in 0..240 {
        learner.advance(world.as_mut(), &mut ()).expect("it can be played");
        if unit % 40 == 3 {
            list.push(learner.encode());
        }
    }
    list.retain(|bytes| bytes.len() < super::INPUT_BYTES_MAX);
    list
}

fn read_learner(bytes: &[u8]) -> bool {
    let Ok(saved) = SavedLearner::parse(bytes, WORLD.shape()) else { return false };
    let Ok(learner) = saved.restore(WORLD.start().as_mut()) else { return false };
    assert_eq!(learner.encode(), bytes, "a second spelling");
    true
}

fn machines() -> Vec<Vec<u8>> {
    let machines = SOLUTIONS.iter().filter_map(|solution| solution.learned.machine.as_ref());
    machines.map(|machine| bytes_of(|writer| machine.encode(writer))).collect()
}

fn read_machine(bytes: &[u8]) -> bool {
    same(bytes, Machine::decode, Machine::encode)
}

fn policies() -> Vec<Vec<u8>> {
    SOLUTIONS
        .iter()
        .map(|solution| bytes_of(|writer| solution.learned.agent.policy().encode(writer)))
        .collect()
}

fn read_policy(bytes: &[u8]) -> bool {
    same(bytes, Policy::decode, Policy::encode)
}

fn patches() -> Vec<Vec<u8>> {
    let applied = SOLUTIONS.iter().flat_map(|solution| solution.chronicle.applied());
    applied.map(|patch| bytes_of(|writer| patch.encode(writer))).collect()
}

fn read_patch(bytes: &[u8]) -> bool {
    same(bytes, Patch::decode, Patch::encode)
}

fn netlists() -> Vec<Vec<u8>> {
    SOLUTIONS
        .iter()
        .map(|solution| bytes_of(|writer| solution.learned.agent.policy().circuit().encode(writer)))
        .collect()
}

fn read_netlist(bytes: &[u8]) -> bool {
    same(bytes, Netlist::decode, Netlist::encode)
}

const FORMULA: &str = "p cnf 2 4\n1 2 0\n-1 2 0\n1 -2 0\n-1 -2 0\n";
const PROOF: &str = "5 2 0 1 2 0\n6 1 0 3 5 0\n6 d 1 0\n7 0 4 5 6 0\n";

fn formula() -> Cnf {
    Cnf::from_dimacs(FORMULA.as_bytes()).expect("the text above is DIMACS")
}

fn certificates() -> Vec<Vec<u8>> {
    let certificate = Certificate {
        formula: formula().digest(),
        assumptions: Vec::new(),
        proof: PROOF.as_bytes().to_vec(),
    };
    vec![bytes_of(|writer| certificate.encode(writer))]
}

fn read_certificate(bytes: &[u8]) -> bool {
    let read = same(bytes, Certificate::decode, Certificate::encode);
    if let Ok(certificate) = Certificate::decode(&mut Reader::new(bytes)) {
        // The formula cannot be satisfied, so that any answer is sound; it must only come.
        let _ = certificate.check(&formula());
    }
    read
}

fn configs() -> Vec<Vec<u8>> {
    vec![bytes_of(|writer| GenesisConfig::default().encode(writer))]
}

fn read_config(bytes: &[u8]) -> bool {
    same(bytes, GenesisConfig::decode, GenesisConfig::encode)
}

const ASSEMBLY: &str = include_str!("../../../../examples/programs/sum.basm");

fn programs() -> Vec<Vec<u8>> {
    vec![bem_isa::assemble::assemble(ASSEMBLY).expect("the example assembles").to_bytes()]
}

fn read_program(bytes: &[u8]) -> bool {
    let Ok(program) = Program::from_bytes(bytes) else { return false };
    assert_eq!(program.to_bytes(), bytes, "a second spelling");
    let _ = bem_isa::disassemble::disassemble(&program);
    true
}

fn circuit_files() -> Vec<Vec<u8>> {
    let aiger = b"aag 3 2 0 1 1\n2\n4\n6\n6 2 4\n".to_vec();
    let blif = b".model and\n.inputs a b\n.outputs c\n.names a b c\n11 1\n.end\n".to_vec();
    let binary = b"aig 3 2 0 1 1\n6\n\x02\x02".to_vec();
    vec![aiger, blif, binary]
}

fn read_circuit_file(bytes: &[u8]) -> bool {
    bem_circuit::formats::read(bytes).is_ok()
}

fn cnf_files() -> Vec<Vec<u8>> {
    vec![FORMULA.as_bytes().to_vec(), b"c note\np cnf 9 1\n-9 3 0\n".to_vec()]
}

fn read_cnf_file(bytes: &[u8]) -> bool {
    let Ok(cnf) = Cnf::from_dimacs(bytes) else { return false };
    let again = Cnf::from_dimacs(cnf.to_dimacs().as_bytes()).expect("what was written can be read");
    assert_eq!(again.digest(), cnf.digest(), "a formula that changes when it is written");
    true
}

fn proof_files() -> Vec<Vec<u8>> {
    vec![PROOF.as_bytes().to_vec()]
}

fn read_proof_file(bytes: &[u8]) -> bool {
    let _ = bem_checker::lrat::check(&formula(), bytes);
    let _ = bem_checker::drat::check(&formula(), bytes);
    let mut reader = StepReader::new(bytes);
    loop {
        match reader.next() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

fn config_files() -> Vec<Vec<u8>> {
    vec![GenesisConfig::default().to_toml().into_bytes(), Vec::new()]
}

fn read_config_file(bytes: &[u8]) -> bool {
    text(bytes).is_some_and(|text| GenesisConfig::from_toml(text).is_ok())
}

fn assemblies() -> Vec<Vec<u8>> {
    vec![ASSEMBLY.as_bytes().to_vec()]
}

fn read_assembly(bytes: &[u8]) -> bool {
    text(bytes).is_some_and(|text| bem_isa::assemble::assemble(text).is_ok())
}

fn task_trees() -> Vec<Vec<u8>> {
    ["parity{n=4}", "seq(parity{n=4},majority{n=5})", "copy{length=3,value_bits=2}"]
        .map(|tree| tree.as_bytes().to_vec())
        .to_vec()
}

fn read_task_tree(bytes: &[u8]) -> bool {
    let Some(Ok(tree)) = text(bytes).map(TaskTree::parse) else { return false };
    let spelled = tree.to_string();
    let again = TaskTree::parse(&spelled).expect("what was written can be read");
    assert_eq!(again.to_string(), spelled, "a tree that changes when it is written");
    true
}

fn read_game(format: Format, bytes: &[u8]) -> bool {
    text(bytes).is_some_and(|text| import::read(format, text, &Seat::default()).is_ok())
}

fn normal_games() -> Vec<Vec<u8>> {
    let title = "NFG 1 R \"dilemma\" { \"row\" \"column\" } { 2 2 }\n\n";
    vec![format!("{title}2 2 3 0 0 3 1 1\n").into_bytes()]
}

fn read_normal_game(bytes: &[u8]) -> bool {
    read_game(Format::Normal, bytes)
}

fn extensive_games() -> Vec<Vec<u8>> {
    vec![include_bytes!("../../../../examples/games/centipede.efg").to_vec()]
}

fn read_extensive_game(bytes: &[u8]) -> bool {
    read_game(Format::Extensive, bytes)
}

fn table_games() -> Vec<Vec<u8>> {
    let text = r#"{"states":2,"actions":2,"horizon":3,"start":[[0,1]],"transitions":[[0,0,1,1,1000,false],[0,1,0,1,0,false],[1,0,0,1,0,true],[1,1,1,1,500,false]],"observe":"state"}"#;
    vec![text.as_bytes().to_vec()]
}

fn read_table_game(bytes: &[u8]) -> bool {
    read_game(Format::Table, bytes)
}

/// A game with everything and one with little, a composition's programs, and what two worlds outside answered, the second
/// until it failed.
fn world_files() -> Vec<Vec<u8>> {
    let game = |player: Option<&str>, opponent: Option<(&str, &str)>| GameFile {
        name: "two.json".to_string(),
        text: String::from_utf8(table_games().remove(0)).expect("JSON is text"),
        player: player.map(str::to_string),
        opponent: opponent.map(|(name, text)| (name.to_string(), text.to_string())),
    };
    let sources =
        [("a.basm", "halt"), ("b.basm", "")].map(|(name, text)| (name.to_string(), text.to_string()));
    let record = |family: &str, parameter: &str, fails: bool| {
        let mut world = self::game(family, parameter, "3").start();
        let mut recorder = Recorder::new(world.as_mut());
        for seed in 0..4 {
            recorder.reset(seed).expect("it can be played");
            while !recorder.step((seed % 2) as u16).expect("the action exists").done {}
        }
        assert!(!fails || recorder.step(u16::MAX).is_err(), "no world has so many actions");
        WorldFile::Record(recorder.into_record())
    };
    let files = [
        WorldFile::Game(game(None, None)),
        WorldFile::Game(game(Some("2"), Some(("other.json", "uniform")))),
        WorldFile::Programs(BTreeMap::from(sources)),
        record("parity_stream", "n", false),
        record("copy", "length", true),
    ];
    files.iter().map(WorldFile::to_bytes).collect()
}

/// A record is also played, with the calls that the seeds were made of, until it refuses or ends.
fn read_world_file(bytes: &[u8]) -> bool {
    let Ok(file) = WorldFile::from_bytes(bytes) else { return false };
    assert_eq!(file.to_bytes(), bytes, "a second spelling");
    if let WorldFile::Record(record) = &file {
        let mut world = Playback::new(record);
        for seed in 0..4 {
            if world.reset(seed).is_err() {
                break;
            }
            while world.step((seed % 2) as u16).is_ok_and(|outcome| !outcome.done) {}
        }
    }
    true
}
