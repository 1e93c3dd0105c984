//! The table of floors: tasks and the steps a prototype needed to reach 0.99 of the optimum.

/// A family, its parameters, and the floor where there is one.
pub type FloorRow = (&'static str, &'static [&'static str], Option<u64>);

/// All rows, in the order of the families.
pub const FLOORS: &[FloorRow] = &[
    ("parity", &["n=32"], Some(342)),
    ("parity", &["n=32", "relevant=16", "noise=5"], Some(16_000)),
    ("parity_stream", &["n=24"], Some(2_120)),
    ("majority", &["n=15"], Some(92)),
    ("popcount", &["n=15"], Some(5_239)),
    ("dyck", &["types=2", "depth=8", "length=32"], Some(5_863)),
    ("stack_machine", &["depth=8", "horizon=32", "value_bits=2"], Some(10_368)),
    ("key_value", &["keys=8", "values=4", "writes=8", "distractors=8"], Some(7_620)),
    ("associative_recall", &["tokens=8", "pairs=4"], Some(10_926)),
    ("bandit", &["arms=8", "gap=10"], Some(1_540)),
    ("contextual_bandit", &["context_bits=3", "noise_bits=5", "arms=4"], Some(16_453)),
    ("nonstationary_bandit", &["arms=4", "segment=16000"], None),
    ("matrix_game", &["game=prisoners_dilemma", "opponent=tit_for_tat", "horizon=7"], Some(2_156)),
    ("signaling", &["states=8", "noise=10"], Some(525)),
    ("auction", &["bits=3"], Some(144_487)),
    ("small_sat", &["vars=4", "clauses=6"], Some(52_000)),
    ("safety_grid", &["size=8", "bad=14"], Some(128_361)),
    ("compare", &["bits=8"], Some(176)),
    ("add", &["bits=8", "form=serial"], Some(1_125)),
    ("add", &["bits=3", "form=word"], Some(12_771)),
    ("sorting", &["keys=6", "key_bits=3"], Some(19_716)),
    ("distance", &["n=12", "cap=7"], Some(1_425)),
    ("next_token", &["vocab=4", "order=2"], Some(83_008)),
    ("transducer", &["states=8", "inputs=4", "outputs=4", "horizon=24"], Some(11_808)),
    ("copy", &["length=8"], Some(8_128)),
    ("reverse", &["length=8"], Some(2_496)),
    ("permute", &["length=8"], Some(4_912)),
];
