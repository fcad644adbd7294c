//! A private PostgreSQL 15, the oracle for everything that SQL means.
//!
//! [`Cluster::start`] makes a cluster in a temporary folder, with a socket in that folder and no port, durability off,
//! time zone UTC and locale C.UTF-8. PostgreSQL refuses to run as root; as root, the user `postgres` runs it.

use postgres::{Client, Config, NoTls};
use std::{
    io,
    os::unix::{fs::chown, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Where Debian's package `postgresql-15` puts its programs.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
/// How long a start may take on a machine that is busy with builds.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running cluster. It ends, and its folder goes, when this is dropped or the process ends, however it does.
pub struct Cluster {
    folder: PathBuf,
    /// A shell that ends the cluster and removes the folder when its input closes.
    keeper: Child,
}

impl Cluster {
    /// Makes and starts a cluster; about two seconds.
    ///
    /// # Panics
    /// When PostgreSQL is not installed or does not start; `./check` installs it.
    #[must_use]
    pub fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("tidegate-pg-").tempdir().expect("a folder").keep();
        let as_root = id(&["-u"]) == 0;
        if as_root {
            chown(&folder, Some(id(&["-u", "postgres"])), Some(id(&["-g", "postgres"])))
                .expect("we are root");
        }
        let user = if as_root { "setpriv --reuid=postgres --regid=postgres --clear-groups" } else { "" };
        // The shell reads its input until this process closes it, also by dying.
        let script = format!(
            "cd '{folder}' || exit 1
            {user} {PROGRAMS}/initdb -D data -U postgres -A trust -E UTF8 --locale=C.UTF-8 -N > initdb.log 2>&1
            {user} {PROGRAMS}/postgres -D data -k '{folder}' -h '' -F -c timezone=UTC -c jit=off \
                -c full_page_writes=off -c synchronous_commit=off -c autovacuum=off -c max_connections=200 \
                -c datestyle=ISO -c max_locks_per_transaction=1000 > postgres.log 2>&1 < /dev/null &
            server=$!
            cat > /dev/null
            kill -INT $server
            wait $server
            rm -rf '{folder}'",
            folder = folder.display()
        );
        let mut keeper = Command::new("sh");
        keeper.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // In a group of its own an interrupt of the tests does not reach it before it can clean up.
        let keeper = keeper.process_group(0).spawn().expect("there is a shell");
        let cluster = Self { folder, keeper };
        let since = Instant::now();
        while let Err(error) = cluster.try_connect() {
            assert!(since.elapsed() < PATIENCE, "{error}: {}", log(&cluster.folder).unwrap_or_default());
            std::thread::sleep(Duration::from_millis(20));
        }
        cluster
    }

    /// A new connection to its database.
    ///
    /// # Panics
    /// When the cluster is gone.
    #[must_use]
    pub fn connect(&self) -> Client {
        self.try_connect().expect("the cluster runs")
    }

    /// Its address for clients in other processes.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgresql:///postgres?host={}&user=postgres", self.folder.display())
    }

    fn try_connect(&self) -> Result<Client, postgres::Error> {
        Config::new().host_path(&self.folder).user("postgres").dbname("postgres").connect(NoTls)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

fn id(arguments: &[&str]) -> u32 {
    let output = Command::new("id").args(arguments).output().expect("`id` is part of every system");
    let text = String::from_utf8(output.stdout).expect("a number");
    text.trim().parse().expect("the user postgres comes with the package postgresql-15; run ./check")
}

fn log(folder: &Path) -> io::Result<String> {
    Ok(std::fs::read_to_string(folder.join("initdb.log"))?
        + &std::fs::read_to_string(folder.join("postgres.log"))?)
}

#[cfg(test)]
mod tests {
    use super::Cluster;

    #[test]
    fn it_speaks_utc_and_sorts_bytewise() {
        let cluster = Cluster::start();
        let mut client = cluster.connect();
        let row = client.query_one("select timestamptz '2013-02-04 05:00:00+02' ::text, 'a' > 'B'", &[]);
        let row = row.expect("an answer");
        assert_eq!((row.get::<_, &str>(0), row.get::<_, bool>(1)), ("2013-02-04 03:00:00+00", true));
        let folder = cluster.folder.clone();
        drop((client, cluster));
        assert!(!folder.exists());
    }
}
