//! Rules of a limit as flags.

use clap::Args;
use serde_json::{Value, json};
use tollgate::Span;

/// What a limit is to be. Several of these make a limit of several rules, all of which must admit.
#[derive(Debug, Args)]
#[group(multiple = true)]
pub(super) struct RuleArguments {
    /// So many in each period, refilled evenly, as in 100/1m.
    #[arg(long, value_name = "N/PERIOD", value_parser = rate)]
    rate: Option<Rate>,
    /// How many of the rate may go at once; as many as the rate has if left out.
    #[arg(long, value_name = "N", requires = "rate")]
    burst: Option<u64>,
    /// So many in each window, which opens at the first call, as in 10000/1d.
    #[arg(long, value_name = "N/PERIOD", value_parser = rate)]
    window: Option<Rate>,
    /// Opens windows on the calendar of this time zone, as in Europe/Berlin.
    #[arg(long, value_name = "ZONE", requires = "window")]
    align: Option<String>,
    /// So many in any interval of that length.
    #[arg(long, value_name = "N/PERIOD", value_parser = rate)]
    sliding: Option<Rate>,
    /// So many at a time.
    #[arg(long, value_name = "N")]
    concurrency: Option<u64>,
    /// For how long a process may decide over what it took ahead, where several share the limit, as in 10ms.
    #[arg(long, value_name = "SPAN")]
    ahead: Option<Span>,
    /// Lets its meters lie on all servers of a Redis Cluster; it cannot be combined with other limits then, and stays so.
    #[arg(long)]
    spread: bool,
    /// The definition in JSON, as the server takes it.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["rate", "window", "sliding", "concurrency", "ahead", "spread"])]
    define: Option<String>,
}

/// So many in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rate {
    limit: u64,
    per: Span,
}

fn rate(text: &str) -> Result<Rate, String> {
    let wrong = || "write a number and a period, as in 100/1m, 5/s or 10000/1d".to_owned();
    let (limit, per) = text.split_once('/').ok_or_else(wrong)?;
    let limit = limit.trim().parse().map_err(|_| wrong())?;
    // A unit alone is one of it.
    let per = per.trim();
    let per = if per.starts_with(|first: char| first.is_ascii_alphabetic()) {
        format!("1{per}").parse()
    } else {
        per.parse()
    };
    Ok(Rate { limit, per: per.map_err(|_| wrong())? })
}

impl RuleArguments {
    /// Whether any rule was said.
    pub(super) fn is_given(&self) -> bool {
        let rates = [&self.rate, &self.window, &self.sliding];
        rates.into_iter().any(Option::is_some)
            || self.concurrency.is_some()
            || self.define.is_some()
    }

    /// The definition as the server takes it.
    pub(super) fn definition(&self) -> anyhow::Result<Value> {
        if let Some(json) = &self.define {
            return serde_json::from_str(json)
                .map_err(|error| anyhow::anyhow!("--define is not JSON: {error}"));
        }
        let mut rules = Vec::new();
        let rated = |kind: &str, rate: Rate| json!({"rule": kind, "limit": rate.limit, "per": rate.per.to_string()});
        if let Some(rate) = self.rate {
            let mut rule = rated("token_bucket", rate);
            if let Some(burst) = self.burst {
                rule["burst"] = burst.into();
            }
            rules.push(rule);
        }
        if let Some(rate) = self.window {
            let mut rule = rated("fixed_window", rate);
            if let Some(zone) = &self.align {
                rule["align"] = zone.as_str().into();
            }
            rules.push(rule);
        }
        rules.extend(self.sliding.map(|rate| rated("sliding_window", rate)));
        rules.extend(self.concurrency.map(|limit| json!({"rule": "concurrency", "limit": limit})));
        let mut definition = match <[Value; 1]>::try_from(rules) {
            Ok([one]) => one,
            Err(none) if none.is_empty() => anyhow::bail!(
                "say what it is to be: --rate 100/1m, --window, --sliding, --concurrency or --define"
            ),
            Err(rules) => json!({"rules": rules}),
        };
        if let Some(ahead) = self.ahead {
            definition["ahead"] = ahead.to_string().into();
        }
        if self.spread {
            definition["spread"] = true.into();
        }
        Ok(definition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_and_a_period() {
        let read = |text| rate(text).map(|rate| (rate.limit, rate.per));
        assert_eq!(read("100/1m"), Ok((100, Span::from_minutes(1))));
        assert_eq!(read("5/s"), Ok((5, Span::from_secs(1))));
        for text in ["", "100", "100/", "/1m", "1.5/s", "100/soon"] {
            assert!(read(text).unwrap_err().contains("100/1m"), "{text}");
        }
    }
}
