//! Roles: what a token may do.

use std::fmt;
use std::str::FromStr;

/// What a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Look at everything.
    Read,
    /// Enqueue calls.
    Enqueue,
    /// Make calls: claim, settle, renew, consume.
    Work,
    /// Everything, changes of limits and queues too.
    Admin,
}

/// A text that names no role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a role is read, enqueue, work or admin")]
pub struct RoleError;

impl Role {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Enqueue, Self::Work, Self::Admin];

    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Enqueue => "enqueue",
            Self::Work => "work",
            Self::Admin => "admin",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = RoleError;

    fn from_str(text: &str) -> Result<Self, RoleError> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or(RoleError)
    }
}

/// Some roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    /// These.
    pub fn of(roles: impl IntoIterator<Item = Role>) -> Self {
        Self(roles.into_iter().fold(0, |bits, role| bits | role.bit()))
    }

    /// Whether who holds these may do what takes `role`. An admin may do everything.
    pub fn allow(self, role: Role) -> bool {
        self.0 & (role.bit() | Role::Admin.bit()) != 0
    }

    /// Those that are held, in order.
    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| self.0 & role.bit() != 0)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_allows_itself_and_admin_allows_all() {
        for held in Role::ALL {
            for wanted in Role::ALL {
                let allowed = Roles::of([held]).allow(wanted);
                assert_eq!(allowed, held == wanted || held == Role::Admin, "{held} {wanted}");
            }
        }
    }

    #[test]
    fn a_role_is_read_as_it_is_written() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        assert_eq!("Admin".parse::<Role>(), Err(RoleError));
        let roles = Roles::of([Role::Work, Role::Read]);
        assert_eq!(roles.iter().collect::<Vec<_>>(), [Role::Read, Role::Work]);
    }
}
