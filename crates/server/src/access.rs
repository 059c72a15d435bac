//! Who may do what: tokens as they are configured, their roles, and the namespace they are bound to.

mod role;

pub use role::{Role, RoleError, Roles};

use crate::token::Token;
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use subtle::ConstantTimeEq;
use tollgate::RESERVED_QUEUE;

/// How the names of QStash queues begin.
const QSTASH_QUEUES: &str = "qstash:";
/// How queues and limits of runs begin, before the slash.
const OF_RUNS: [&str; 3] = ["machine", "run-tasks", "task"];
/// Longest namespace in bytes: it is a part of every name, and takes its room there.
const NAMESPACE_BYTES_MAX: usize = 64;
/// Longest name of a token in bytes: it is written into the history of what it changes.
const NAME_BYTES_MAX: usize = 64;
/// Most tokens: each request is compared with all of them.
const TOKENS_MAX: usize = 1000;
/// What a hash begins with, so that another kind can be told apart.
const SCHEME: &str = "sha256:";
/// Bytes of a hash.
const HASH_BYTES: usize = 32;

/// A part of the world that is closed in itself: what lies in it has names with this in front.
// Invariant: `prefix` is 1 to NAMESPACE_BYTES_MAX bytes without a slash, and then one slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    prefix: Box<str>,
}

/// Why a text is not a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a namespace has 1 to {NAMESPACE_BYTES_MAX} bytes and no slash, as in \"acme\", does not begin with {RESERVED_QUEUE:?} or {QSTASH_QUEUES:?}, and is not one of {OF_RUNS:?}"
)]
pub struct NamespaceError;

impl Namespace {
    /// Checks that no other namespace can begin like it.
    pub fn new(text: &str) -> Result<Self, NamespaceError> {
        match text.len() {
            // It could have no queues: those would be taken for Tollgate's own.
            _ if text.starts_with(RESERVED_QUEUE) => Err(NamespaceError),
            // Its queues and limits would be those of everyone's runs.
            _ if OF_RUNS.contains(&text) => Err(NamespaceError),
            // Its names could be taken for those of QStash queues that are in none.
            _ if text.starts_with(QSTASH_QUEUES) => Err(NamespaceError),
            1..=NAMESPACE_BYTES_MAX if !text.contains('/') => {
                Ok(Self { prefix: format!("{text}/").into() })
            }
            _ => Err(NamespaceError),
        }
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.prefix[..self.prefix.len() - 1]
    }

    /// What stands in front of every name in it.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }
}

/// The SHA-256 of a token: all that is kept of it.
#[derive(Clone, Copy)]
pub struct TokenHash([u8; HASH_BYTES]);

/// Why a text is not the hash of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a hash is {SCHEME:?} and 64 hexadecimal digits: `tollgate token new` makes a token and writes its hash"
)]
pub struct HashError;

impl TokenHash {
    /// The hash of a token.
    pub fn of(token: &Token) -> Self {
        Self::of_bytes(token.as_bytes())
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Whether both are the same. Takes as long for a near miss as for a wild guess.
    fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl FromStr for TokenHash {
    type Err = HashError;

    fn from_str(text: &str) -> Result<Self, HashError> {
        let digits = text.strip_prefix(SCHEME).ok_or(HashError)?.as_bytes();
        let mut hash = [0; HASH_BYTES];
        if digits.len() != 2 * HASH_BYTES {
            return Err(HashError);
        }
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? * 16 + digit(pair[1])?;
        }
        Ok(Self(hash))
    }
}

fn digit(byte: u8) -> Result<u8, HashError> {
    let digit = char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    digit.ok_or(HashError)
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

/// A token as it is configured.
#[derive(Debug, Clone)]
pub struct TokenSpec {
    /// Who it is: written into the history of what it changes.
    pub name: String,
    /// What is kept of the token itself.
    pub hash: TokenHash,
    /// What it may do.
    pub roles: Roles,
    /// All that it sees of the world, if that is not everything.
    pub namespace: Option<Namespace>,
}

impl TokenSpec {
    /// The token of TOLLGATE_TOKEN: an admin of everything.
    pub fn admin(token: &Token) -> Self {
        let roles = Roles::of([Role::Admin]);
        Self { name: "admin".to_owned(), hash: TokenHash::of(token), roles, namespace: None }
    }

    fn check(&self) -> Result<(), TokensError> {
        let name = || self.name.chars().take(NAME_BYTES_MAX).collect();
        let is_printable = self.name.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if !is_printable || !(1..=NAME_BYTES_MAX).contains(&self.name.len()) {
            return Err(TokensError::Name { name: name() });
        }
        if self.roles.is_empty() {
            return Err(TokensError::NoRole { name: name() });
        }
        Ok(())
    }
}

/// Why tokens cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokensError {
    /// A name that cannot be kept.
    #[error("token {name:?}: a name has 1 to {NAME_BYTES_MAX} printable ASCII characters")]
    Name {
        /// The name, or its beginning.
        name: String,
    },
    /// A token that may do nothing.
    #[error("token {name:?} has no role: give it read, enqueue, work or admin")]
    NoRole {
        /// Its name.
        name: String,
    },
    /// Two that nobody could tell apart.
    #[error(
        "two tokens are called {name:?}, or are the same token: each has a name and a secret of its own"
    )]
    Twice {
        /// The name of the second.
        name: String,
    },
    /// Too many to look at with each request.
    #[error("{count} tokens are more than the {TOKENS_MAX} there may be")]
    TooMany {
        /// How many were given.
        count: usize,
    },
}

/// All tokens that a server knows.
// Invariant: names and hashes differ.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tokens(Vec<Arc<TokenSpec>>);

impl Tokens {
    pub(crate) fn new(specs: Vec<TokenSpec>) -> Result<Self, TokensError> {
        if specs.len() > TOKENS_MAX {
            return Err(TokensError::TooMany { count: specs.len() });
        }
        for (index, spec) in specs.iter().enumerate() {
            spec.check()?;
            let is_same = |other: &TokenSpec| other.name == spec.name || other.hash.is(&spec.hash);
            if specs[..index].iter().any(is_same) {
                return Err(TokensError::Twice { name: spec.name.clone() });
            }
        }
        Ok(Self(specs.into_iter().map(Arc::new).collect()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whose token this is. All are compared, whichever it is: how long it takes tells nothing.
    pub(crate) fn holder(&self, shown: &[u8]) -> Option<&Arc<TokenSpec>> {
        let shown = TokenHash::of_bytes(shown);
        let each = self.0.iter();
        each.fold(None, |found, spec| if spec.hash.is(&shown) { Some(spec) } else { found })
    }
}

/// The tokens that a running server knows: others may come in their place.
#[derive(Debug)]
pub(crate) struct KnownTokens {
    /// Whether there is any, apart from the lock: every request asks.
    is_empty: AtomicBool,
    tokens: RwLock<Tokens>,
}

impl KnownTokens {
    pub(crate) fn new(tokens: Tokens) -> Self {
        Self { is_empty: tokens.is_empty().into(), tokens: RwLock::new(tokens) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty.load(Ordering::Acquire)
    }

    /// Whose token this is.
    pub(crate) fn holder(&self, shown: &[u8]) -> Option<Arc<TokenSpec>> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        tokens.holder(shown).cloned()
    }

    /// Knows these from now on, and no others.
    pub(crate) fn replace(&self, tokens: Tokens) {
        let mut known = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        self.is_empty.store(tokens.is_empty(), Ordering::Release);
        *known = tokens;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, secret: &str) -> TokenSpec {
        let token = Token::new(secret).unwrap();
        TokenSpec { name: name.to_owned(), ..TokenSpec::admin(&token) }
    }

    #[test]
    fn a_namespace_is_no_part_of_another() {
        assert_eq!(Namespace::new("acme").map(|it| it.prefix().to_owned()), Ok("acme/".to_owned()));
        for text in ["", "a/b", "/", "tollgate:a", "task", "machine", &"x".repeat(65)] {
            assert_eq!(Namespace::new(text), Err(NamespaceError), "{text:?}");
        }
    }

    #[test]
    fn a_hash_is_read_as_it_is_written() {
        let hash = TokenHash::of(&Token::new("abc").unwrap());
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash.to_string(), text);
        assert!(text.parse::<TokenHash>().unwrap().is(&hash));
        for wrong in ["", "sha256:", &text[7..], &text[..70], &text.replace('b', "g")] {
            assert_eq!(wrong.parse::<TokenHash>().err(), Some(HashError), "{wrong}");
        }
        assert_eq!(format!("{hash:?}"), "TokenHash(…)");
    }

    #[test]
    fn each_token_finds_its_own_holder() {
        let tokens = Tokens::new(vec![spec("a", "one"), spec("b", "two")]).unwrap();
        let name = |shown: &[u8]| tokens.holder(shown).map(|holder| holder.name.clone());
        assert_eq!(name(b"one").as_deref(), Some("a"));
        assert_eq!(name(b"two").as_deref(), Some("b"));
        for wrong in ["", "on", "one ", "onetwo"] {
            assert_eq!(name(wrong.as_bytes()), None, "{wrong:?}");
        }
    }

    #[test]
    fn tokens_that_nobody_could_tell_apart_are_refused() {
        let refused = |specs| Tokens::new(specs).unwrap_err();
        let twice = TokensError::Twice { name: "b".to_owned() };
        assert_eq!(refused(vec![spec("b", "one"), spec("b", "two")]), twice);
        assert_eq!(refused(vec![spec("a", "one"), spec("b", "one")]), twice);
        assert!(matches!(refused(vec![spec("é", "one")]), TokensError::Name { .. }));
        let idle = TokenSpec { roles: Roles::of([]), ..spec("a", "one") };
        assert!(matches!(refused(vec![idle]), TokensError::NoRole { .. }));
        let many = (0..=TOKENS_MAX).map(|n| spec(&n.to_string(), &n.to_string()));
        assert!(matches!(refused(many.collect()), TokensError::TooMany { count: 1001 }));
    }
}
