//! What every store of cells must do: each case is a function over the contract.

use std::collections::BTreeSet;
use std::sync::Arc;
use tollgate_core::{Now, Span};
use tollgate_stores::shared::cells::{CellKey, Cells, Change, Decide, Found, Kind, Wanted};
use tollgate_stores::shared::quick::Quick;

/// Tasks that change the same cells at a time.
const TASKS: usize = 8;
/// Changes of each.
const ROUNDS: usize = 20;

/// A store, by several connections.
pub(crate) type Connections = [Arc<dyn Cells>];

/// Adds to numbers, each in a cell of its own.
pub(crate) struct Add {
    /// How much to the cell at each place.
    pub(crate) by: Vec<i64>,
    pub(crate) life: Option<Span>,
    /// What was there before.
    pub(crate) before: Vec<i64>,
    /// The instant of the store's time at which it was last asked.
    pub(crate) now: Option<Now>,
}

impl Add {
    pub(crate) fn new(by: &[i64]) -> Self {
        Self { by: by.to_vec(), life: None, before: Vec::new(), now: None }
    }

    fn change(&self, at: usize, value: i64) -> Change {
        Change { at, value: Some(value.to_string().into_bytes()), life: self.life }
    }
}

impl Decide for Add {
    fn decide(&mut self, now: Now, found: &Found) -> Vec<Change> {
        self.now = Some(now);
        self.before = found.change.iter().map(|value| number(value.as_deref())).collect();
        let changes = self.before.iter().zip(&self.by).enumerate();
        let changes = changes.filter(|(_, (_, by))| **by != 0);
        changes.map(|(at, (before, by))| self.change(at, before + by)).collect()
    }

    fn take_back(&mut self, at: usize, _now: Now, found: Option<&[u8]>) -> Option<Change> {
        Some(self.change(at, number(found) - self.by[at]))
    }

    fn quick(&self) -> Option<&Quick> {
        None
    }
}

/// Gives cells values, or removes them.
pub(crate) struct Put(pub(crate) Vec<Option<Vec<u8>>>, pub(crate) Option<Span>);

impl Decide for Put {
    fn decide(&mut self, _now: Now, _found: &Found) -> Vec<Change> {
        let each = self.0.iter().enumerate();
        each.map(|(at, value)| Change { at, value: value.clone(), life: self.1 }).collect()
    }

    fn take_back(&mut self, at: usize, _now: Now, _found: Option<&[u8]>) -> Option<Change> {
        Some(Change { at, value: None, life: None })
    }

    fn quick(&self) -> Option<&Quick> {
        None
    }
}

/// Looks, and changes nothing.
#[derive(Default)]
struct Look(Found);

impl Decide for Look {
    fn decide(&mut self, _now: Now, found: &Found) -> Vec<Change> {
        self.0 = found.clone();
        Vec::new()
    }

    fn take_back(&mut self, at: usize, _now: Now, _found: Option<&[u8]>) -> Option<Change> {
        panic!("nothing was written to the cell at {at}");
    }

    fn quick(&self) -> Option<&Quick> {
        None
    }
}

fn number(value: Option<&[u8]>) -> i64 {
    value.map_or(0, |digits| str::from_utf8(digits).unwrap().parse().unwrap())
}

/// The cell of a kind under a name.
pub(crate) fn cell(kind: Kind, name: &str) -> CellKey {
    CellKey { kind, name: name.into(), part: None }
}

/// Changes cells, or panics.
pub(crate) async fn change(cells: &dyn Cells, change: &[CellKey], decide: &mut dyn Decide) {
    cells.change(Wanted { read: &[], change }, decide).await.unwrap();
}

/// What is in cells.
pub(crate) async fn look(cells: &dyn Cells, read: &[CellKey]) -> Vec<Option<Vec<u8>>> {
    let mut look = Look::default();
    cells.change(Wanted { read, change: &[] }, &mut look).await.unwrap();
    look.0.read
}

/// The connection after the one before, round and round.
fn connection(cells: &Connections, task: usize) -> Arc<dyn Cells> {
    Arc::clone(&cells[task % cells.len()])
}

/// Many add to one number at a time, and nothing is lost.
pub(crate) async fn no_change_is_lost_among_many(cells: &Connections) {
    let key = [cell(Kind::Meter, "counted")];
    let tasks = (0..TASKS).map(|task| {
        let (cells, key) = (connection(cells, task), key.clone());
        tokio::spawn(async move {
            for _ in 0..ROUNDS {
                change(cells.as_ref(), &key, &mut Add::new(&[1])).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let found = look(cells[0].as_ref(), &key).await;
    assert_eq!(number(found[0].as_deref()), (TASKS * ROUNDS) as i64);
}

/// What is taken from one cell is in the other, at the end, and to who looks in between where cells
/// are written together.
pub(crate) async fn two_cells_change_together(cells: &Connections) {
    let keys = [cell(Kind::Meter, "from"), cell(Kind::Meter, "to")];
    let tasks = (0..TASKS).map(|task| {
        let (cells, keys) = (connection(cells, task), keys.clone());
        tokio::spawn(async move {
            for _ in 0..ROUNDS {
                change(cells.as_ref(), &keys, &mut Add::new(&[-1, 1])).await;
                if cells.writes_together() {
                    assert_balanced(&look(cells.as_ref(), &keys).await);
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let found = look(cells[0].as_ref(), &keys).await;
    assert_eq!(number(found[1].as_deref()), (TASKS * ROUNDS) as i64);
    assert_balanced(&found);
}

fn assert_balanced(found: &[Option<Vec<u8>>]) {
    let sum: i64 = found.iter().map(|value| number(value.as_deref())).sum();
    assert_eq!(sum, 0, "{found:?}");
}

/// A cell that is only read is told as it is, and stays so; one that is not there is told, too.
pub(crate) async fn what_is_read_is_told_and_stays(cells: &dyn Cells) {
    let [limit, missing] = ["kept", "missing"].map(|name| cell(Kind::Limit, name));
    let limit = [limit];
    change(cells, &limit, &mut Put(vec![Some(vec![0, 255])], None)).await;
    let (read, counted) = ([limit[0].clone(), missing], [cell(Kind::Meter, "counted")]);
    change(cells, &counted, &mut Add::new(&[2])).await;
    let mut add = Add::new(&[3]);
    cells.change(Wanted { read: &read, change: &counted }, &mut add).await.unwrap();
    assert_eq!(add.before, [2]);
    assert_eq!(look(cells, &read).await, [Some(vec![0, 255]), None]);
}

/// A value that is removed is gone, and an empty one is not.
pub(crate) async fn a_cell_that_is_removed_is_gone(cells: &dyn Cells) {
    let keys = [cell(Kind::Record, "a"), cell(Kind::Record, "b")];
    change(cells, &keys, &mut Put(vec![Some(Vec::new()), Some(vec![1])], None)).await;
    change(cells, &keys[1..], &mut Put(vec![None], None)).await;
    assert_eq!(look(cells, &keys).await, [Some(Vec::new()), None]);
    assert_eq!(names(cells, Kind::Record, None, 9).await, ["a"].map(Box::from));
}

/// Who decides is handed the store's time, and it does not go back.
pub(crate) async fn time_does_not_go_back(cells: &dyn Cells) {
    let key = [cell(Kind::Meter, "timed")];
    let mut last = None;
    for _ in 0..10 {
        let mut add = Add::new(&[1]);
        change(cells, &key, &mut add).await;
        let now = add.now.map(|now| now.at);
        assert!(now.is_some() && now >= last, "{now:?} after {last:?}");
        last = now;
    }
}

async fn names(cells: &dyn Cells, kind: Kind, after: Option<&str>, most: usize) -> Vec<Box<str>> {
    cells.names(kind, after, most).await.unwrap()
}

/// Names are told in the order of their bytes, each once, page by page, and of their kind alone.
pub(crate) async fn names_are_told_in_pages(cells: &dyn Cells) {
    let mut expected = BTreeSet::new();
    for number in 0..25_usize {
        let name = format!("{}{}", "x\0ÿ".chars().nth(number % 3).unwrap(), number);
        let parts = [None, Some("a".into()), Some("b".into())];
        let keys = parts[..=number % 3].iter().map(|part| CellKey {
            kind: Kind::Own,
            name: name.as_str().into(),
            part: part.clone(),
        });
        let keys: Vec<CellKey> = keys.collect();
        change(cells, &keys, &mut Put(vec![Some(vec![1]); keys.len()], None)).await;
        expected.insert(name);
    }
    let mut told: Vec<Box<str>> = Vec::new();
    loop {
        let page = names(cells, Kind::Own, told.last().map(AsRef::as_ref), 4).await;
        assert!(page.len() <= 4);
        if page.is_empty() {
            break;
        }
        told.extend(page);
    }
    assert!(told.iter().map(AsRef::as_ref).eq(expected.iter().map(String::as_str)), "{told:?}");
    assert_eq!(names(cells, Kind::Limit, None, 9).await.len(), 0);
}

/// A name stays as long as one of its cells does.
pub(crate) async fn a_name_is_told_as_long_as_it_has_a_cell(cells: &dyn Cells) {
    let part = |part: &str| CellKey { part: Some(part.into()), ..cell(Kind::Own, "n") };
    let keys = [part("a"), part("b")];
    change(cells, &keys, &mut Put(vec![Some(vec![1]); 2], None)).await;
    change(cells, &keys[..1], &mut Put(vec![None], None)).await;
    assert_eq!(names(cells, Kind::Own, None, 9).await, ["n"].map(Box::from));
    change(cells, &keys[1..], &mut Put(vec![None], None)).await;
    assert_eq!(names(cells, Kind::Own, None, 9).await.len(), 0);
}

/// Any names are apart: those with zero bytes, with what stands between the parts of a key, long ones.
pub(crate) async fn any_two_names_are_apart(cells: &dyn Cells) {
    let long = "ü".repeat(512);
    let names = ["", "a", "a\0", "a\0b", "\0", "a:b", "1:a", "a}", "*", " ", "A", "é", &long];
    let parts: Vec<Option<&str>> =
        [None].into_iter().chain(names.iter().map(|part| Some(*part))).collect();
    let mut keys = Vec::new();
    for kind in [Kind::Limit, Kind::Meter] {
        for name in names {
            let key = |part: &Option<&str>| CellKey {
                kind,
                name: name.into(),
                part: part.map(Into::into),
            };
            keys.extend(parts.iter().map(key));
        }
    }
    keys.sort();
    let value = |place: usize| Some(place.to_string().into_bytes());
    let values: Vec<_> = (0..keys.len()).map(value).collect();
    for (keys, values) in keys.chunks(50).zip(values.chunks(50)) {
        change(cells, keys, &mut Put(values.to_vec(), None)).await;
    }
    assert_eq!(look(cells, &keys).await, values);
}
