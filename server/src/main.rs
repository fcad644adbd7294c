//! The `tidegate` binary.

use mimalloc::MiMalloc;
use std::process::ExitCode;

/// Rows and tree nodes are made on the store's thread and dropped on others, which this allocator takes without locks.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    tidegate_server::cli::main()
}
