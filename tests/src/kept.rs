//! Where the calls of tests are: in a folder or, with `TOLLGATE_TESTS_ON_POSTGRES`, in a schema of a
//! database.

use crate::http::started::PATIENCE;
use crate::servers::postgres::shared;
use tempfile::TempDir;
use tollgate::{ManualClock, Tollgate};

/// A gate on what is kept in a folder, or in the schema of the folder's name; the same again if that was
/// there before.
pub(crate) async fn opened(folder: &TempDir, clock: &ManualClock) -> Tollgate {
    let builder = Tollgate::builder().clock(clock.clone());
    if std::env::var_os("TOLLGATE_TESTS_ON_POSTGRES").is_none() {
        return builder.open(folder.path()).await.unwrap();
    }
    // The name is new at each run, as it is for a folder: upper case is another letter.
    let name = folder.path().file_name().unwrap().as_encoded_bytes();
    let schema: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    // All tests share one database, and a small machine.
    let builder = builder.store_time(clock.clone()).deadline(PATIENCE);
    let builder = builder.prefix(&format!("kept_{schema}"));
    builder.connect(shared()).await.unwrap()
}
