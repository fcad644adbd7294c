//! The other process of a figure. The program starts itself with [`CHILD`] as its first argument; the two talk in
//! lines of JSON over the child's stdin and stdout.

pub(crate) mod mark;
mod process;
mod reader;
mod readers;

pub(crate) use process::{Child, tell};
pub(crate) use readers::{Expect, Outcome, Readers, Spec};

use crate::figures;
use anyhow::{Context as _, bail};
use std::ffi::OsString;

/// The first argument of a child process.
pub(crate) const CHILD: &str = "--child";

/// Runs the child's part: the first argument says which.
pub(crate) fn child(arguments: &[OsString]) -> anyhow::Result<()> {
    let arguments: Vec<&str> =
        arguments.iter().map(|it| it.to_str()).collect::<Option<_>>().context("arguments are UTF-8")?;
    match arguments.as_slice() {
        [figures::memory::CHILD, order] => figures::memory::child(order),
        [readers::CHILD] => readers::child(),
        other => bail!("no such part: {other:?}"),
    }
}
