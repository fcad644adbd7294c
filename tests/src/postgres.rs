//! A private PostgreSQL 15 cluster for a test: the other opinion on what a query means. It listens on a free port of
//! the loopback address and on a socket in its own folder, keeps nothing on disk safe, and is gone when dropped.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Where Debian keeps the programs; `TIDEGATE_POSTGRES_BIN` says otherwise.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

/// Longest a cluster may take to accept connections.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A running cluster. Its time zone is UTC, its encoding UTF-8, its locale `C.UTF-8`.
#[derive(Debug)]
pub struct Cluster {
    server: Child,
    port: u16,
    folder: TempDir,
}

impl Cluster {
    /// Starts an empty cluster. The server does not run as root: where the test does, `setpriv` makes it the user
    /// `postgres`.
    ///
    /// # Panics
    /// When PostgreSQL 15 is not installed or does not start.
    #[must_use]
    pub fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("tidegate-pg-").tempdir().expect("a temporary folder");
        let is_root =
            fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
        if is_root {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("open the folder");
        }
        let data = folder.path().join("data");
        let made = program("initdb", is_root)
            .args(["--no-sync", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"])
            .arg("--pgdata")
            .arg(&data)
            .current_dir("/")
            .stdin(Stdio::null())
            .output()
            .expect("initdb runs");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));

        let port = free_port();
        let log = fs::File::create(folder.path().join("log")).expect("the log file");
        let server = program("postgres", is_root)
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(folder.path())
            .args(["-p", &port.to_string(), "-h", "127.0.0.1"])
            .args(["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"])
            // A query that generates a product must not fill the disk.
            .args(["-c", "temp_file_limit=1GB"])
            .args(["-c", "timezone=UTC", "-c", "log_timezone=UTC", "-c", "max_connections=20"])
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("postgres runs");
        let mut cluster = Self { server, port, folder };
        cluster.wait_until_ready();
        cluster
    }

    /// The connection URL of the database `postgres`, as superuser, without a password.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgresql://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// A connection.
    ///
    /// # Panics
    /// When the server refuses.
    #[must_use]
    pub fn connect(&self) -> postgres::Client {
        postgres::Client::connect(&self.url(), postgres::NoTls).expect("the cluster accepts connections")
    }

    fn wait_until_ready(&mut self) {
        let started = Instant::now();
        loop {
            let error = match postgres::Client::connect(&self.url(), postgres::NoTls) {
                Ok(_) => return,
                Err(error) => error,
            };
            let ended = self.server.try_wait().expect("the server's state");
            if ended.is_some() || started.elapsed() > START_TIMEOUT {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                panic!("postgres does not start ({ended:?}, {error}):\n{log}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // An immediate shutdown: nothing in the cluster is wanted any more, and SIGKILL would leave its children.
        let _ = Command::new("kill").args(["-QUIT", &self.server.id().to_string()]).status();
        let _ = self.server.wait();
    }
}

fn program(name: &str, is_root: bool) -> Command {
    let folder =
        std::env::var_os("TIDEGATE_POSTGRES_BIN").map_or_else(|| PathBuf::from(PROGRAMS), PathBuf::from);
    let path: &Path = &folder.join(name);
    if !is_root {
        return Command::new(path);
    }
    // `setpriv` replaces itself by the program, so that the process started is the server's own.
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--pdeathsig=QUIT"]).arg(path);
    command
}

/// A port that nobody listens on.
fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its address").port()
}
