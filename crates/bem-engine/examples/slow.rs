#[path = "../../bem/src/cli/bench/people/script.rs"]
#[allow(dead_code)]
mod script;
use bem_engine::learner::Settings;
use bem_games::generated::Kind;
use script::{Annotator, run};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let budget: u64 = args[2].parse().unwrap();
    let from: u64 = args[3].parse().unwrap();
    let to: u64 = args[4].parse().unwrap();
    let who: Vec<&str> = args[5].split(',').collect();
    for kind in Kind::ALL {
        if kind.name() != args[1] && args[1] != "all" {
            continue;
        }
        for seed in from..to {
            let game = kind.draw(seed);
            let sh = game.shape();
            let mut quick = false;
            for w in &who {
                if quick {
                    continue;
                }
                let a = match *w {
                    "n" => Annotator::Nobody,
                    "l" => Annotator::Liar,
                    p => Annotator::Right(p.parse().unwrap()),
                };
                let t = std::time::Instant::now();
                let s = Settings { budget, ..Settings::new(seed) };
                let r = run(game.as_ref(), s, a).unwrap();
                println!(
                    "{} {} bits {} act {} hor {} {:6}: to99 {:?} steps {} score {:.4} asked {} answered {} app {} rej {} {:.1}s {:.60}",
                    kind.name(),
                    seed,
                    sh.observation_bits,
                    sh.actions,
                    sh.horizon,
                    w,
                    r.steps_to_99,
                    r.steps,
                    r.score.to_raw() as f64 / 4294967296.0,
                    r.asked,
                    r.answered,
                    r.applied,
                    r.rejected,
                    t.elapsed().as_secs_f64(),
                    r.words
                );
                if *w == "n" && r.steps_to_99.is_some_and(|s| s < 5000) {
                    quick = true;
                }
            }
        }
    }
}
