//! Reads the configuration from its three places and checks it.

use super::settings::{Config, Kind, RawValue, Setting};
use std::path::{Path, PathBuf};

/// Read when no file is named and it is there.
pub const DEFAULT_FILE: &str = "tidegate.toml";

/// A value given on the command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// `section.key`.
    pub path: &'static str,
    /// The flag it came from, for messages.
    pub flag: &'static str,
    /// The value.
    pub value: String,
}

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is not there or cannot be read.
    #[error("cannot read the configuration file {path}; check --config and permissions ({cause})")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{path} is not valid TOML: {cause}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why, on one line.
        cause: String,
    },
    /// A section, key or variable that does not exist.
    #[error("unknown key {key} in {place}; did you mean {nearest}?")]
    UnknownKey {
        /// The key at fault.
        key: String,
        /// The file, or the environment.
        place: String,
        /// The known key that looks most like it.
        nearest: String,
    },
    /// A value outside its setting's range or of another type.
    #[error("{key} is {value} in {place}; it must be {expected}")]
    BadValue {
        /// The key at fault.
        key: String,
        /// What was given.
        value: String,
        /// The file, variable or flag.
        place: String,
        /// The type, unit and range.
        expected: String,
    },
    /// Two settings that exclude each other.
    #[error("{0}")]
    Contradiction(String),
}

/// Reads the configuration. `env` is the process's environment; `file` must exist when it is named, otherwise
/// [`DEFAULT_FILE`] is read when it is there.
///
/// # Errors
/// At the first key or value that cannot be taken.
pub fn load(
    file: Option<&Path>,
    env: impl IntoIterator<Item = (String, String)>,
    flags: &[Override],
) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    let path = file.unwrap_or(Path::new(DEFAULT_FILE));
    match std::fs::read_to_string(path) {
        Ok(text) => apply_file(&mut config, path, &text)?,
        Err(cause) if file.is_none() && cause.kind() == std::io::ErrorKind::NotFound => {}
        Err(cause) => return Err(ConfigError::Unreadable { path: path.to_owned(), cause }),
    }
    for (name, value) in env {
        apply_env(&mut config, &name, value)?;
    }
    for flag in flags {
        let setting = Config::SETTINGS
            .iter()
            .find(|setting| setting.path() == flag.path)
            .expect("flags name settings of the table");
        assign(&mut config, setting, &RawValue::Text(flag.value.clone()), flag.flag)?;
    }
    check_relations(&config)?;
    Ok(config)
}

fn apply_file(config: &mut Config, path: &Path, text: &str) -> Result<(), ConfigError> {
    let place = path.display().to_string();
    let table: toml::Table = text.parse().map_err(|cause: toml::de::Error| {
        let line = cause.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        ConfigError::Syntax { path: path.to_owned(), cause: format!("line {line}: {}", cause.message()) }
    })?;
    for (section, content) in &table {
        let keys = match content {
            toml::Value::Table(keys) if Config::SECTIONS.contains(&section.as_str()) => keys,
            _ => {
                let candidates = Config::SECTIONS.iter().map(|name| format!("[{name}]"));
                return Err(unknown(format!("[{section}]"), place, candidates));
            }
        };
        for (key, value) in keys {
            let name = format!("{section}.{key}");
            let Some(setting) = Config::SETTINGS.iter().find(|setting| setting.path() == name) else {
                return Err(unknown(name, place, Config::SETTINGS.iter().map(Setting::path)));
            };
            let raw = match value {
                toml::Value::Integer(value) => RawValue::Integer(*value),
                toml::Value::Boolean(value) => RawValue::Flag(*value),
                toml::Value::String(value) => RawValue::Text(value.clone()),
                toml::Value::Array(values) => list(values),
                other => RawValue::Other(other.type_str()),
            };
            // A number in quotes is a mistake in a file, where numbers have a type of their own.
            let raw = match raw {
                RawValue::Text(_)
                    if !matches!(setting.kind, Kind::Address | Kind::Text | Kind::Choice(_)) =>
                {
                    RawValue::Other("string")
                }
                raw => raw,
            };
            assign(config, setting, &raw, &place)?;
        }
    }
    Ok(())
}

fn apply_env(config: &mut Config, name: &str, value: String) -> Result<(), ConfigError> {
    let Some(rest) = name.strip_prefix("TIDEGATE_") else { return Ok(()) };
    // Other variables of this prefix (`TIDEGATE_URL`) belong to the client commands.
    let section = Config::SECTIONS.iter().find(|section| {
        rest.strip_prefix(section.to_uppercase().as_str()).is_some_and(|key| key.starts_with('_'))
    });
    if section.is_none() {
        return Ok(());
    }
    match Config::SETTINGS.iter().find(|setting| setting.env() == name) {
        Some(setting) => {
            assign(config, setting, &RawValue::Text(value), &format!("the environment ({name})"))
        }
        None => Err(unknown(
            name.to_owned(),
            "the environment".to_owned(),
            Config::SETTINGS.iter().map(Setting::env),
        )),
    }
}

fn assign(config: &mut Config, setting: &Setting, raw: &RawValue, place: &str) -> Result<(), ConfigError> {
    if config.assign(setting, raw) {
        return Ok(());
    }
    let expected = match setting.kind {
        Kind::Millis(min, max) => format!("a whole number of milliseconds from {min} to {max}"),
        Kind::Bytes(min, max) => format!("a whole number of bytes from {min} to {max}"),
        Kind::Count(min, max) => format!("a whole number from {min} to {max}"),
        Kind::Flag => "true or false".to_owned(),
        Kind::Address => "HOST:PORT, such as 127.0.0.1:7300 or 0.0.0.0:7300".to_owned(),
        Kind::Hosts => {
            "a list of host names without scheme or port, such as [\"example.com\", \".example.org\"] (example.com,.example.org in the environment)".to_owned()
        }
        Kind::Text => "text".to_owned(),
        Kind::Choice(words) => format!("one of {}", words.join(", ")),
    };
    Err(ConfigError::BadValue {
        key: setting.path(),
        value: raw.to_string(),
        place: place.to_owned(),
        expected,
    })
}

/// An array of a file, when it holds nothing but texts.
fn list(values: &[toml::Value]) -> RawValue {
    let texts = values.iter().map(|value| value.as_str().map(str::to_owned));
    texts.collect::<Option<_>>().map_or(RawValue::Other("array of other values than texts"), RawValue::List)
}

/// Relations that no single range can express.
fn check_relations(config: &Config) -> Result<(), ConfigError> {
    let Config { server, limits, .. } = config;
    if limits.frame_bytes_target >= limits.outbox_bytes_max {
        return Err(ConfigError::Contradiction(format!(
            "limits.frame_bytes_target ({}) must be less than limits.outbox_bytes_max ({}), which has to hold at least one full frame",
            limits.frame_bytes_target, limits.outbox_bytes_max
        )));
    }
    if server.ping_interval_ms >= server.silence_max_ms {
        return Err(ConfigError::Contradiction(format!(
            "server.ping_interval_ms ({} ms) must be less than server.silence_max_ms ({} ms), or a quiet client could not answer in time",
            server.ping_interval_ms.as_millis(),
            server.silence_max_ms.as_millis()
        )));
    }
    Ok(())
}

fn unknown(key: String, place: String, candidates: impl Iterator<Item = String>) -> ConfigError {
    let nearest =
        candidates.min_by_key(|candidate| strsim::osa_distance(&key, candidate)).unwrap_or_default();
    ConfigError::UnknownKey { key, place, nearest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("tidegate.toml");
        std::fs::write(&path, text).expect("written");
        (dir, path)
    }

    fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn from_file(text: &str) -> Result<Config, ConfigError> {
        let (_dir, path) = file(text);
        load(Some(&path), [], &[])
    }

    #[test]
    fn flags_beat_environment_beats_file_beats_defaults() {
        let (_dir, path) = file(
            "[server]\naddr = \"1.1.1.1:1\"\nhello_timeout_ms = 1000\n[workers]\ncount = 3\n[store]\nfsync = false\n",
        );
        let env = env(&[
            ("TIDEGATE_SERVER_ADDR", "2.2.2.2:2"),
            ("TIDEGATE_WORKERS_COUNT", "4"),
            ("TIDEGATE_URL", "x"),
        ]);
        let flags = [Override { path: "server.addr", flag: "--addr", value: "3.3.3.3:3".to_owned() }];
        let config = load(Some(&path), env, &flags).expect("loads");
        assert_eq!(config.server.addr, "3.3.3.3:3");
        assert_eq!(config.workers.count, 4);
        assert_eq!(config.server.hello_timeout_ms, Duration::from_secs(1));
        assert!(!config.store.fsync);
        assert_eq!(config.drain, Config::default().drain);
    }

    #[test]
    fn an_unknown_key_names_the_file_and_the_nearest_known_key() {
        let error = from_file("[server]\nadr = \"x\"\n").expect_err("refused").to_string();
        assert!(error.contains("unknown key server.adr in ") && error.contains("tidegate.toml"), "{error}");
        assert!(error.ends_with("did you mean server.addr?"), "{error}");
        let error = from_file("[sever]\n").expect_err("refused").to_string();
        assert!(error.ends_with("did you mean [server]?"), "{error}");
        let error = from_file("addr = 1\n").expect_err("refused").to_string();
        assert!(error.contains("unknown key [addr]"), "{error}");
        let error = load(None, env(&[("TIDEGATE_DRAIN_QUEUE", "1")]), &[]).expect_err("refused").to_string();
        assert_eq!(
            error,
            "unknown key TIDEGATE_DRAIN_QUEUE in the environment; did you mean TIDEGATE_DRAIN_QUEUE_MAX?"
        );
    }

    #[test]
    fn a_value_out_of_range_names_key_value_and_range() {
        let error = from_file("[drain]\nqueue_max = 3\n").expect_err("refused").to_string();
        assert!(error.starts_with("drain.queue_max is 3 in "), "{error}");
        assert!(error.ends_with("it must be a whole number from 16 to 1000000"), "{error}");
        for text in ["-1", "1.5", "\"16\"", "true", "[]"] {
            assert!(from_file(&format!("[drain]\nqueue_max = {text}\n")).is_err(), "{text}");
        }
        let error = from_file("[telemetry]\nlog_format = \"xml\"\n").expect_err("refused").to_string();
        assert!(error.ends_with("it must be one of text, json"), "{error}");
        let error =
            load(None, env(&[("TIDEGATE_STORE_FSYNC", "yes")]), &[]).expect_err("refused").to_string();
        assert_eq!(
            error,
            "store.fsync is \"yes\" in the environment (TIDEGATE_STORE_FSYNC); it must be true or false"
        );
    }

    #[test]
    fn every_bound_is_inclusive_and_every_default_is_within() {
        for setting in Config::SETTINGS {
            let mut config = Config::default();
            let shown = config.show(setting);
            let raw = match setting.kind {
                Kind::Flag | Kind::Address | Kind::Text | Kind::Choice(_) => {
                    RawValue::Text(shown.trim_matches('"').to_owned())
                }
                Kind::Hosts => RawValue::Text(shown.trim_matches(['[', ']']).to_owned()),
                _ => RawValue::Integer(shown.parse().expect("a number")),
            };
            assert!(config.assign(setting, &raw), "{} default {shown}", setting.path());
            if let Some((min, max)) = setting.kind.bounds() {
                for (value, taken) in [(min, true), (max, true), (max + 1, false)] {
                    assert_eq!(
                        config.assign(setting, &RawValue::Text(value.to_string())),
                        taken,
                        "{} = {value}",
                        setting.path()
                    );
                }
            }
        }
    }

    #[test]
    fn an_address_is_a_host_and_a_port() {
        let load = |value: &str| {
            let flag = Override { path: "server.addr", flag: "--addr", value: value.to_owned() };
            load(None, [], &[flag])
        };
        for taken in ["127.0.0.1:0", "localhost:7300", "[::1]:7300", "0.0.0.0:65535"] {
            assert!(load(taken).is_ok(), "{taken}");
        }
        for wrong in
            ["", "7300", ":7300", "localhost", "localhost:http", "localhost:65536", "http://localhost:7300"]
        {
            let error = load(wrong).expect_err(wrong).to_string();
            assert_eq!(
                error,
                format!(
                    "server.addr is \"{wrong}\" in --addr; it must be HOST:PORT, such as 127.0.0.1:7300 or 0.0.0.0:7300"
                )
            );
        }
    }

    #[test]
    fn hosts_are_a_list_in_a_file_and_have_commas_elsewhere() {
        let hosts = |config: Config| config.server.allowed_hosts;
        let config = from_file("[server]\nallowed_hosts = [\"a.example\", \".b.example\"]\n").expect("loads");
        assert_eq!(hosts(config), ["a.example", ".b.example"]);
        let from_env = |value: &str| load(None, env(&[("TIDEGATE_SERVER_ALLOWED_HOSTS", value)]), &[]);
        assert_eq!(
            hosts(from_env("a.example, [::1],10.0.0.1,*").expect("loads")),
            ["a.example", "[::1]", "10.0.0.1", "*"]
        );
        assert_eq!(hosts(from_env(" ").expect("loads")), [""; 0]);
        for wrong in ["a.example:80", "http://a.example", "a,,b", "a b", ".", "*.a.example", "[::1]:80"] {
            let error = from_env(wrong).expect_err(wrong).to_string();
            assert!(error.starts_with(&format!("server.allowed_hosts is \"{wrong}\" in ")), "{error}");
            assert!(error.contains("without scheme or port"), "{error}");
        }
        for wrong in ["\"a.example\"", "[1]", "[\"a/b\"]", "true"] {
            let error =
                from_file(&format!("[server]\nallowed_hosts = {wrong}\n")).expect_err(wrong).to_string();
            assert!(error.starts_with("server.allowed_hosts is "), "{error}");
        }
    }

    #[test]
    fn contradicting_settings_and_unreadable_files_are_refused() {
        assert!(from_file("[limits]\nframe_bytes_target = 16777216\n").is_err());
        assert!(from_file("[server]\nping_interval_ms = 75000\n").is_err());
        assert!(load(Some(Path::new("/nowhere/tidegate.toml")), [], &[]).is_err());
        let error = from_file("[server]\naddr = \n").expect_err("refused").to_string();
        assert!(error.contains("is not valid TOML: line 2"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}
