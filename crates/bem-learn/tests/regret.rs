//! The stated bounds at the full horizon: 16 arms, gap 0.1, 10^6 steps, fifty seeds (`bem bench regret` plays a
//! hundred). Clauses: VM-16, D-3, D-4.

use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_learn::index::Parameters;
use bem_learn::laboratory::{Setting, play};
use bem_learn::rule::{Rule, RuleKind};

#[test]
fn the_default_keeps_its_bounds_at_the_full_horizon_on_every_seed() {
    let seeds = 50;
    let setting = Setting::REFERENCE;
    let (mut early, mut late, mut worst) = (Fixed::ZERO, Fixed::ZERO, Fixed::ZERO);
    for seed in 0..seeds {
        let prng = Prng::stream(seed, "laboratory/rule");
        let mut rule = Rule::new(RuleKind::DEFAULT, Parameters::DEFAULT, setting.live(), prng);
        let regret = play(&setting, seed, &mut rule, &[100_000, 1_000_000]).regret;
        early = early.plus(regret[0]);
        late = late.plus(regret[1]);
        worst = worst.max(regret[1]);
    }
    let mean = late.div_count_floor(seeds);
    assert!(mean <= Fixed::from_int(560), "mean {mean}");
    assert!(worst <= Fixed::from_int(1_500), "worst {worst}");
    // An exponent below 0.3: ten times the steps, less than 10^0.3 times the regret.
    assert!(late < early.mul_floor(Fixed::from_ratio(1_995, 1_000)), "{early} {late}");
}
