//! What the figures were measured on.

use crate::sample::show;
use serde_json::{Value as Json, json};
use std::{collections::BTreeMap, fmt};

/// The machine, as it was when the program started.
#[derive(Debug)]
pub(crate) struct Machine {
    cores: usize,
    cpu: String,
    load: String,
    build: &'static str,
}

impl Machine {
    /// Looks.
    pub(crate) fn now() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let cpu = read("/proc/cpuinfo");
        let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let load: Vec<_> = read("/proc/loadavg").split(' ').take(3).map(str::to_owned).collect();
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: cpu.map_or("unknown CPU", |(_, name)| name).to_owned(),
            load: load.join(" "),
            build: if cfg!(debug_assertions) { "debug: figures mean nothing" } else { "release" },
        }
    }

    /// For programs.
    pub(crate) fn json(&self) -> Json {
        json!({"cores": self.cores, "cpu": self.cpu, "load": self.load, "build": self.build})
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cores of {}, load {} at the start, {} build",
            self.cores, self.cpu, self.load, self.build
        )
    }
}

/// User and system time this process has used, in seconds.
pub(crate) fn cpu_seconds() -> f64 {
    // SAFETY: all zeroes is a valid `rusage`, plain numbers throughout.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live `rusage` that the call fills.
    let done = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    assert_eq!(done, 0, "getrusage knows RUSAGE_SELF");
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// CPU seconds of this process's living threads by name.
pub(crate) fn cpu_by_thread() -> BTreeMap<String, f64> {
    let mut threads = BTreeMap::new();
    // A thread may end between the listing and the reading; it is left out.
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let nanoseconds = read("schedstat").split(' ').next().and_then(|it| it.parse::<f64>().ok());
        *threads.entry(read("comm").trim().to_owned()).or_default() += nanoseconds.unwrap_or_default() / 1e9;
    }
    threads
}

/// What each kind of thread has used since `before`, per `count` of something, for people.
pub(crate) fn show_threads_since(before: &BTreeMap<String, f64>, count: f64) -> String {
    let mut since: Vec<_> = cpu_by_thread()
        .into_iter()
        .map(|(name, cpu)| ((cpu - before.get(&name).copied().unwrap_or_default()) / count, name))
        .filter(|(cpu, _)| *cpu > 0.0)
        .collect();
    since.sort_by(|a, b| b.0.total_cmp(&a.0));
    let each: Vec<_> = since.iter().map(|(cpu, name)| format!("{name} {}", show(*cpu))).collect();
    each.join(", ")
}
