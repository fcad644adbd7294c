//! The binary from outside: what its commands print, where, and how they exit.

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

/// How long anything may take. What is waited for comes much sooner.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How often a condition is looked at.
const ASK_INTERVAL: Duration = Duration::from_millis(20);

const TABLES: &str = r#"{"tables":[{"name":"t","columns":[{"name":"id","type":"int8"},{"name":"s","type":"text"}],"primary_key":["id"]}]}"#;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TIDEGATE_")) {
        command.env_remove(name);
    }
    command
}

/// Runs a command to its end.
fn run(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// Checks that a command ends with an exit code, nothing on stdout and one line on stderr; answers that line.
#[track_caller]
fn fails(code: i32, arguments: &[&str]) -> String {
    let output = run(arguments);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    if code == 1 {
        assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    }
    stderr.to_owned()
}

/// A command that goes on until it is stopped. Killed when it is dropped.
struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        Self::of(command(arguments))
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::inherit()).spawn().expect("the binary runs");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    #[track_caller]
    fn line(&self) -> String {
        self.lines.recv_timeout(WAIT_MAX).expect("a line on stdout in time")
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.line()).expect("JSON")
    }

    /// The lines up to the end of stdout.
    fn rest(&self) -> Vec<String> {
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(WAIT_MAX) {
                Ok(line) => rest.push(line),
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => panic!("stdout does not end; so far {rest:?}"),
            }
        }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status().expect("kill runs");
        assert!(sent.success());
    }

    /// Stops it by a signal; its exit status, and what more it printed.
    fn stop(mut self, name: &str) -> (ExitStatus, Vec<String>) {
        self.signal(name);
        let rest = self.rest();
        (self.child.wait().expect("it ends"), rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server in memory, and its address.
fn serve() -> (Running, String) {
    let server =
        Running::start(&["serve", "--addr", "127.0.0.1:0", "--data-dir", "", "--log-filter", "error"]);
    let ready = server.json();
    assert_eq!(ready["ready"], true);
    let url = format!("http://{}", ready["addr"].as_str().expect("an address"));
    (server, url)
}

fn get(url: &str) -> Value {
    ureq::get(url).call().expect("answered").body_mut().read_json().expect("JSON")
}

/// Posts lines to a server; the last one's commit version.
#[track_caller]
fn post(url: &str, lines: &[&str]) -> u64 {
    let mut response = ureq::post(format!("{url}/v1/commits")).send(lines.join("\n")).expect("taken");
    response.body_mut().read_json::<Value>().expect("JSON")["cv"].as_u64().expect("a cv")
}

/// Asks again until the answer is as it should be.
#[track_caller]
fn until<T: std::fmt::Debug>(what: &str, mut ask: impl FnMut() -> T, enough: impl Fn(&T) -> bool) -> T {
    let started = Instant::now();
    loop {
        let answer = ask();
        if enough(&answer) {
            return answer;
        }
        assert!(started.elapsed() < WAIT_MAX, "{what}: still {answer:?}");
        // The condition decides, not the time; this leaves the processor to the server.
        thread::sleep(ASK_INTERVAL);
    }
}

fn insert(id: u64) -> String {
    json!({ "ops": [{ "insert": "t", "row": { "id": id, "s": format!("row {id}") } }] }).to_string()
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

const QUERY: &str = r#"{"table":"t","order_by":[["id","desc"]]}"#;

#[test]
fn every_command_explains_itself() {
    for name in ["serve", "demo", "watch", "replay", "sql", "check", "status"] {
        let output = run(&[name, "--help"]);
        assert_eq!(output.status.code(), Some(0), "{name}");
        let help = text(&output.stdout);
        assert!(help.contains("Usage: tidegate") && help.contains("Examples:"), "{name}: {help}");
        assert!(output.stderr.is_empty(), "{name}");
    }
    assert_eq!(run(&["--version"]).status.code(), Some(0));
}

#[test]
fn bad_usage_exits_with_2() {
    for arguments in [
        &[][..],
        &["nonsense"],
        &["status", "--nonsense"],
        &["demo", "--speed", "0"],
        &["watch"],
        &["watch", "select 1", "--name", "q"],
        &["watch", "--name", "q", "--full"],
        &["watch", "--name", "q", "--args", "[]"],
        &["replay"],
        &["replay", "x", "--rate", "-1"],
        &["replay", "x", "--rate", "1", "--speed", "1"],
        &["replay", "x", "--subscribers", "3"],
        &["replay", "x", "--watch", "{}"],
        &["serve", "--config", "/nonexistent.toml"],
        &["serve", "--addr", "7300"],
        &["demo", "--addr", "localhost:http"],
    ] {
        fails(2, arguments);
    }
}

#[test]
fn what_is_not_a_query_is_answered_with_what_to_type() {
    let told = fails(2, &["watch", "flights"]);
    assert!(told.contains("\"select * from flights\"") && told.contains("{\"table\":\"flights\"}"), "{told}");
    let told = fails(2, &["replay", "x", "--watch", "a table", "--subscribers", "1"]);
    assert!(told.contains("--watch") && told.contains("{\"table\":"), "{told}");
    let empty = tempfile::NamedTempFile::new().expect("a file");
    let told = fails(1, &["watch", "--query", path(empty.path())]);
    assert!(told.contains(path(empty.path())) && told.contains("empty"), "{told}");
}

#[test]
fn addresses_are_read_alike_by_all_commands() {
    let (_server, url) = serve();
    post(&url, &[TABLES]);
    let commands = |url: &str| -> Vec<Vec<String>> {
        [&["status"][..], &["check"], &["watch", "--once", QUERY], &["replay", "/dev/null"]]
            .iter()
            .map(|command| {
                command.iter().map(|part| (*part).to_owned()).chain(["--url".to_owned(), url.to_owned()])
            })
            .map(Iterator::collect)
            .collect()
    };
    let of = |arguments: &[String]| arguments.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
    let ws = url.replace("http://", "ws://") + "/";
    for arguments in [commands(&url), commands(&ws)].concat() {
        let output = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(0), "{}: {}", of(&arguments), text(&output.stderr));
    }
    for (wrong, told) in [
        ("127.0.0.1:7300", "write http://127.0.0.1:7300"),
        ("https://127.0.0.1:7300", "must start with http://"),
        ("http://127.0.0.1:99999", "HOST:PORT"),
    ] {
        for arguments in commands(wrong) {
            let line = fails(2, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(line.contains(told), "{}: {line}", of(&arguments));
        }
    }
}

#[test]
fn a_wrong_address_to_listen_on_is_told_with_an_example() {
    let told = fails(2, &["serve", "--addr", "7300"]);
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.contains("HOST:PORT") && told.contains("127.0.0.1:7300"), "{told}");
}

#[test]
fn requests_that_cannot_be_read_are_answered_in_json() {
    let (_server, url) = serve();
    let address = url.trim_start_matches("http://");
    for query in ["args={\"p\": 7}", "args=<p>"] {
        let mut socket = TcpStream::connect(address).expect("the server is there");
        let request = format!("GET /v1/queries/q/rows?{query} HTTP/1.1\r\nhost: t\r\n\r\n");
        socket.write_all(request.as_bytes()).expect("written");
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).expect("an answer");
        let answer = text(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
        let body: Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(body["error"]["code"], "bad_message", "{body}");
    }
}

/// A server's address behind a gate that refuses the first WebSocket with an answer.
fn gate(url: &str, first: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let (server, first) = (url.trim_start_matches("http://").to_owned(), first.to_owned());
    thread::spawn(move || {
        let (mut refused, _) = listener.accept().expect("a connection");
        let mut request = BufReader::new(refused.try_clone().expect("a socket")).lines();
        while request.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        let head = format!("HTTP/1.1 503 Service Unavailable\r\ncontent-length: {}\r\n\r\n", first.len());
        refused.write_all((head + &first).as_bytes()).expect("written");
        for client in listener.incoming() {
            let client = client.expect("a connection");
            let server = TcpStream::connect(&server).expect("the server is there");
            for (mut from, mut to) in [
                (client.try_clone().expect("a socket"), server.try_clone().expect("a socket")),
                (server, client),
            ] {
                thread::spawn(move || std::io::copy(&mut from, &mut to));
            }
        }
    });
    address
}

#[test]
fn watch_waits_for_a_server_that_is_not_ready_and_tells_other_refusals() {
    let (_server, url) = serve();
    post(&url, &[TABLES, &insert(1)]);
    let answer = |code: &str| json!({ "error": { "code": code, "message": "the reason" } }).to_string();

    let replaying = gate(&url, &answer("not_ready"));
    let output = run(&["watch", "--url", &replaying, QUERY, "--json", "--once"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("row 1"), "{}", text(&output.stdout));
    let told: Vec<&str> = text(&output.stderr).lines().collect();
    assert!(told.len() == 1 && told[0].contains("the reason"), "{told:?}");

    let stopping = gate(&url, &answer("shutting_down"));
    let line = fails(1, &["watch", "--url", &stopping, QUERY]);
    assert!(line.contains("the reason (shutting_down)") && !line.contains("tidegate serve"), "{line}");
}

#[test]
fn watch_ends_when_nobody_reads_its_output_any_more() {
    let (_server, url) = serve();
    post(&url, &[TABLES, &insert(1)]);
    let mut child = command(&["watch", "--url", &url, QUERY, "--json"]).spawn().expect("the binary runs");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("the snapshot");
    assert!(line.contains("row 1"), "{line}");
    drop(stdout);
    // Nothing is written any more.
    let ended = until("it ends", || child.try_wait().expect("a child"), Option::is_some);
    assert_eq!(ended.and_then(|status| status.code()), Some(0));
}

#[test]
fn rows_keep_the_order_of_their_columns() {
    let (_server, url) = serve();
    let tables = r#"{"tables":[{"name":"t","columns":[{"name":"id","type":"int8"},{"name":"b","type":"json"},{"name":"a","type":"text"}],"primary_key":["id"]}]}"#;
    let cv = post(&url, &[tables, r#"{"ops":[{"insert":"t","row":{"a":"x","b":{"z":1,"y":2},"id":1}}]}"#]);
    let once = ["watch", "--url", &url, "--json", "--once"];
    let changes = run(&[&once[..], &[r#"{"table":"t"}"#]].concat());
    assert_eq!(
        text(&changes.stdout),
        format!(
            "{{\"cv\":{cv},\"changes\":[{{\"op\":\"add\",\"row\":{{\"id\":1,\"b\":{{\"y\":2,\"z\":1}},\"a\":\"x\"}}}}]}}\n"
        )
    );
    let selected = r#"{"table":"t","select":["b","a","id"]}"#;
    let row = r#"{"b":{"y":2,"z":1},"a":"x","id":1}"#;
    let full = run(&[&once[..], &["--full", selected]].concat());
    assert_eq!(text(&full.stdout), format!("{{\"cv\":{cv},\"rows\":[{row}]}}\n"));

    let definition = json!({ "query": serde_json::from_str::<Value>(selected).expect("JSON") });
    ureq::put(format!("{url}/v1/queries/q")).send_json(definition).expect("registered");
    let mut rows = ureq::get(format!("{url}/v1/queries/q/rows")).call().expect("answered");
    let body = rows.body_mut().read_to_string().expect("text");
    assert_eq!(body, format!("{{\"cv\":{cv},\"rows\":[{row}]}}"));
}

#[test]
fn replay_says_how_far_a_damaged_file_was_applied() {
    let (_server, url) = serve();
    let directory = tempfile::tempdir().expect("a folder");
    let lines: Vec<String> = (0..2_000).map(insert).collect();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    writeln!(gzip, "{TABLES}\n{}", lines.join("\n")).expect("written");
    let whole = gzip.finish().expect("finished");
    let file = directory.path().join("cut.ndjson.gz");
    std::fs::write(&file, &whole[..whole.len() / 2]).expect("written");
    let line = fails(1, &["replay", "--url", &url, path(&file)]);
    let applied = rows(&url, "t");
    assert!(applied > 0, "{line}");
    let cv = get(&format!("{url}/v1/status"))["cv"].clone();
    assert!(
        line.contains(&format!("the {applied} commits before it are applied (commit version {cv})")),
        "{line}"
    );
    assert!(line.contains("truncated"), "{line}");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    // Nothing listens on port 1.
    let url = "http://127.0.0.1:1";
    for arguments in [
        &["status", "--url", url][..],
        &["check", "--url", url],
        &["watch", "--url", url, "--name", "q"],
        &["replay", "--url", url, path(file.path())],
    ] {
        let line = fails(1, arguments);
        assert!(line.contains(url) && line.contains("tidegate serve"), "{line}");
    }
    let line = fails(1, &["replay", "--url", url, "/nonexistent.ndjson"]);
    assert!(line.contains("/nonexistent.ndjson"), "{line}");
}

#[test]
fn errors_say_what_to_do() {
    let (_server, url) = serve();
    post(&url, &[TABLES]);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = path(folder.path());
    let told = fails(1, &["sql", "--url", &url, "select idd from t"]);
    assert_eq!(told, "tidegate: unknown column idd; did you mean id? (line 1, column 8) (unknown_column)\n");
    let told = fails(1, &["watch", "--url", &url, "--name", "q"]);
    assert!(told.contains("PUT /v1/queries/q makes one"), "{told}");
    ureq::put(format!("{url}/v1/queries/open"))
        .send_json(json!({"sql": "select id from t"}))
        .expect("registered");
    let told = fails(1, &["watch", "--url", &url, "--name", "opne"]);
    assert!(told.contains("there is no query named opne; did you mean open? (unknown_name)"), "{told}");
    // What is SQL is the server's to judge.
    let told = fails(1, &["watch", "--url", &url, "delete from t"]);
    assert!(told.contains("(bad_query)"), "{told}");
    let told = fails(1, &["replay", "--url", &url, folder]);
    assert!(told.contains("cannot open the commit stream") && told.contains("directory"), "{told}");
    let told = fails(1, &["watch", "--url", &url, "--query", folder]);
    assert!(told.contains("check the path"), "{told}");
    let told = fails(2, &["serve", "--config", "/nonexistent.toml"]);
    assert!(told.contains("check --config"), "{told}");
    let told = fails(2, &["serve", "--log-filter", "=="]);
    assert!(told.contains("such as info"), "{told}");
    let told = fails(2, &["demo", "--speed", "-1"]);
    assert!(told.contains("a number above 0"), "{told}");
    for arguments in [&["status"][..], &["check"], &["sql", "select 1"], &["replay", "/dev/null"]] {
        let other = gate(&url, "<html>");
        let told = fails(1, &[arguments, &["--url", &other]].concat());
        assert!(told.contains(&other) && told.contains("no JSON") && told.contains("--url"), "{told}");
    }
}

#[test]
fn serve_prints_one_line_and_stops_in_order() {
    for signal in ["TERM", "INT"] {
        let (server, url) = serve();
        assert_eq!(get(&format!("{url}/v1/status"))["ready"], true);
        let taken =
            fails(1, &["serve", "--data-dir", "", "--log-filter", "off", "--addr", &url["http://".len()..]]);
        assert!(taken.contains("--addr"), "{taken}");
        let (status, rest) = server.stop(signal);
        assert_eq!((status.code(), rest), (Some(0), Vec::new()), "{signal}");
    }
}

#[test]
fn watch_prints_the_snapshot_and_then_what_changes() {
    let (_server, url) = serve();
    let cv = post(&url, &[TABLES, &insert(1), &insert(2)]);
    let row = |id: u64| json!({ "id": id, "s": format!("row {id}") });

    let changes = Running::start(&["watch", "--url", &url, QUERY, "--json"]);
    let full = Running::start(&["watch", "--url", &url, QUERY, "--json", "--full"]);
    let added = |id| json!({ "op": "add", "row": row(id) });
    assert_eq!(changes.json(), json!({ "cv": cv, "changes": [added(2), added(1)] }));
    assert_eq!(full.json(), json!({ "cv": cv, "rows": [row(2), row(1)] }));

    let cv = post(
        &url,
        &[r#"{"ops":[{"update":"t","key":{"id":1},"set":{"s":"x"}},{"delete":"t","key":{"id":2}}]}"#],
    );
    let edited = json!({ "id": 1, "s": "x" });
    let expected = json!([{ "op": "remove", "row": row(2) }, { "op": "edit", "row": edited }]);
    assert_eq!(changes.json(), json!({ "cv": cv, "changes": expected }));
    assert_eq!(full.json(), json!({ "cv": cv, "rows": [edited] }));
    let (status, rest) = changes.stop("INT");
    assert_eq!((status.code(), rest), (Some(0), Vec::new()));
}

#[test]
fn watch_takes_queries_from_files_stdin_and_by_name() {
    let (_server, url) = serve();
    post(&url, &[TABLES, &insert(1), &insert(2)]);
    let once = ["watch", "--url", &url, "--json", "--full", "--once"];
    let rows = |output: &Output| -> Vec<Value> {
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let lines: Vec<&str> = text(&output.stdout).lines().collect();
        assert_eq!(lines.len(), 1, "{lines:?}");
        let line: Value = serde_json::from_str(lines[0]).expect("JSON");
        line["rows"].as_array().expect("rows").iter().map(|row| row["id"].clone()).collect()
    };

    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let query = r#"{"table":"t","where":{"op":"=","args":[{"col":"id"},{"param":"p"}]}}"#;
    file.write_all(query.as_bytes()).expect("written");
    let from_file = run(&[&once[..], &["--query", path(file.path()), "--args", r#"{"p":2}"#]].concat());
    assert_eq!(rows(&from_file), [json!(2)]);

    let mut child =
        command(&[&once[..], &["--query", "-"]].concat()).stdin(Stdio::piped()).spawn().expect("runs");
    child.stdin.take().expect("piped").write_all(QUERY.as_bytes()).expect("written");
    assert_eq!(rows(&child.wait_with_output().expect("ends")), [json!(2), json!(1)]);

    let definition = json!({ "query": serde_json::from_str::<Value>(QUERY).expect("JSON") });
    ureq::put(format!("{url}/v1/queries/newest")).send_json(definition).expect("registered");
    assert_eq!(rows(&run(&[&once[..], &["--name", "newest"]].concat())), [json!(2), json!(1)]);

    for (what, code) in [
        (&["select now()"][..], "bad_query"),
        (&["--name", "nonsense"], "unknown_name"),
        (&[r#"{"table":"nonsense"}"#], "unknown_table"),
        (&[query], "bad_args"),
        (&[query, "--args", r#"{"p":1,"superfluous":2}"#], "bad_args"),
        (&["select id from t where id = :p", "--args", r#"{"p":1,"superfluous":2}"#], "bad_args"),
    ] {
        let line = fails(1, &[&["watch", "--url", &url], what].concat());
        assert!(line.contains(&format!("({code})")), "{line}");
    }
}

#[test]
fn watch_prints_tables_for_people() {
    let (_server, url) = serve();
    post(&url, &[TABLES, &insert(1)]);
    let watch = Running::start(&["watch", "--url", &url, QUERY]);
    let table: Vec<String> = (0..3).map(|_| watch.line()).collect();
    assert_eq!(table[1..], ["  id  s", "   1  row 1"], "{table:?}");
    post(&url, &[&insert(2)]);
    let table: Vec<String> = (0..5).map(|_| watch.line()).collect();
    assert!(table[1].contains("2 rows · 1 added"), "{table:?}");
    assert_eq!(table[2..], ["  id  s", "+  2  row 2", "   1  row 1"], "{table:?}");
}

#[test]
fn replay_stops_at_a_refused_commit_and_names_its_line() {
    let (_server, url) = serve();
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let lines = [TABLES, "", &insert(1), &insert(2), &insert(1), &insert(3)];
    file.write_all(lines.join("\n").as_bytes()).expect("written");
    let line = fails(1, &["replay", "--url", &url, path(file.path())]);
    assert!(line.contains("line 5 is refused") && line.contains("(conflict)"), "{line}");
    assert!(line.contains("--data-dir"), "{line}");
    assert_eq!(rows(&url, "t"), 2, "the commits before it are applied, those after it are not");
    let malformed = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(malformed.path(), format!("{TABLES}\n\n{{\"ops\":[}}\n")).expect("written");
    let line = fails(1, &["replay", "--url", &url, path(malformed.path())]);
    assert!(line.contains("line 3 is refused") && line.contains("at column 8"), "{line}");
    assert!(!line.contains("line 1") && !line.contains("--data-dir"), "{line}");
}

#[test]
fn replay_measures_throughput_and_latency() {
    let (_server, url) = serve();
    let directory = tempfile::tempdir().expect("a folder");
    let file = directory.path().join("stream.ndjson.gz");
    let mut gzip = GzEncoder::new(std::fs::File::create(&file).expect("a file"), Compression::fast());
    let commits: Vec<String> = (0..200).map(insert).collect();
    writeln!(gzip, "{TABLES}\n{}", commits.join("\n")).expect("written");
    gzip.finish().expect("written");
    // One row in a hundred concerns the subscribers: most commits send them nothing.
    let watched = r#"{"table":"t","where":{"op":"=","args":[{"op":"%","args":[{"col":"id"},100]},5]}}"#;
    let output = run(&[
        "replay",
        "--url",
        &url,
        path(&file),
        "--rate",
        "1000",
        "--watch",
        watched,
        "--subscribers",
        "3",
        "--json",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!((&report["commits"], &report["ops"]), (&json!(200), &json!(200)));
    assert_eq!(report["cv"], get(&format!("{url}/v1/status"))["cv"]);
    assert!(report["seconds"].as_f64().expect("a number") >= 0.199, "{report}");
    assert_eq!((&report["subscribers"], &report["subscribers_lost"]), (&json!(3), &json!(0)));
    let latency = &report["latency_ms"];
    let samples = latency["samples"].as_u64().expect("a count");
    assert!((3..=6).contains(&samples), "two batches, or one of both, for each of three: {report}");
    let quantile = |name: &str| latency[name].as_f64().expect("a number");
    assert!(
        0.0 < quantile("p50")
            && quantile("p50") <= quantile("p99")
            && quantile("p99") <= quantile("max") + 1.0
    );

    let again = fails(1, &["replay", "--url", &url, path(&file)]);
    assert!(again.contains("line 2 is refused"), "{again}");
    let sql =
        fails(1, &["replay", "--url", &url, path(&file), "--watch", "select now()", "--subscribers", "1"]);
    assert!(sql.contains("(bad_query)"), "{sql}");
}

#[test]
fn sql_writes_and_says_what_it_did() {
    let (_server, url) = serve();
    let sql = |text: &str| {
        let output = run(&["sql", "--url", &url, text]);
        assert_eq!(output.status.code(), Some(0), "{text}: {}", self::text(&output.stderr));
        self::text(&output.stdout).to_owned()
    };
    assert_eq!(sql("create table n (id bigint primary key, s text default 'new')"), "CREATE TABLE\n");
    assert_eq!(sql("insert into n (id) values (1), (2)"), "INSERT 0 2\n");
    assert_eq!(sql("update n set s = 'old' where id = 1 returning *"), "id  s\n 1  old\n(1 row)\nUPDATE 1\n");
    assert_eq!(sql("begin; delete from n where id = 2; commit"), "BEGIN\n\nDELETE 1\n\nCOMMIT\n");
    assert_eq!(sql("show columns from n").lines().count(), 4);
    let output = run(&["sql", "--url", &url, "--json", "delete from n; select * from n"]);
    let lines: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object a line"))
        .collect();
    assert_eq!(lines[0], json!({"command": "delete", "affected": 1}));
    assert_eq!((&lines[1]["command"], &lines[1]["rows"]), (&json!("select"), &json!([])));
}

#[test]
fn sql_shows_what_stands_when_a_later_statement_fails() {
    let (_server, url) = serve();
    let sql = |text: &str| run(&["sql", "--url", &url, text]);
    let failed = sql("create table n (id bigint primary key); insert into n values (1) returning id; begin;
        insert into n values (2); insert into n values (1); commit; insert into n values (3)");
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(text(&failed.stdout), "CREATE TABLE\n\nid\n 1\n(1 row)\nINSERT 0 1\n");
    let told = text(&failed.stderr);
    assert!(
        told.contains("statement 5 (insert), transaction rolled back: ") && told.contains("(conflict)"),
        "{told}"
    );
    assert!(told.ends_with("; statements 1 to 2 stand\n") && told.lines().count() == 1, "{told}");
    assert_eq!(rows(&url, "n"), 1, "neither what was rolled back nor what comes after the fault");

    // What only shows stands as well, and in JSON.
    let failed =
        run(&["sql", "--url", &url, "--json", "select 1 as one; select nope from n; select 2 as two"]);
    assert_eq!(failed.status.code(), Some(1));
    let shown: Value = serde_json::from_slice(&failed.stdout).expect("one object");
    assert_eq!(shown["rows"], json!([[1]]));
    assert!(text(&failed.stderr).ends_with("; statement 1 stands\n"), "{}", text(&failed.stderr));

    let failed = sql("insert into n values (1); insert into n values (4)");
    let told = text(&failed.stderr);
    assert!(
        failed.stdout.is_empty() && told.contains("statement 1 (insert)") && !told.contains("stand"),
        "{told}"
    );
    // A text that cannot be parsed runs none of its statements.
    let failed = sql("insert into n values (5); insert into n valeus (6)");
    assert!(failed.stdout.is_empty(), "{}", text(&failed.stdout));
    assert_eq!(rows(&url, "n"), 1);
}

#[test]
fn sql_ends_when_nobody_reads_its_output_any_more() {
    let (_server, url) = serve();
    let series = "generate_series(1, 1000)";
    let select = format!("select a.n from {series} as a(n), {series} as b(n) limit 50000");
    let mut child = command(&["sql", "--url", &url, "--json", &select]).spawn().expect("the binary runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}

/// Starts the demo; the command and its address.
fn demo(data_dir: &Path, speed: &str) -> (Running, String) {
    let demo =
        Running::start(&["demo", "--addr", "127.0.0.1:0", "--data-dir", path(data_dir), "--speed", speed]);
    let url = demo.line();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    (demo, url)
}

/// How many rows a table has.
fn rows(url: &str, name: &str) -> u64 {
    let status = get(&format!("{url}/v1/status"));
    let tables = status["tables"].as_array().expect("tables");
    let table = tables.iter().find(|table| table["name"] == name).expect("the table");
    table["rows"].as_u64().expect("a count")
}

#[test]
fn the_demo_is_full_at_once_and_goes_on_after_a_restart() {
    let directory = tempfile::tempdir().expect("a folder");
    let cv = |url: &str| get(&format!("{url}/v1/status"))["cv"].as_u64().expect("a cv");
    let (running, url) = demo(directory.path(), "600");
    let (at_first, flights) = (cv(&url), rows(&url, "flights"));
    assert!(flights > 500, "{flights}");
    for (page, content) in [("/", "demo.js"), ("/console", "console.js"), ("/demo.js", "tidegate-demo")] {
        let mut html = String::new();
        let mut response = ureq::get(format!("{url}{page}")).call().expect("served");
        response.body_mut().as_reader().read_to_string(&mut html).expect("text");
        assert!(html.contains(content), "{page}: {html}");
    }
    until("the replay goes on", || cv(&url), |cv| *cv > at_first + 5);
    let (status, rest) = running.stop("INT");
    assert_eq!((status.code(), rest), (Some(0), Vec::new()), "one line on stdout, exit code 0");

    // Fast enough to come to the week's end. Weather gathers until then, and the next round begins with little.
    let (running, url) = demo(directory.path(), "1000000");
    let weather = || rows(&url, "weather");
    let all = until("the week comes to its end", weather, |weather| *weather > 400);
    until("the week starts again", weather, |weather| *weather < all);
    let killed_at = cv(&url);
    let (status, _) = running.stop("KILL");
    assert_eq!(status.code(), None);

    let (running, url) = demo(directory.path(), "600");
    let restarted_at = cv(&url);
    assert!(restarted_at >= killed_at, "{restarted_at} after {killed_at}");
    until("the replay goes on", || cv(&url), |cv| *cv > restarted_at);
    let differences = get(&format!("{url}/v1/check"));
    assert_eq!(differences["differences"], json!([]));
    let (status, rest) = running.stop("TERM");
    assert_eq!((status.code(), rest), (Some(0), Vec::new()));
}

#[test]
fn the_demo_leaves_other_data_alone() {
    let directory = tempfile::tempdir().expect("a folder");
    let data_dir = path(directory.path());
    let server =
        Running::start(&["serve", "--addr", "127.0.0.1:0", "--data-dir", data_dir, "--log-filter", "error"]);
    let url = format!("http://{}", server.json()["addr"].as_str().expect("an address"));
    post(&url, &[&TABLES.replace("\"t\"", "\"flights\"")]);
    server.stop("TERM");
    let line = fails(1, &["demo", "--addr", "127.0.0.1:0", "--data-dir", data_dir]);
    assert!(line.contains("--data-dir"), "{line}");
}
