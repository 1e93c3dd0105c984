//! The command line. Only this crate sees the clock, files, threads and floats.

mod answers;
mod asked_model;
mod beside_thread;
mod bundle;
mod cli;
mod climb_beside;
mod crew;
mod event_log;
mod file_store;
mod files;
mod images;
mod interrupt;
mod kept_world;
mod keys;
mod learned;
mod measured;
mod memory;
mod patched;
mod pipeline_beside;
mod places;
mod policy_file;
mod process;
mod program_game;
mod served;
mod spelling;
mod start_from;
mod task;
mod tool_task;
mod translated;
mod world_ladder;

fn main() -> std::process::ExitCode {
    cli::main()
}
