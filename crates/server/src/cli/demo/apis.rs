//! The APIs of the demo: what they allow, how long they take, and who has how much to send.

use std::time::Duration;
use tollgate::{Limit, Toll, toll};

/// An API.
pub(super) struct Api {
    pub(super) name: &'static str,
    /// Its limits, in words.
    pub(super) said: &'static str,
    pub(super) bounds: [Bound; 2],
    /// How long it takes to answer.
    pub(super) takes: Duration,
    /// Who sends, and how many calls.
    tenants: &'static [(&'static str, u32)],
}

/// A limit that an API enforces.
pub(super) struct Bound {
    pub(super) name: &'static str,
    kind: Kind,
    /// What is counted.
    of: Of,
}

#[derive(Clone, Copy)]
enum Kind {
    /// So many a second, and so many at once.
    Rate(u64, u64),
    /// So many at a time.
    Slots(u64),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Calls.
    Calls,
    /// The tokens that calls say they take.
    Tokens,
    /// Calls of each tenant by itself.
    Tenants,
}

/// A call to be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    pub(super) tenant: &'static str,
    pub(super) tokens: u64,
}

pub(super) const APIS: [Api; 3] = [
    Api {
        name: "payments",
        said: "20 calls a second, 8 at a time",
        bounds: [
            Bound { name: "payments-rate", kind: Kind::Rate(20, 40), of: Of::Calls },
            Bound { name: "payments-slots", kind: Kind::Slots(8), of: Of::Calls },
        ],
        takes: Duration::from_millis(150),
        tenants: &[("acme", 160), ("birch", 50), ("cedar", 50), ("delta", 50)],
    },
    Api {
        name: "llm",
        said: "600 requests and 60,000 tokens a minute",
        bounds: [
            Bound { name: "llm-requests", kind: Kind::Rate(10, 20), of: Of::Calls },
            Bound { name: "llm-tokens", kind: Kind::Rate(1_000, 2_000), of: Of::Tokens },
        ],
        takes: Duration::from_millis(400),
        tenants: &[("acme", 80), ("birch", 30), ("cedar", 30)],
    },
    Api {
        name: "booking",
        said: "30 calls a second, 6 for each hotel",
        bounds: [
            Bound { name: "booking-rate", kind: Kind::Rate(30, 60), of: Of::Calls },
            Bound { name: "booking-hotel", kind: Kind::Rate(6, 12), of: Of::Tenants },
        ],
        takes: Duration::from_millis(80),
        tenants: &[("alpina", 90), ("bella", 90), ("corso", 60), ("dune", 60), ("esprit", 60)],
    },
];

impl Api {
    /// All there is to send, the tenants by turns.
    pub(super) fn orders(&self) -> impl Iterator<Item = Order> {
        let most = self.tenants.iter().map(|(_, calls)| *calls).max().unwrap_or_default();
        (0..most).flat_map(|nth| {
            let having = self.tenants.iter().filter(move |(_, calls)| nth < *calls);
            having.map(move |(tenant, _)| Order { tenant, tokens: 40 + u64::from(nth * 37 % 120) })
        })
    }

    pub(super) fn calls(&self) -> u64 {
        self.tenants.iter().map(|(_, calls)| u64::from(*calls)).sum()
    }

    /// What a call owes, to whoever counts by these names for tenants.
    pub(super) fn tolls<'a>(&self, order: &Order, tenant: &'a str) -> [Toll<'a>; 2] {
        self.bounds.each_ref().map(|bound| match bound.of {
            Of::Calls => tollgate::global(bound.name),
            Of::Tokens => tollgate::global(bound.name).weight(order.tokens),
            Of::Tenants => toll(bound.name, tenant),
        })
    }
}

impl Bound {
    /// As the API has it.
    pub(super) fn enforced(&self) -> Limit {
        match self.kind {
            Kind::Rate(rate, burst) => Limit::per_second(rate).burst(burst),
            Kind::Slots(slots) => Limit::concurrency(slots),
        }
    }

    /// As whoever calls it keeps it. Calls arrive a little later than they are sent, and not all by as much: of
    /// what may go at once, a second's worth is left for that.
    pub(super) fn kept(&self) -> Limit {
        match self.kind {
            Kind::Rate(rate, burst) => Limit::per_second(rate).burst(burst - rate),
            Kind::Slots(_) => self.enforced(),
        }
    }
}

impl Order {
    pub(super) fn body(&self) -> String {
        format!(r#"{{"tenant":"{}","tokens":{}}}"#, self.tenant, self.tokens)
    }
}
