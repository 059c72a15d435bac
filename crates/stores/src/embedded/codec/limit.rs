//! Limits: each is written as it was, and checked again when it is read.

use super::error::CodecError;
use super::input::{Input, newer};
use super::output::Output;
use tollgate_core::{Align, Definition, Limit, LimitName, RuleSpec, Span};

// The kinds of rules: for good, as the tags are.
const TOKEN_BUCKET: u8 = 1;
const FIXED_WINDOW: u8 = 2;
const FIXED_WINDOW_ON_CALENDAR: u8 = 3;
const SLIDING_WINDOW: u8 = 4;
const CONCURRENCY: u8 = 5;
// No rules, but what is said of the limit: at the end of the list, in this order.
const AHEAD: u8 = 6;
const SPREAD: u8 = 7;

/// Its kind and one number.
const RULE_BYTES_MIN: usize = 2;

/// What stands in the list of a limit.
enum Entry<'a> {
    Rule(&'a RuleSpec),
    Ahead(Span),
    Spread,
}

pub(super) fn write(definition: &Definition, out: &mut Output<'_>) {
    let limit = definition.limit();
    let mut entries: Vec<Entry<'_>> = limit.rules().iter().map(Entry::Rule).collect();
    entries.extend(Some(limit.taken_ahead()).filter(|ahead| !ahead.is_zero()).map(Entry::Ahead));
    entries.extend(limit.is_spread().then_some(Entry::Spread));
    out.list(&entries, |out, entry| match entry {
        Entry::Rule(rule) => write_rule(rule, out),
        Entry::Ahead(ahead) => {
            out.byte(AHEAD);
            out.span(*ahead);
        }
        Entry::Spread => {
            out.byte(SPREAD);
            out.number(1);
        }
    });
}

pub(super) fn read(name: &LimitName, input: &mut Input<'_>) -> Result<Definition, CodecError> {
    let (mut ahead, mut is_spread) = (Span::ZERO, false);
    let entries = input.list(RULE_BYTES_MIN, |input| {
        let kind = input.byte()?;
        if is_spread || (!ahead.is_zero() && kind != SPREAD) {
            return Err(input.damaged("more behind what is said of the limit"));
        }
        match kind {
            AHEAD => {
                ahead = input.span()?;
                if ahead.is_zero() { Err(input.damaged("nothing is lent")) } else { Ok(None) }
            }
            SPREAD => {
                is_spread = input.number()? == 1;
                if is_spread { Ok(None) } else { Err(input.damaged("nothing is spread")) }
            }
            kind => read_rule(kind, input).map(Some),
        }
    })?;
    let refused = |source| CodecError::Limit { name: name.clone(), source };
    let limit = Limit::of(entries.into_iter().flatten().collect()).ahead(ahead);
    let limit = if is_spread { limit.spread() } else { limit };
    Definition::new(limit).map_err(refused)
}

fn write_rule(rule: &RuleSpec, out: &mut Output<'_>) {
    match rule {
        RuleSpec::TokenBucket { limit, per, burst, guard } => {
            write_rate(TOKEN_BUCKET, *limit, *per, out);
            out.number(*burst);
            out.span(*guard);
        }
        RuleSpec::FixedWindow { limit, per, align: Align::FirstCall, guard } => {
            write_rate(FIXED_WINDOW, *limit, *per, out);
            out.span(*guard);
        }
        RuleSpec::FixedWindow { limit, per, align: Align::Calendar { zone }, guard } => {
            write_rate(FIXED_WINDOW_ON_CALENDAR, *limit, *per, out);
            out.span(*guard);
            out.text(zone);
        }
        RuleSpec::SlidingWindow { limit, per, guard } => {
            write_rate(SLIDING_WINDOW, *limit, *per, out);
            out.span(*guard);
        }
        RuleSpec::Concurrency { limit } => {
            out.byte(CONCURRENCY);
            out.number(*limit);
        }
        // To leave it out would lose a limit at the next start.
        other => unreachable!("the journal has no number for the rule {}", other.kind()),
    }
}

fn read_rule(kind: u8, input: &mut Input<'_>) -> Result<RuleSpec, CodecError> {
    Ok(match kind {
        TOKEN_BUCKET => {
            let (limit, per) = read_rate(input)?;
            RuleSpec::TokenBucket { limit, per, burst: input.number()?, guard: input.span()? }
        }
        FIXED_WINDOW => {
            let (limit, per) = read_rate(input)?;
            let guard = input.span()?;
            RuleSpec::FixedWindow { limit, per, align: Align::FirstCall, guard }
        }
        FIXED_WINDOW_ON_CALENDAR => {
            let (limit, per) = read_rate(input)?;
            let guard = input.span()?;
            let align = Align::Calendar { zone: input.text()?.to_owned() };
            RuleSpec::FixedWindow { limit, per, align, guard }
        }
        SLIDING_WINDOW => {
            let (limit, per) = read_rate(input)?;
            RuleSpec::SlidingWindow { limit, per, guard: input.span()? }
        }
        CONCURRENCY => RuleSpec::Concurrency { limit: input.number()? },
        0 => return Err(input.damaged("a rule of no kind")),
        other => return Err(newer("kind of rule", other)),
    })
}

fn write_rate(kind: u8, limit: u64, per: Span, out: &mut Output<'_>) {
    out.byte(kind);
    out.number(limit);
    out.span(per);
}

fn read_rate(input: &mut Input<'_>) -> Result<(u64, Span), CodecError> {
    Ok((input.number()?, input.span()?))
}
