use bem_engine::learner::Settings;
use bem_engine::solve::{Lesson, teach};
use bem_games::generated::Kind;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let budget: u64 = args[2].parse().unwrap();
    let from: u64 = args[3].parse().unwrap();
    let to: u64 = args[4].parse().unwrap();
    for kind in Kind::ALL {
        if kind.name() != args[1] && args[1] != "all" { continue; }
        for seed in from..to {
            let game = kind.draw(seed);
            let t = std::time::Instant::now();
            let s = Settings { budget, ..Settings::new(seed) }.with(|c| c.until_budget = true);
            let lesson = Lesson { until_solved: true, ..Lesson::alone(s) };
            let r = teach(game.as_ref(), lesson, &mut |_| t.elapsed().as_secs() < 60).unwrap();
            let sh = game.shape();
            println!("{} {} bits {} act {} hor {} : to99 {:?} first {:?} steps {} score {:?} app {} rej {} {:.1}s {}", kind.name(), seed, sh.observation_bits, sh.actions, sh.horizon, r.steps_to_99, r.first_to_99, r.learned.tally.steps, r.score().map(|f| f.to_raw() as f64 / 4294967296.0), r.learned.tally.applied, r.learned.tally.rejected, t.elapsed().as_secs_f64(), r.learned.words);
        }
    }
}
