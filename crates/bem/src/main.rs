//! The command line. Only this crate sees the clock, files, threads and floats.

mod answers;
mod bundle;
mod cli;
mod file_store;
mod files;
mod interrupt;
mod kept_world;
mod keys;
mod learned;
mod measured;
mod policy_file;
mod process;
mod program_game;
mod spelling;
mod start_from;
mod task;
mod tool_task;

fn main() -> std::process::ExitCode {
    cli::main()
}
