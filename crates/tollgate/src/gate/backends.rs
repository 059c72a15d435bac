//! The stores that limits can be shared in, each behind a feature.

use super::GateError;
use super::connect::Sharing;
#[cfg(feature = "postgres")]
use crate::embedded::HistorySettings;
use crate::shared::{Cells, Connect, Nature};
#[cfg(feature = "postgres")]
use crate::store::Store;
use std::sync::Arc;
#[cfg(feature = "postgres")]
use tollgate_engine::StoreError;

type Connecting = Result<(Nature, Connect), GateError>;

#[cfg(feature = "redis")]
pub(super) fn redis(url: &str, sharing: &Sharing) -> Connecting {
    use crate::shared::redis::{CHANGES_MAX, RedisCells, SHARES, Settings};
    let (prefix, deadline) = (sharing.prefix(), sharing.deadline());
    let settings = Settings { prefix, deadline, ..Settings::default() };
    let url = url.to_owned();
    #[cfg(feature = "tls")]
    let trust = sharing.trust.clone();
    let connect: Connect = Box::new(move || {
        let (url, settings) = (url.clone(), settings.clone());
        #[cfg(feature = "tls")]
        let trust = trust.clone();
        Box::pin(async move {
            #[cfg(feature = "tls")]
            let cells = RedisCells::connect_with_tls(&url, &trust, settings).await?;
            #[cfg(not(feature = "tls"))]
            let cells = RedisCells::connect(&url, settings).await?;
            let cells: Arc<dyn Cells> = Arc::new(cells);
            Ok(cells)
        })
    });
    let nature = Nature {
        writes_together: true,
        spreads: true,
        changes_max: CHANGES_MAX,
        shares: SHARES,
        decides_itself: true,
    };
    Ok((nature, connect))
}

#[cfg(feature = "postgres")]
pub(super) fn postgres(url: &str, sharing: &Sharing) -> Connecting {
    use crate::shared::postgres::{PostgresCells, Settings};
    #[cfg(feature = "tls")]
    use crate::shared::postgres::{Rustls, asks_for_tls};
    let (schema, deadline) = (sharing.prefix(), sharing.deadline());
    let settings = Settings { schema, deadline, ..Settings::default() };
    let (url, changes_max) = (url.to_owned(), settings.connections);
    #[cfg(feature = "tls")]
    let trust = sharing.trust.clone();
    let connect: Connect = Box::new(move || {
        let (url, settings) = (url.clone(), settings.clone());
        #[cfg(feature = "tls")]
        let trust = trust.clone();
        Box::pin(async move {
            #[cfg(feature = "tls")]
            if asks_for_tls(&url)? {
                let tls = Rustls::new(&trust)?;
                let cells = PostgresCells::connect_with_tls(&url, tls, settings).await?;
                return Ok(Arc::new(cells) as Arc<dyn Cells>);
            }
            let cells: Arc<dyn Cells> = Arc::new(PostgresCells::connect(&url, settings).await?);
            Ok(cells)
        })
    });
    let nature = Nature {
        writes_together: true,
        spreads: false,
        changes_max,
        shares: 1,
        decides_itself: false,
    };
    Ok((nature, connect))
}

/// The store with lanes in the database of a url.
#[cfg(feature = "postgres")]
pub(super) async fn postgres_lanes(
    url: &str,
    sharing: &Sharing,
    history: HistorySettings,
) -> Result<Store, GateError> {
    use crate::shared::postgres::DatabaseSettings;
    #[cfg(feature = "tls")]
    use crate::shared::postgres::{Rustls, asks_for_tls};
    let schema = sharing.prefix();
    let mut settings = DatabaseSettings { schema, history, ..DatabaseSettings::default() };
    settings.deadline = sharing.deadline_said().unwrap_or(settings.deadline);
    settings.time = sharing.time.clone().map(|time| {
        let time: crate::store::TimeSource = Arc::new(move || time.0.both());
        time
    });
    #[cfg(feature = "tls")]
    if asks_for_tls(url).map_err(StoreError::from)? {
        let tls = Rustls::new(&sharing.trust).map_err(StoreError::from)?;
        let connected = Store::connect_with_tls(url, tls, settings).await;
        return Ok(connected.map_err(StoreError::from)?);
    }
    Ok(Store::connect(url, settings).await.map_err(StoreError::from)?)
}

#[cfg(feature = "nats")]
pub(super) fn nats(url: &str, sharing: &Sharing) -> Connecting {
    use crate::shared::nats::{CHANGES_MAX, NatsCells, Settings};
    let (bucket, deadline) = (sharing.prefix(), sharing.deadline());
    let settings = Settings { bucket, deadline, ..Settings::default() };
    let url = url.to_owned();
    #[cfg(feature = "tls")]
    let trust = sharing.trust.clone();
    let connect: Connect = Box::new(move || {
        let (url, settings) = (url.clone(), settings.clone());
        #[cfg(feature = "tls")]
        let trust = trust.clone();
        Box::pin(async move {
            #[cfg(feature = "tls")]
            let cells = NatsCells::connect_with_tls(&url, &trust, settings).await?;
            #[cfg(not(feature = "tls"))]
            let cells = NatsCells::connect(&url, settings).await?;
            let cells: Arc<dyn Cells> = Arc::new(cells);
            Ok(cells)
        })
    });
    let nature = Nature {
        writes_together: false,
        spreads: false,
        changes_max: CHANGES_MAX,
        shares: 1,
        decides_itself: false,
    };
    Ok((nature, connect))
}

#[cfg(not(feature = "redis"))]
pub(super) fn redis(_: &str, _: &Sharing) -> Connecting {
    Err(GateError::NotBuilt { feature: "redis" })
}

#[cfg(not(feature = "postgres"))]
pub(super) fn postgres(_: &str, _: &Sharing) -> Connecting {
    Err(GateError::NotBuilt { feature: "postgres" })
}

#[cfg(not(feature = "nats"))]
pub(super) fn nats(_: &str, _: &Sharing) -> Connecting {
    Err(GateError::NotBuilt { feature: "nats" })
}
