//! Limits: those that were defined have a book of their own; a key, one that came along with calls and has
//! nothing but its rules, is kept in its only meter. So a million keys cost what a million partitions do.

use super::calls::{MeterSlot, index, slot};
use super::meters::{MeterBook, Meters};
use super::overrides::Overrides;
use crate::contract::{LimitTotals, LimitView};
use crate::limit::Definition;
use crate::meter::Meter;
use crate::name::{LimitName, Partition};
use crate::time::Now;
use smallvec::SmallVec;
use std::hash::BuildHasher;
use std::sync::Arc;

/// How many definitions are compared with a new one.
const RECENT_MAX: usize = 16;
/// Set in the slot of a key.
const KEY: u32 = 1 << 31;

/// Where a limit is kept. That of a key is gone when it gets a book.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LimitSlot(u32);

/// What a slot is one of.
pub(super) enum Home {
    /// Of a book.
    Book(usize),
    /// Of a meter that is its own limit.
    Meter(MeterSlot),
}

impl LimitSlot {
    pub(super) fn book(at: usize) -> Self {
        Self(slot(at) & !KEY)
    }

    pub(super) fn key(meter: MeterSlot) -> Self {
        Self(meter | KEY)
    }

    #[inline]
    pub(super) fn home(self) -> Home {
        match self.0 & KEY {
            0 => Home::Book(index(self.0)),
            _ => Home::Meter(self.0 & !KEY),
        }
    }
}

/// A limit, also one that was removed: calls may still owe there.
#[derive(Debug, Clone)]
pub(super) struct LimitBook {
    name: LimitName,
    definition: Option<Arc<Definition>>,
    /// The one its meters were last used with.
    last: Option<Arc<Definition>>,
    is_paused: bool,
    /// It came along with calls, and goes with them.
    pub(super) is_transient: bool,
    /// One, if it has no partitions.
    pub(super) meters: SmallVec<[MeterSlot; 4]>,
    /// Partitions with rules of their own.
    overrides: Overrides,
    pub(super) totals: LimitTotals,
}

/// A limit, wherever it is kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum Known<'a> {
    Book(&'a LimitBook),
    Key(MeterSlot, &'a MeterBook),
}

impl<'a> Known<'a> {
    pub(super) fn name(self) -> &'a str {
        match self {
            Self::Book(book) => &book.name,
            Self::Key(_, meter) => &meter.label,
        }
    }

    pub(super) fn to_name(self) -> LimitName {
        match self {
            Self::Book(book) => book.name.clone(),
            Self::Key(_, meter) => LimitName::of(meter.label.clone()),
        }
    }

    /// Its rules; `None` if it was removed.
    pub(super) fn definition(self) -> Option<&'a Definition> {
        match self {
            Self::Book(book) => book.definition.as_deref(),
            Self::Key(_, meter) => meter.rules.as_deref(),
        }
    }

    /// The rules that its meters were last used with.
    pub(super) fn last(self) -> Option<&'a Definition> {
        match self {
            Self::Book(book) => book.last.as_deref(),
            Self::Key(_, meter) => meter.rules.as_deref(),
        }
    }

    /// The rules that a meter of it follows; `None` if it was removed.
    pub(super) fn definition_of(self, partition: Option<&Partition>) -> Option<&'a Definition> {
        let common = self.definition()?;
        Some(partition.and_then(|it| self.overrides()?.get(it)).unwrap_or(common))
    }

    pub(super) fn overrides(self) -> Option<&'a Overrides> {
        match self {
            Self::Book(book) => Some(&book.overrides),
            Self::Key(..) => None,
        }
    }

    pub(super) fn is_paused(self) -> bool {
        matches!(self, Self::Book(book) if book.is_paused)
    }

    /// Whether it came along with calls, and goes with them.
    pub(super) fn is_transient(self) -> bool {
        match self {
            Self::Book(book) => book.is_transient,
            Self::Key(..) => true,
        }
    }

    /// Whether nothing is known of it but what its calls need.
    pub(super) fn goes_with_calls(self) -> bool {
        match self {
            Self::Book(book) => book.goes_with_calls(),
            Self::Key(..) => true,
        }
    }

    pub(super) fn meters(self) -> impl Iterator<Item = MeterSlot> + 'a {
        let (one, many) = match self {
            Self::Book(book) => (None, &*book.meters),
            Self::Key(meter, _) => (Some(meter), &[][..]),
        };
        one.into_iter().chain(many.iter().copied())
    }

    /// As it is told; `None` if it was removed.
    pub(super) fn view(self) -> Option<LimitView> {
        let (name, definition) = (self.to_name(), self.definition()?.clone());
        let (is_paused, totals) = (self.is_paused(), self.totals());
        Some(LimitView { name, definition, is_paused, totals })
    }

    pub(super) fn totals(self) -> LimitTotals {
        match self {
            Self::Book(book) => book.totals,
            Self::Key(_, meter) => meter.totals(),
        }
    }
}

impl LimitBook {
    /// A limit that nobody has defined yet.
    fn new(name: LimitName) -> Self {
        Self {
            name,
            definition: None,
            last: None,
            is_paused: false,
            is_transient: false,
            meters: SmallVec::new(),
            overrides: Overrides::default(),
            totals: LimitTotals::default(),
        }
    }

    /// The book of a key.
    pub(super) fn of_key(
        name: LimitName,
        rules: Option<Arc<Definition>>,
        meter: MeterSlot,
        totals: LimitTotals,
    ) -> Self {
        let (definition, last) = (rules.clone(), rules);
        let meters = SmallVec::from_slice(&[meter]);
        Self { definition, last, is_transient: true, meters, totals, ..Self::new(name) }
    }

    /// Leaves it as one that nobody ever defined.
    pub(super) fn forget_rules(&mut self) {
        (self.definition, self.last) = (None, None);
    }

    pub(super) fn goes_with_calls(&self) -> bool {
        self.is_transient && !self.is_paused && self.overrides.is_empty()
    }

    /// The rules that its meter with this label follows.
    #[inline]
    fn definition_at(&self, label: &str) -> Option<&Definition> {
        let common = self.definition.as_deref()?;
        Some(self.overrides.get(label).unwrap_or(common))
    }

    /// The rules that its meter with this label was last used with.
    #[inline]
    fn last_at(&self, label: &str) -> Option<&Definition> {
        self.overrides.get(label).or(self.last.as_deref())
    }
}

impl Meters {
    pub(super) fn limit(&self, name: &str) -> Option<LimitSlot> {
        let is_it = |slot: &LimitSlot| self.book(*slot).name() == name;
        self.by_name.find(self.hashing.hash_one(name), is_it).copied()
    }

    pub(super) fn limits(&self) -> impl Iterator<Item = Known<'_>> {
        let books = self.limits.iter().map(|(_, book)| Known::Book(book));
        books.chain(self.keys.iter().map(|meter| Known::Key(*meter, &self[*meter])))
    }

    /// One past the last slot of a book.
    pub(super) fn books_end(&self) -> usize {
        self.limits.capacity()
    }

    /// The limit in the slot of a book, if there is one.
    pub(super) fn book_at(&self, at: usize) -> Option<Known<'_>> {
        self.limits.get(at).map(Known::Book)
    }

    /// The keys, in places that are filled from the end.
    pub(super) fn keys(&self) -> &[MeterSlot] {
        &self.keys
    }

    #[inline]
    pub(super) fn book(&self, limit: LimitSlot) -> Known<'_> {
        match limit.home() {
            Home::Book(at) => Known::Book(&self.limits[at]),
            Home::Meter(meter) => Known::Key(meter, &self[meter]),
        }
    }

    /// The book of a limit; a key gets one, and another slot with it.
    pub(super) fn book_mut(&mut self, limit: LimitSlot) -> &mut LimitBook {
        let at = self.in_a_book(limit);
        &mut self.limits[at]
    }

    #[inline]
    pub(super) fn definition(&self, meter: MeterSlot) -> Option<&Definition> {
        let book = &self[meter];
        match book.limit.home() {
            Home::Book(at) => self.limits[at].definition_at(&book.label),
            Home::Meter(_) => book.rules.as_deref(),
        }
    }

    /// The rules that a meter was last used with.
    #[inline]
    pub(super) fn last(&self, meter: MeterSlot) -> Option<&Definition> {
        let book = &self[meter];
        match book.limit.home() {
            Home::Book(at) => self.limits[at].last_at(&book.label),
            Home::Meter(_) => book.rules.as_deref(),
        }
    }

    pub(super) fn is_paused(&self, meter: MeterSlot) -> bool {
        self.book(self[meter].limit).is_paused()
    }

    /// Changes a meter under the rules it was last used with.
    pub(super) fn change<T>(
        &mut self,
        meter: MeterSlot,
        now: Now,
        change: impl FnOnce(&mut Meter, &Definition) -> T,
    ) -> Option<T> {
        let MeterBook { limit, label, rules, meter, .. } = &mut self.meters[index(meter)];
        let definition = match limit.home() {
            Home::Book(at) => self.limits[at].last_at(label)?,
            Home::Meter(_) => rules.as_deref()?,
        };
        let fresh = || Box::new(Meter::new(definition, now.at));
        Some(change(meter.get_or_insert_with(fresh), definition))
    }

    /// Defines or removes a limit in its own right.
    pub(super) fn define(
        &mut self,
        name: &LimitName,
        definition: Option<&Definition>,
        now: Now,
    ) -> Option<LimitSlot> {
        let definition = definition.map(|definition| self.shared(definition));
        let found = self.limit(name);
        let limit = found.or_else(|| definition.as_ref().map(|_| self.make_limit(name)))?;
        let at = self.in_a_book(limit);
        self.limits[at].is_transient = false;
        self.redefine(at, definition, now);
        Some(LimitSlot::book(at))
    }

    /// The meters of a limit go over to its new rules.
    pub(super) fn redefine(&mut self, at: usize, definition: Option<Arc<Definition>>, now: Now) {
        let book = &mut self.limits[at];
        if let (Some(last), Some(new)) = (&book.last, &definition)
            && last != new
        {
            for meter in &book.meters {
                let MeterBook { meter, label, .. } = &mut self.meters[index(*meter)];
                if let (Some(meter), None) = (meter, book.overrides.get(label)) {
                    meter.carry(last, new, now);
                }
            }
        }
        if definition.is_some() {
            book.last.clone_from(&definition);
        }
        book.definition = definition;
    }

    /// A limit without rules, with a book.
    pub(super) fn make_limit(&mut self, name: &LimitName) -> LimitSlot {
        let limit = LimitSlot::book(self.limits.insert(LimitBook::new(name.clone())));
        self.name_limit(limit);
        limit
    }

    /// A limit can be found by its name from now on.
    pub(super) fn name_limit(&mut self, limit: LimitSlot) {
        let Self { limits, meters, hashing, by_name, .. } = self;
        let hash = |limit: &LimitSlot| match limit.home() {
            Home::Book(at) => hashing.hash_one(limits[at].name.as_str()),
            Home::Meter(meter) => hashing.hash_one(meters[index(meter)].label.as_str()),
        };
        by_name.insert_unique(hash(&limit), limit, hash);
    }

    /// A limit can be found no more.
    pub(super) fn unname_limit(&mut self, limit: LimitSlot) {
        let hash = self.hashing.hash_one(self.book(limit).name());
        if let Ok(found) = self.by_name.find_entry(hash, |other| *other == limit) {
            found.remove();
        }
    }

    /// Gives a partition rules of its own, or takes them away: its meter goes over to what it follows
    /// then.
    pub(super) fn override_partition(
        &mut self,
        limit: LimitSlot,
        partition: &Partition,
        definition: Option<Definition>,
        now: Now,
    ) -> LimitSlot {
        let at = self.in_a_book(limit);
        let limit = LimitSlot::book(at);
        let found = self.find_at(limit, Some(partition));
        let book = &mut self.limits[at];
        let before = book.last_at(partition).cloned();
        book.overrides.set(partition, definition);
        let after = book.last_at(partition);
        let meter = found.and_then(|slot| self.meters[index(slot)].meter.as_mut());
        if let (Some(meter), Some(before), Some(after)) = (meter, &before, after)
            && before != after
        {
            meter.carry(before, after, now);
        }
        limit
    }

    pub(super) fn set_paused(&mut self, limit: LimitSlot, is_paused: bool) -> LimitSlot {
        let at = self.in_a_book(limit);
        self.limits[at].is_paused = is_paused;
        LimitSlot::book(at)
    }

    /// A definition that limits share: where keys come by the million, they are alike.
    pub(super) fn shared(&mut self, definition: &Definition) -> Arc<Definition> {
        if let Some(known) = self.recent.iter().find(|known| &***known == definition) {
            return known.clone();
        }
        let new = Arc::new(definition.clone());
        if self.recent.len() >= RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(new.clone());
        new
    }
}
