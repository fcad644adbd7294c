//! `replica → wire`'s vocabulary only: the replica never names a protocol message, so that the protocol can change
//! version without touching evaluation.
//!
//! Seen to fail: with a line `use tidegate_wire::protocol::ErrorCode;` in a file of the replica.

use std::{
    fs,
    path::{Path, PathBuf},
};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn wire_is_separate() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../replica/src");
    let mut found = Vec::new();
    sources(&folder, &mut found);
    assert!(found.len() > 50, "the replica's sources are in {}", folder.display());
    for path in found {
        let text = fs::read_to_string(&path).expect("readable");
        // Import trees are written over several lines, so blanks do not count. The codec knows the protocol's messages.
        let dense: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let mut rest = dense.as_str();
        while let Some((_, after)) = rest.split_once("tidegate_wire::") {
            let own = after.strip_prefix('{').map_or(after, |tree| tree.split("};").next().unwrap_or(tree));
            let names: Vec<&str> =
                if after.starts_with('{') { own.split([',', '{']).collect() } else { vec![after] };
            for name in names {
                for forbidden in ["protocol", "codec"] {
                    assert!(
                        !name.starts_with(forbidden),
                        "{} names tidegate_wire::{forbidden}",
                        path.display()
                    );
                }
            }
            rest = after;
        }
        assert!(!dense.contains("usetidegate_wireas"), "{} renames the crate", path.display());
    }
}
