//! The map of SHARED: which segments there are, where each begins, and who may touch which.
//!
//! The map is fixed by the configuration and the same for Rust code and for programs of the control core.
//! Must not know what the words mean. Clauses: MEM-2, D-10.

use crate::config::GenesisConfig;

/// A named part of SHARED. The numbers are stored and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Segment {
    /// The frozen parameters; read-only.
    #[doc(alias = "CONFIG")]
    Config = 0,
    /// Statistics of experts.
    #[doc(alias = "BANDIT")]
    Bandit = 1,
    /// Templates, base problems and the ladder.
    #[doc(alias = "TEACH")]
    Teach = 2,
    /// Counters, improvement scores and the machine's own registers.
    #[doc(alias = "WORK")]
    Work = 3,
    /// Routing descriptors and directories.
    #[doc(alias = "ROUTE_META")]
    RouteMeta = 4,
    /// Patches.
    #[doc(alias = "PATCH_QUEUE")]
    PatchQueue = 5,
    /// What passes between the machine and its world.
    #[doc(alias = "ENV")]
    Env = 6,
    /// Statistics of templates and activities.
    #[doc(alias = "META_BANDIT")]
    MetaBandit = 7,
    /// Counters of the trace.
    #[doc(alias = "TRACE_META")]
    TraceMeta = 8,
    /// Descriptors of experts.
    #[doc(alias = "EXPERT")]
    Expert = 9,
    /// Programs of the control core.
    #[doc(alias = "CFG")]
    Program = 10,
    /// Formulas and proofs.
    #[doc(alias = "PROOF")]
    Proof = 11,
    /// Files and databases that tools may reach.
    #[doc(alias = "CATALOG")]
    Catalog = 12,
    /// Requests to tools, as the bus's own tables have them: a mirror that is only read.
    #[doc(alias = "TOOL_BUS")]
    ToolBus = 13,
    /// Questions to people.
    #[doc(alias = "HUMAN")]
    Human = 14,
}

impl Segment {
    /// All segments, in order of their numbers and of their places.
    pub const ALL: [Segment; 15] = [
        Segment::Config,
        Segment::Bandit,
        Segment::Teach,
        Segment::Work,
        Segment::RouteMeta,
        Segment::PatchQueue,
        Segment::Env,
        Segment::MetaBandit,
        Segment::TraceMeta,
        Segment::Expert,
        Segment::Program,
        Segment::Proof,
        Segment::Catalog,
        Segment::ToolBus,
        Segment::Human,
    ];

    /// The name in the specification.
    pub const fn name(self) -> &'static str {
        match self {
            Segment::Config => "CONFIG",
            Segment::Bandit => "BANDIT",
            Segment::Teach => "TEACH",
            Segment::Work => "WORK",
            Segment::RouteMeta => "ROUTE_META",
            Segment::PatchQueue => "PATCH_QUEUE",
            Segment::Env => "ENV",
            Segment::MetaBandit => "META_BANDIT",
            Segment::TraceMeta => "TRACE_META",
            Segment::Expert => "EXPERT",
            Segment::Program => "CFG",
            Segment::Proof => "PROOF",
            Segment::Catalog => "CATALOG",
            Segment::ToolBus => "TOOL_BUS",
            Segment::Human => "HUMAN",
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Who touches SHARED. What each may read and write is fixed in [`Caller::may_read`] and [`Caller::may_write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The start of the machine: the only one that writes CONFIG.
    Boot,
    /// The step.
    FastPath,
    /// An expert's circuit, through its specs.
    Expert,
    /// A world's driver.
    Environment,
    /// The teacher.
    Teacher,
    /// Changes to structure.
    Structure,
    /// The prover.
    Prover,
    /// The tool bus.
    Tools,
    /// The human feedback layer.
    People,
    /// The control core: programs reach everything a step, a teacher and a structural change reach.
    Core,
}

const fn set(segments: &[Segment]) -> u16 {
    let mut bits = 0;
    let mut index = 0;
    while index < segments.len() {
        bits |= segments[index].bit();
        index += 1;
    }
    bits
}

impl Caller {
    const fn readable(self) -> u16 {
        let own = self.writable();
        own | match self {
            Caller::Boot | Caller::FastPath | Caller::Structure | Caller::Core => u16::MAX >> 1,
            Caller::Expert => set(&[Segment::Env]),
            Caller::Environment | Caller::Tools => Segment::Config.bit(),
            Caller::Teacher => set(&[Segment::Config, Segment::Env, Segment::TraceMeta, Segment::Work]),
            Caller::Prover => set(&[Segment::Config, Segment::Expert, Segment::Program, Segment::PatchQueue]),
            Caller::People => set(&[Segment::Config, Segment::Work, Segment::PatchQueue, Segment::TraceMeta]),
        }
    }

    #[inline(always)]
    const fn writable(self) -> u16 {
        match self {
            Caller::Boot => u16::MAX >> 1,
            Caller::FastPath => set(&[Segment::Bandit, Segment::Work, Segment::Env, Segment::TraceMeta]),
            Caller::Expert => Segment::Work.bit(),
            Caller::Environment => Segment::Env.bit(),
            Caller::Teacher => set(&[Segment::Teach, Segment::MetaBandit, Segment::Env]),
            Caller::Structure => set(&[
                Segment::Bandit,
                Segment::Teach,
                Segment::Work,
                Segment::RouteMeta,
                Segment::PatchQueue,
                Segment::Expert,
                Segment::Program,
            ]),
            Caller::Prover => Segment::Proof.bit(),
            Caller::Tools => set(&[Segment::Catalog, Segment::ToolBus]),
            Caller::People => Segment::Human.bit(),
            Caller::Core => {
                Caller::FastPath.writable()
                    | Caller::Teacher.writable()
                    | set(&[Segment::PatchQueue, Segment::Proof])
            }
        }
    }

    /// Whether this caller may read this segment.
    pub const fn may_read(self, segment: Segment) -> bool {
        self.readable() & segment.bit() != 0
    }

    /// Whether this caller may write this segment.
    #[inline(always)]
    pub const fn may_write(self, segment: Segment) -> bool {
        self.writable() & segment.bit() != 0
    }
}

/// Where each segment begins. Invariant: the segments lie side by side in order and cover all of SHARED.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentMap {
    bases: [u32; Segment::ALL.len() + 1],
}

impl SegmentMap {
    /// The map that this configuration asks for.
    pub fn new(config: &GenesisConfig) -> SegmentMap {
        let sizes = Segment::ALL.map(|segment| match segment {
            Segment::Config => config.words_config,
            Segment::Bandit => config.words_bandit,
            Segment::Teach => config.words_teach,
            Segment::Work => config.words_work,
            Segment::RouteMeta => config.words_route_meta,
            Segment::PatchQueue => config.words_patch_queue,
            Segment::Env => config.words_env,
            Segment::MetaBandit => config.words_meta_bandit,
            Segment::TraceMeta => config.words_trace_meta,
            Segment::Expert => config.words_expert,
            Segment::Program => config.words_program,
            Segment::Proof => config.words_proof,
            Segment::Catalog => config.words_catalog,
            Segment::ToolBus => config.words_tool_bus,
            Segment::Human => config.words_human,
        });
        let mut bases = [0; Segment::ALL.len() + 1];
        for (index, size) in sizes.into_iter().enumerate() {
            bases[index + 1] = bases[index] + size;
        }
        SegmentMap { bases }
    }

    /// The address of a segment's first word.
    #[inline]
    pub const fn base(&self, segment: Segment) -> u32 {
        self.bases[segment as usize]
    }

    /// How many words a segment has.
    #[inline]
    pub const fn size(&self, segment: Segment) -> u32 {
        self.bases[segment as usize + 1] - self.bases[segment as usize]
    }

    /// How many words all segments have.
    pub const fn total(&self) -> u32 {
        self.bases[Segment::ALL.len()]
    }

    /// Which segment an address belongs to.
    pub fn segment_of(&self, address: u32) -> Option<Segment> {
        Segment::ALL.into_iter().find(|segment| address < self.bases[*segment as usize + 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_lie_side_by_side_and_cover_everything() {
        let config = GenesisConfig::default();
        let map = SegmentMap::new(&config);
        let mut next = 0;
        for segment in Segment::ALL {
            assert_eq!(map.base(segment), next);
            assert_eq!(map.segment_of(next), Some(segment));
            next += map.size(segment);
            assert_eq!(map.segment_of(next - 1), Some(segment));
        }
        assert_eq!(next, map.total());
        assert_eq!(map.segment_of(next), None);
    }

    #[test]
    fn only_boot_writes_the_configuration_and_everyone_reads_what_they_write() {
        let callers = [
            Caller::FastPath,
            Caller::Expert,
            Caller::Environment,
            Caller::Teacher,
            Caller::Structure,
            Caller::Prover,
            Caller::Tools,
            Caller::People,
            Caller::Core,
        ];
        for caller in callers {
            assert!(!caller.may_write(Segment::Config), "{caller:?}");
            for segment in Segment::ALL {
                assert!(!caller.may_write(segment) || caller.may_read(segment), "{caller:?} {segment:?}");
            }
        }
        assert!(Caller::Boot.may_write(Segment::Config));
        // The catalog and the mirror of the bus are written by the bus alone, and read by programs.
        for segment in [Segment::Catalog, Segment::ToolBus] {
            let writers = callers.into_iter().filter(|caller| caller.may_write(segment));
            assert!(writers.eq([Caller::Tools]) && Caller::Core.may_read(segment), "{segment:?}");
        }
    }
}
