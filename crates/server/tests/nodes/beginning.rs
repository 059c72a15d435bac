//! A server whose database goes away while it starts.

use crate::database::Database;
use tollgate::Tollgate;
use tollgate_server::{Server, Settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_starts_though_its_database_went_away_when_it_was_connected() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = Database::start(folder.path());
    let gate = Tollgate::connect(&database.url()).await.unwrap();
    database.kill();
    let bound = Server::bind(gate, Settings::new(([127, 0, 0, 1], 0).into())).await;
    assert!(bound.is_ok(), "{bound:?}");
    database.start_again();
}
