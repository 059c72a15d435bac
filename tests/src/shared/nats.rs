//! NATS as a store of cells, with a real server.

use super::cells::{self, Add, Put, cell, change, look};
use super::lives::{self, Time};
use crate::servers::nats::{NatsServer, shared};
use async_nats::jetstream::{self, kv, stream};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use tollgate_core::contract::StoreError;
use tollgate_core::{Now, Span};
use tollgate_stores::nats::{NatsCells, Settings};
use tollgate_stores::shared::cells::{CellKey, Cells, Change, Decide, Found, Kind, Wanted};
use tollgate_stores::shared::quick::Quick;

/// Settings with a bucket that no other test has, of this run or of another.
pub(super) fn settings() -> Settings {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let bucket = format!("test-{}-{count}", std::process::id());
    // Many tests share two processors: what is slow there is not out of reach.
    Settings { bucket, deadline: Duration::from_secs(20), time: None }
}

async fn connected(settings: &Settings) -> NatsCells {
    NatsCells::connect(shared(), settings.clone()).await.unwrap()
}

/// A store of its own, under a test's time.
pub(super) async fn under(now: super::memory::Time) -> Arc<dyn Cells> {
    let time: Option<Arc<dyn Fn() -> tollgate_core::Now + Send + Sync>> =
        Some(Arc::new(move || *now.lock()));
    Arc::new(connected(&Settings { time, ..settings() }).await)
}

async fn several() -> Vec<Arc<dyn Cells>> {
    let settings = settings();
    let own = async_nats::connect(shared()).await.unwrap();
    vec![
        Arc::new(connected(&settings).await),
        Arc::new(connected(&settings).await),
        Arc::new(NatsCells::with_client(own, settings.clone()).await.unwrap()),
    ]
}

/// The bucket, as others see it.
async fn bucket(settings: &Settings) -> kv::Store {
    let context = jetstream::new(async_nats::connect(shared()).await.unwrap());
    context.get_key_value(&settings.bucket).await.unwrap()
}

/// How many keys there are.
async fn key_count(settings: &Settings) -> u64 {
    let mut stream = bucket(settings).await.stream;
    stream.info().await.unwrap().state.messages
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_change_is_lost_among_many() {
    cells::no_change_is_lost_among_many(&several().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_cells_change_together() {
    cells::two_cells_change_together(&several().await).await;
}

macro_rules! cases {
    ($($of:ident::$case:ident),* $(,)?) => {$(
        #[tokio::test]
        async fn $case() {
            $of::$case(&connected(&settings()).await).await;
        }
    )*};
}

cases!(
    cells::what_is_read_is_told_and_stays,
    cells::a_cell_that_is_removed_is_gone,
    cells::time_does_not_go_back,
    cells::names_are_told_in_pages,
    cells::a_name_is_told_as_long_as_it_has_a_cell,
    cells::any_two_names_are_apart,
    lives::what_is_not_written_is_not_there,
    lives::values_of_any_length_are_kept,
);

#[tokio::test]
async fn what_has_expired_is_not_there() {
    let time = Time::new();
    let settings = Settings { time: Some(time.source()), ..settings() };
    lives::what_has_expired_is_not_there(&connected(&settings).await, &time).await;
}

#[tokio::test]
async fn the_time_is_told_without_cells() {
    let time = Time::new();
    let settings = Settings { time: Some(time.source()), ..settings() };
    lives::the_time_is_told_without_cells(&connected(&settings).await, &time).await;
}

/// Removes a cell, and lets somebody else change it before the first try is made.
struct Removing<'a> {
    other: &'a NatsCells,
    key: [CellKey; 1],
    /// What each try found.
    found: Vec<Found>,
}

impl Decide for Removing<'_> {
    fn decide(&mut self, _now: Now, found: &Found) -> Vec<Change> {
        self.found.push(found.clone());
        if self.found.len() == 1 {
            let mut add = Add::new(&[100]);
            let overtake = change(self.other, &self.key, &mut add);
            block_in_place(|| Handle::current().block_on(overtake));
        }
        vec![Change { at: 0, value: None, life: None }]
    }

    fn take_back(&mut self, at: usize, _now: Now, _found: Option<&[u8]>) -> Option<Change> {
        panic!("nothing was written to the cell at {at}");
    }

    fn quick(&self) -> Option<&Quick> {
        None
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_that_somebody_changed_is_not_removed_unseen() {
    let settings = settings();
    let (cells, other) = (connected(&settings).await, connected(&settings).await);
    let key = [cell(Kind::Meter, "a")];
    change(&cells, &key, &mut Add::new(&[10])).await;
    let mut removing = Removing { other: &other, key: key.clone(), found: Vec::new() };
    change(&cells, &key, &mut removing).await;
    let found = ["10", "110"].map(|digits| vec![Some(digits.as_bytes().to_vec())]);
    assert!(removing.found.iter().map(|found| &found.change).eq(&found), "{:?}", removing.found);
    assert_eq!(look(&cells, &key).await, [None]);
    change(&cells, &key, &mut Add::new(&[7])).await;
    assert_eq!(look(&cells, &key).await, [Some(b"7".to_vec())]);
}

#[tokio::test]
async fn a_bucket_that_forgets_by_itself_is_refused() {
    let settings = settings();
    let context = jetstream::new(async_nats::connect(shared()).await.unwrap());
    let config = stream::Config { max_age: Duration::from_secs(60), ..stream_of(&settings) };
    context.create_stream(config).await.unwrap();
    let refused = NatsCells::connect(shared(), settings).await.err().unwrap();
    assert!(
        matches!(&refused, StoreError::Failed { reason } if reason.contains("ttl")),
        "{refused}"
    );
}

/// The stream of a bucket.
fn stream_of(settings: &Settings) -> stream::Config {
    stream::Config {
        name: format!("KV_{}", settings.bucket),
        subjects: vec![format!("$KV.{}.>", settings.bucket)],
        max_messages_per_subject: 1,
        discard: stream::DiscardPolicy::New,
        ..stream::Config::default()
    }
}

/// What the server's clock says now, at the earliest.
async fn server_time(bucket: &kv::Store) -> u64 {
    bucket.put("test", "".into()).await.unwrap();
    let created = SystemTime::from(bucket.entry("test").await.unwrap().unwrap().created);
    let since = created.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_nanos()).unwrap()
}

#[tokio::test]
async fn the_clock_is_never_ahead_of_the_servers_and_never_goes_back() {
    let settings = settings();
    let cells = connected(&settings).await;
    let bucket = bucket(&settings).await;
    let (mut last, mut before) = (0, server_time(&bucket).await);
    for round in 0..60 {
        if round % 20 == 10 {
            // Our clock runs ahead by more than a reading is good for, so it has to be read anew.
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(2)).await;
            tokio::time::resume();
        }
        let mut add = Add::new(&[1]);
        change(&cells, &[cell(Kind::Meter, "a")], &mut add).await;
        let told = add.now.unwrap().at.as_nanos();
        let after = server_time(&bucket).await;
        assert!(told <= after, "{told} is ahead of {after}");
        assert!(told >= last, "{told} is before {last}");
        assert!(told + 10_000_000_000 > before, "{told} is long before {before}");
        (last, before) = (told, after);
    }
}

#[tokio::test]
async fn expired_cells_are_swept_and_leave_nothing_behind() {
    let time = Time::new();
    let settings = Settings { time: Some(time.source()), ..settings() };
    let cells = connected(&settings).await;
    let keys = |letter: char| (0..40).map(move |at| cell(Kind::Meter, &format!("{letter}{at:02}")));
    let (old, new): (Vec<_>, Vec<_>) = (keys('a').collect(), keys('b').collect());
    let mut add = Add::new(&[1; 40]);
    change(&cells, &[cell(Kind::Limit, "kept")], &mut Put(vec![Some(vec![1])], None)).await;
    add.life = Some(Span::from_secs(1));
    change(&cells, &old, &mut add).await;
    time.pass(Span::from_secs(60));
    add.life = None;
    change(&cells, &new, &mut add).await;
    // It is swept beside what is asked for: as long as something is, it gets done.
    let is_swept = async {
        while key_count(&settings).await > 42 {
            time.pass(Span::from_secs(60));
            change(&cells, &new, &mut add).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), is_swept).await.expect("it is swept");
    assert!(look(&cells, &old).await.iter().all(Option::is_none));
    assert!(look(&cells, &new).await.iter().all(Option::is_some));
    assert_eq!(look(&cells, &[cell(Kind::Limit, "kept")]).await, [Some(vec![1])]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_that_connect_at_once_make_one_bucket() {
    let settings = settings();
    let connects: Vec<_> = (0..8)
        .map(|_| {
            let settings = settings.clone();
            tokio::spawn(async move {
                let cells = connected(&settings).await;
                change(&cells, &[cell(Kind::Meter, "a")], &mut Add::new(&[1])).await;
            })
        })
        .collect();
    for connect in connects {
        connect.await.unwrap();
    }
    let found = look(&connected(&settings).await, &[cell(Kind::Meter, "a")]).await;
    assert_eq!(found, [Some(b"8".to_vec())]);
}

#[tokio::test]
async fn a_key_that_other_tools_deleted_is_not_there() {
    let settings = settings();
    let cells = connected(&settings).await;
    let key = [cell(Kind::Meter, "a")];
    change(&cells, &key, &mut Add::new(&[1])).await;
    bucket(&settings).await.delete("m.a").await.unwrap();
    assert_eq!(look(&cells, &key).await, [None]);
    change(&cells, &key, &mut Add::new(&[2])).await;
    assert_eq!(look(&cells, &key).await, [Some(b"2".to_vec())]);
}

#[tokio::test]
async fn a_server_without_jetstream_is_told_of_with_the_cure() {
    let server = NatsServer::start_without_jetstream();
    let refused = NatsCells::connect(&server.url(), settings()).await.err().unwrap();
    let said = refused.to_string();
    assert!(matches!(refused, StoreError::Failed { .. }), "{said}");
    assert!(said.contains("--jetstream"), "{said}");
}

#[tokio::test]
async fn a_bucket_that_is_full_says_so_and_nothing_is_changed() {
    let settings = settings();
    let context = jetstream::new(async_nats::connect(shared()).await.unwrap());
    let config = stream::Config { max_bytes: 10_000, ..stream_of(&settings) };
    context.create_stream(config).await.unwrap();
    let cells = connected(&settings).await;
    let keys = ["a", "b"].map(|name| cell(Kind::Meter, name));
    change(&cells, &keys[..1], &mut Add::new(&[1])).await;
    let values = vec![Some(b"2".to_vec()), Some(vec![7; 20_000])];
    let wanted = Wanted { read: &[], change: &keys };
    let full = cells.change(wanted, &mut Put(values, None)).await;
    assert!(matches!(full, Err(StoreError::Full { .. })), "{full:?}");
    assert_eq!(look(&cells, &keys).await, [Some(b"1".to_vec()), None]);
}

#[tokio::test]
async fn a_server_that_is_gone_is_out_of_reach_and_no_password_is_told() {
    let server = NatsServer::start();
    let url = server.url().replace("nats://", "nats://user:geheim@");
    let settings = Settings { deadline: Duration::from_secs(5), ..settings() };
    let cells = NatsCells::connect(&url, settings.clone()).await.unwrap();
    let key = [cell(Kind::Meter, "a")];
    change(&cells, &key, &mut Add::new(&[1])).await;
    drop(server);
    let hasty = Settings { deadline: Duration::from_millis(500), ..settings };
    let gone = cells.change(Wanted { read: &[], change: &key }, &mut Add::new(&[1])).await;
    let connecting = NatsCells::connect(&url, hasty).await.map(drop);
    for answer in [gone, connecting] {
        let said = format!("{answer:?}");
        assert!(matches!(answer, Err(StoreError::Unreachable { .. })), "{said}");
        assert!(!said.contains("geheim"), "{said}");
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_out_of_reach_at_the_deadline() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("nats://{}", silent.local_addr().unwrap());
    let settings = Settings { deadline: Duration::from_millis(100), ..settings() };
    let answer = NatsCells::connect(&url, settings).await.map(drop);
    assert!(matches!(answer, Err(StoreError::Unreachable { .. })), "{answer:?}");
}
