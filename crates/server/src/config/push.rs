//! The section `[push]`: how calls are delivered that Tollgate makes itself.

use super::layers::{needed, parsed_setting};
use super::{ConfigError, Environment, VARIABLE_PREFIX};
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tollgate::Span;
use tollgate::lanes::queue::{LEASE_MAX, RENEWED_LEASE_MIN};
use tollgate::push::PushSettings;
use tollgate::push::address::AddressPolicy;
use tollgate::push::signature::Signing;

/// Most bytes of an answer that may be read: so many times as there are pushes in flight they are held.
const BODY_BYTES_MAX: u64 = 16 << 20;

/// The section, or as much of it as someone said.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PushWire {
    allow_addresses: Option<Vec<String>>,
    timeout: Option<String>,
    lease: Option<String>,
    answer_bytes_max: Option<u64>,
    signing_key: Option<String>,
    signing_key_other: Option<String>,
    ca_file: Option<PathBuf>,
}

impl fmt::Debug for PushWire {
    /// Keys are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushWire").finish_non_exhaustive()
    }
}

impl PushWire {
    /// What the variables say.
    pub(super) fn of_environment(environment: &Environment) -> Result<Self, ConfigError> {
        let text = |name: &str| {
            let value = environment.get(name).map(|value| value.to_str().map(str::to_owned));
            let place = || format!("{VARIABLE_PREFIX}{name}");
            value
                .map(|it| it.ok_or_else(|| ConfigError::new(place(), "it is not UTF-8")))
                .transpose()
        };
        let list = |text: String| {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            items.map(str::to_owned).collect()
        };
        let bytes = text("PUSH_ANSWER_BYTES_MAX")?.map(|text| text.parse()).transpose();
        Ok(Self {
            allow_addresses: text("PUSH_ALLOW_ADDRESSES")?.map(list),
            timeout: text("PUSH_TIMEOUT")?,
            lease: text("PUSH_LEASE")?,
            answer_bytes_max: bytes
                .map_err(|error| ConfigError::new("TOLLGATE_PUSH_ANSWER_BYTES_MAX", error))?,
            signing_key: text("PUSH_SIGNING_KEY")?,
            signing_key_other: text("PUSH_SIGNING_KEY_OTHER")?,
            ca_file: environment.get("PUSH_CA_FILE").map(PathBuf::from),
        })
    }

    /// These settings, and where they say nothing, those.
    pub(super) fn over(self, below: Self) -> Self {
        Self {
            allow_addresses: self.allow_addresses.or(below.allow_addresses),
            timeout: self.timeout.or(below.timeout),
            lease: self.lease.or(below.lease),
            answer_bytes_max: self.answer_bytes_max.or(below.answer_bytes_max),
            signing_key: self.signing_key.or(below.signing_key),
            signing_key_other: self.signing_key_other.or(below.signing_key_other),
            ca_file: self.ca_file.or(below.ca_file),
        }
    }

    pub(super) fn settings(self) -> Result<PushSettings, ConfigError> {
        let timeout: Span = needed("push.timeout", parsed_setting("push.timeout", self.timeout)?)?;
        if timeout.is_zero() {
            return Err(ConfigError::new("push.timeout", "an answer takes some time"));
        }
        let lease: Span = needed("push.lease", parsed_setting("push.lease", self.lease)?)?;
        if !(RENEWED_LEASE_MIN..=LEASE_MAX).contains(&lease) {
            let what = format!("it is from {RENEWED_LEASE_MIN} to {LEASE_MAX}, and not {lease}");
            return Err(ConfigError::new("push.lease", what));
        }
        let bytes = needed("push.answer_bytes_max", self.answer_bytes_max)?;
        if bytes > BODY_BYTES_MAX {
            let what = format!("{bytes} is over the most that may be, {BODY_BYTES_MAX}");
            return Err(ConfigError::new("push.answer_bytes_max", what));
        }
        let networks = self.allow_addresses.unwrap_or_default();
        let allowed = networks.iter().map(|text| text.parse());
        let allowed = allowed.collect::<Result<_, _>>();
        let allowed = allowed.map_err(|error| ConfigError::new("push.allow_addresses", error))?;
        Ok(PushSettings {
            addresses: AddressPolicy { allowed },
            timeout,
            lease,
            body_bytes_max: usize::try_from(bytes).unwrap_or(usize::MAX),
            signing: signing(self.signing_key.as_deref(), self.signing_key_other.as_deref())?,
            tracer: None,
            manner: None,
            authorities: self.ca_file.as_deref().map_or(Ok(Vec::new()), authorities)?,
        })
    }
}

fn signing(current: Option<&str>, other: Option<&str>) -> Result<Option<Signing>, ConfigError> {
    match (current, other) {
        (Some(current), other) => {
            let signing = Signing::from_texts(current, other).map(Some);
            signing.map_err(|error| ConfigError::new("push.signing_key", error))
        }
        (None, Some(_)) => {
            let what = "it is the second of two: give push.signing_key, too";
            Err(ConfigError::new("push.signing_key_other", what))
        }
        (None, None) => Ok(None),
    }
}

fn authorities(file: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let place = format!("push.ca_file {}", file.display());
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(found) if found.is_empty() => {
            Err(ConfigError::new(place, "there is no certificate in it: it is to be in PEM form"))
        }
        Ok(found) => Ok(found),
        Err(error) => Err(ConfigError::new(place, error)),
    }
}
