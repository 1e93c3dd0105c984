//! Who says what a family practises next: three programs of the control core, run at the barrier between two units.
//!
//! `look` reads the tables that the family's machine has published and names a partner, `choose` takes the band that was
//! practised least, `ask` makes the TEACH request and logs it. `choose` runs only because its Hoare conditions were shown: that
//! it never leaves its page and names a band that there is. Page 0 passes numbers from one to the next; the published tables
//! are read-only. All of it is a function of what the family's chain holds. Must not know what is learned.
//! Clauses: ISA-1 to ISA-4, ISA-6, SCC-6, VM-12, MEM-2; decision D-152.

use bem_base::encode::Writer;
use bem_isa::assemble::assemble;
use bem_isa::coprocessor::{Declining, Host, REFUSED, TeachSlot};
use bem_isa::hoare::{self, Options, Verdict};
use bem_isa::instruction::SegmentBase;
use bem_isa::interpreter::{Core, SegmentStarts};
use bem_isa::memory::{Access, Memory, PAGE_WORDS};
use bem_isa::program::Program;
use bem_isa::trap::Trap;
use bem_machine::memory::segment::{Caller, Segment};
use bem_machine::memory::shared::SharedMemory;
use bem_prover::Budget;
use std::sync::OnceLock;

/// Bands that `choose` can tell apart.
pub const BANDS_MAX: usize = 8;
/// Instructions that one of the programs may take.
const INSTRUCTIONS_MAX: u64 = 1_000;
/// Words of memory that `choose` is shown not to leave.
const CHOOSE_WORDS: usize = 13;

/// Where page 0 holds what passes from program to program, as words.
mod word {
    pub const BANDS_END: usize = 8;
    pub const PLACE: usize = 9;
    pub const FAMILIES: usize = 10;
    pub const REQUESTS: usize = 11;
    pub const BAND: usize = 12;
}

/// The three programs, and what was shown of `choose`: clauses in DIMACS and the checker's certificate, edge by edge.
#[derive(Debug)]
pub struct Programs {
    look: Program,
    choose: Program,
    ask: Program,
    proofs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What a family's state says to the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The family's place among the run's families.
    pub place: usize,
    /// How many families there are.
    pub families: usize,
    /// Requests made before.
    pub requests: u32,
    /// How often each band was practised.
    pub practised: [u64; BANDS_MAX],
    /// How many bands there are, one to eight.
    pub bands: usize,
}

/// What came of a run of the programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The family asked for, as a place.
    pub place: u64,
    /// The band.
    pub band: u64,
    /// The context, from the published tables and the number of requests.
    pub context: u64,
    /// The template, if the teacher had one.
    pub template: Option<u64>,
    /// Instructions that were executed.
    pub executed: u64,
    /// The line that was logged.
    pub line: Vec<u64>,
}

impl Programs {
    /// The programs of this version. They are assembled and proven once.
    pub fn get() -> &'static Programs {
        static PROGRAMS: OnceLock<Programs> = OnceLock::new();
        PROGRAMS.get_or_init(|| {
            let program = |text: &str| assemble(text).expect("the programs of this version are programs");
            let choose = program(include_str!("../../programs/choose.basm"));
            let proofs = shown(&choose).expect("a test shows every invariant");
            let look = program(include_str!("../../programs/look.basm"));
            let ask = program(include_str!("../../programs/ask.basm"));
            Programs { look, choose, ask, proofs }
        })
    }

    /// The programs as bytes, in the order in which they run.
    pub fn bytes(&self) -> [Vec<u8>; 3] {
        [&self.look, &self.choose, &self.ask].map(Program::to_bytes)
    }

    /// What was shown of `choose`.
    pub fn proofs(&self) -> &[(Vec<u8>, Vec<u8>)] {
        &self.proofs
    }

    /// Runs the programs over these tables, with this teacher.
    pub fn run<T: TeachSlot>(
        &self,
        shared: &SharedMemory,
        standing: &Standing,
        teacher: T,
    ) -> Result<(Asked, T), Trap> {
        let published = shared.view(Caller::Core).segment(Segment::Bandit).unwrap_or_default();
        let mut words = vec![0; PAGE_WORDS];
        words[..BANDS_MAX].copy_from_slice(&standing.practised);
        words[word::BANDS_END] = 8 * standing.bands.clamp(1, BANDS_MAX) as u64;
        words[word::PLACE] = standing.place as u64;
        words[word::FAMILIES] = standing.families.max(1) as u64;
        words[word::REQUESTS] = u64::from(standing.requests);
        words.extend_from_slice(published);
        words.resize(words.len().next_multiple_of(PAGE_WORDS), 0);
        let starts = SegmentStarts::default().with(SegmentBase::Bandit, 8 * PAGE_WORDS as u64);
        let mut host = Host::with_slots(0, teacher, Declining::default());
        let (mut executed, mut given) = (0, REFUSED);
        for program in [&self.look, &self.choose, &self.ask] {
            let length = words.len();
            let mut memory = Memory::new(&mut words, &mut []);
            memory.allow(0, PAGE_WORDS, Access::Write);
            memory.allow(PAGE_WORDS, length - PAGE_WORDS, Access::Read);
            let mut core = Core::new(program, 1, starts);
            core.x[3] = starts.get(SegmentBase::Bandit);
            core.run(program, &mut memory, &mut host, INSTRUCTIONS_MAX)?;
            executed += core.executed;
            given = core.x[10];
        }
        let line = host.log().last().cloned().unwrap_or_default();
        let asked = Asked {
            place: words[word::BAND + 1],
            band: words[word::BAND] / 8,
            context: words[word::BAND + 2],
            template: Some(given).filter(|given| *given != REFUSED),
            executed,
            line,
        };
        Ok((asked, host.teacher))
    }
}

/// The conditions of a program with their certificates, where all of them hold.
pub fn shown(program: &Program) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let options = Options { memory_words: CHOOSE_WORDS, budget: Budget::DEFAULT };
    let checked = hoare::check(program, options).ok()?;
    let proof = |edge: &hoare::Checked| match &edge.verdict {
        Verdict::Holds(certificate) => {
            let mut writer = Writer::new();
            certificate.encode(&mut writer);
            Some((edge.formula.to_dimacs().into_bytes(), writer.into_bytes()))
        }
        _ => None,
    };
    checked.iter().map(proof).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_isa::coprocessor::TaskDescriptor;
    use bem_machine::config::GenesisConfig;

    /// Gives the number of every request.
    #[derive(Debug, Default)]
    struct Counting(Vec<[u64; 3]>);

    impl TeachSlot for Counting {
        fn teach(&mut self, domain: u64, difficulty: u64, context: u64) -> Option<TaskDescriptor> {
            self.0.push([domain, difficulty, context]);
            let number = self.0.len() as u64;
            let (band, template, seed, tree) = (difficulty, number, context, "parity".to_string());
            let taught = TaskDescriptor { number, domain, band, template, difficulty: 0, seed, tree };
            (difficulty != 7).then_some(taught)
        }
    }

    fn asked(standing: &Standing) -> Asked {
        let shared = SharedMemory::new(&GenesisConfig::default());
        let (asked, teacher) = Programs::get().run(&shared, standing, Counting::default()).unwrap();
        assert_eq!(teacher.0, [[asked.place, asked.band, asked.context]]);
        asked
    }

    #[test]
    fn the_band_that_was_practised_least_is_asked_for_and_every_other_request_is_for_a_partner() {
        let practised = [3, 2, 0, 5, 0, 1, 1, 1];
        let mut standing = Standing { place: 25, families: 27, requests: 0, practised, bands: 8 };
        let mut places = Vec::new();
        for requests in 0..6 {
            standing.requests = requests;
            let asked = asked(&standing);
            assert_eq!((asked.band, asked.template), (2, Some(1)));
            assert_eq!(asked.line, [1, 0, asked.place, asked.band, asked.context]);
            places.push(asked.place);
        }
        assert_eq!(places, [26, 25, 0, 25, 1, 25]);
        // Only bands that there are count, and a teacher may decline.
        assert_eq!(asked(&Standing { bands: 2, ..standing }).band, 1);
        let last = [1, 1, 1, 1, 1, 1, 1, 0];
        assert_eq!(asked(&Standing { practised: last, ..standing }).template, None);
        assert_eq!(asked(&Standing { families: 1, place: 0, requests: 0, ..standing }).place, 0);
    }

    #[test]
    fn a_choice_that_could_leave_its_bands_is_not_shown() {
        let text = include_str!("../../programs/choose.basm");
        assert_eq!(Programs::get().proofs().len(), 2);
        for (right, wrong) in [
            ("sel x3, x3, x6, p0", "sel x3, x6, x3, p0"),
            ("li x6, 56", "li x6, 57"),
            ("li x6, 0  ", "li x6, 64  "),
            (">=u 8", ">=u 0"),
            ("st x3, [x0 + 96]", "st x3, [x0 + 104]"),
        ] {
            let wrong = text.replace(right, wrong);
            assert_ne!(wrong, text);
            assert_eq!(shown(&assemble(&wrong).unwrap()), None, "{right}");
        }
    }
}
