//! The real binary as a process of its own.

use super::server::within;
use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command as StdCommand, Stdio},
    sync::OnceLock,
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

/// The binary: `TIDEGATE_BIN`, or the one that cargo has or now builds for this test.
///
/// # Panics
/// When it cannot be built.
pub(crate) fn tidegate() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(named) = env::var_os("TIDEGATE_BIN") {
            return named.into();
        }
        // The test stands in `<target>/<profile>/deps/`, the binary two levels up. It is built with the profile of this
        // test, which shares all that is compiled already, and always, so that it is never an old one.
        let test = env::current_exe().expect("a test has a path");
        let profile_folder = test.ancestors().nth(2).expect("<target>/<profile>/deps/<test>");
        let release = profile_folder.ends_with("release");
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = StdCommand::new(cargo)
            .args(["build", "--quiet", "--package", "tidegate-tests"])
            .args(["--package", "tidegate-server", "--bin", "tidegate"])
            .args(["--profile", if release { "bench" } else { "test" }])
            .arg("--target-dir")
            .arg(profile_folder.parent().expect("<target>"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .expect("cargo runs");
        assert!(built.success(), "the binary cannot be built");
        profile_folder.join("tidegate")
    })
}

/// A running `tidegate serve`. Dropping it kills it.
pub(crate) struct Process {
    child: Child,
    /// Where it listens.
    pub(crate) addr: SocketAddr,
}

impl Process {
    /// Starts a server on a data folder and waits until it is ready.
    ///
    /// # Panics
    /// When it does not get ready.
    pub(crate) async fn serve(data: &Path) -> Self {
        let mut command = Command::new(tidegate());
        command.args(["serve", "--addr", "127.0.0.1:0", "--data-dir"]).arg(data);
        Self::start(command).await
    }

    /// As [`Process::serve`], where no file may grow beyond that many KiB: the disk is full from there on.
    pub(crate) async fn serve_on_small_disk(data: &Path, kibibytes: u64) -> Self {
        let mut command = Command::new("bash");
        // The signal that comes with the limit is ignored, so that writing fails as it does on a full disk.
        let script = format!("trap '' XFSZ; ulimit -f {kibibytes}; exec \"$@\"");
        command.args(["-c", &script, "bash"]).arg(tidegate());
        command.args(["serve", "--addr", "127.0.0.1:0", "--data-dir"]).arg(data);
        Self::start(command).await
    }

    async fn start(mut command: Command) -> Self {
        let mut child = command
            .current_dir(env::temp_dir())
            .env("TIDEGATE_TELEMETRY_LOG_FILTER", "error")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let line = within("the line that says ready", lines.next_line()).await.expect("readable");
        let line: serde_json::Value =
            serde_json::from_str(&line.expect("the server gets ready")).expect("one line of JSON");
        assert_eq!(line["ready"], true);
        let addr = line["addr"].as_str().expect("an address").parse().expect("an address");
        Self { child, addr }
    }

    /// `kill -9`.
    pub(crate) async fn kill(&mut self) {
        // A process that has ended by itself is a failure that shows in what the test looks at next.
        let _ = self.child.start_kill();
        within("the process's end", self.child.wait()).await.expect("it ends");
    }
}
