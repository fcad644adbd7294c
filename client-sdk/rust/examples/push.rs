//! A mutation over the WebSocket: `push URL CLIENT_ID TABLE ROW`, with the row as a JSON object.
//!
//! Inserts the row into an existing table of an embedded store, and waits until the write shows. A second run with the
//! same row is refused with the code `conflict`.

use anyhow::Context;
use tidegate_client::{Client, ClientOptions, insert};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, client_id, table, row] = args.as_slice() else {
        anyhow::bail!("usage: push URL CLIENT_ID TABLE ROW");
    };
    let row: serde_json::Value = serde_json::from_str(row).context("ROW is JSON")?;
    anyhow::ensure!(row.is_object(), "ROW is a JSON object");
    let client = Client::connect_with(url, ClientOptions::default().client_id(client_id)).await?;
    let mutation = client.push(vec![insert(table, row)]).await?;
    let cv = mutation.confirmed().await?;
    println!("confirmed at commit {cv}");
    client.close().await;
    Ok(())
}
