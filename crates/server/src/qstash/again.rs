//! A message that was accepted before, as a draft once more.

use super::card::{Accepted, CardKey};
use super::destination::Target;
use super::draft::{Draft, Start};
use super::letter::Through;
use super::remembered::Message;
use tollgate::{Priority, Timestamp};

impl Message {
    /// As it was asked for, but for when it is sent and how it is known again: that is of the past.
    pub(super) fn draft(&self, priority: Priority) -> Draft {
        let Self { card, delivery, .. } = self;
        Draft {
            target: match &delivery.destination {
                Some(url) => Target::Url(url.clone()),
                None => Target::Group(card.group.clone().unwrap_or_default()),
            },
            delivery: delivery.clone(),
            callback_headers: card.callback_headers.clone(),
            failure_callback_headers: card.failure_callback_headers.clone(),
            start: Start::Now,
            dedup: None,
            keys: card.keys.iter().map(CardKey::draft).collect(),
            labels: card.labels.clone(),
            redact: card.redact(),
            priority,
            cron: None,
            schedule: None,
            queue: card.queue.clone(),
        }
    }

    /// What is known of it when it is handed in again.
    pub(super) fn accepted_again(&self, at: Timestamp) -> Accepted {
        let card = self.card.clone();
        Accepted {
            at,
            caller_ip: card.caller_ip,
            queue: card.queue,
            group: card.group.map(|group| (group, card.endpoint)),
            schedule: card.schedule,
            source: card.source,
            ..Accepted::default()
        }
    }

    /// Where it waits.
    pub(super) fn place(&self) -> Through {
        match (&self.card.queue, &self.card.source) {
            (None, _) => Through::Flow,
            (Some(queue), None) => Through::Queue(queue.clone()),
            // Callbacks go before all others of their queue.
            (Some(queue), Some(_)) => Through::QueueFirst(queue.clone()),
        }
    }
}

/// Lets another draft overrule some settings: those that were named, and the headers that it has.
pub(super) fn overrule(draft: &mut Draft, by: Draft, is_named: impl Fn(&str) -> bool) {
    let (delivery, new) = (&mut draft.delivery, by.delivery);
    let is_new = |name: &str| new.headers.iter().any(|(it, _)| it.eq_ignore_ascii_case(name));
    delivery.headers.retain(|(name, _)| !is_new(name));
    delivery.headers.extend(new.headers);
    if is_named("method") {
        delivery.method = new.method;
    }
    if is_named("timeout") {
        delivery.timeout = new.timeout;
    }
    if is_named("retries") {
        delivery.retries = new.retries;
    }
    if is_named("retry-delay") {
        delivery.retry_delay = new.retry_delay;
    }
    if is_named("callback") {
        (delivery.callback, draft.callback_headers) = (new.callback, by.callback_headers);
    }
    if is_named("failure-callback") {
        delivery.failure_callback = new.failure_callback;
        draft.failure_callback_headers = by.failure_callback_headers;
    }
    if is_named("flow-control-key") {
        draft.keys = by.keys;
    }
    if is_named("label") {
        draft.labels = by.labels;
    }
    if is_named("redact-fields") {
        draft.redact = by.redact;
    }
    if is_named("priority") {
        draft.priority = by.priority;
    }
    draft.start = by.start;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qstash::card::Card;
    use crate::qstash::draft::Pair;
    use tollgate::Span;

    fn draft(headers: &[(&str, &str)]) -> Draft {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let headers: Vec<Pair> = headers.iter().map(pair).collect();
        Draft::read(Target::Url("https://a.example/".to_owned()), &headers).unwrap()
    }

    fn full() -> Draft {
        draft(&[
            ("Upstash-Method", "PUT"),
            ("Upstash-Retries", "7"),
            ("Upstash-Retry-Delay", "1000"),
            ("Upstash-Timeout", "9s"),
            ("Upstash-Callback", "https://b.example/"),
            ("Upstash-Callback-Forward-X-B", "b"),
            ("Upstash-Failure-Callback", "https://c.example/"),
            ("Upstash-Failure-Callback-Retries", "1"),
            ("Upstash-Flow-Control-Key", "k"),
            ("Upstash-Flow-Control-Value", "rate=5,period=1m,parallelism=3,weight=2"),
            ("Upstash-Label", "one,two"),
            ("Upstash-Redact-Fields", "body,header[x-a]"),
            ("Upstash-Priority", "4"),
            ("Upstash-Forward-X-A", "a"),
            ("Upstash-Queue-Name", "q"),
        ])
    }

    fn message() -> Message {
        let (draft, queue) = (full(), Some("q".to_owned()));
        let card = Card::new(&draft, Accepted { queue, ..Accepted::default() });
        let card = Card::from_bytes(&card.to_bytes(&draft.delivery).unwrap()).unwrap();
        Message { card, delivery: draft.delivery, created_ms: None, body: None }
    }

    #[test]
    fn a_message_is_asked_for_again_as_it_was() {
        let priority = full().priority;
        assert_eq!(message().draft(priority), full());
        assert_eq!(message().place(), Through::Queue("q".to_owned()));
    }

    #[test]
    fn what_is_named_overrules_and_nothing_else() {
        let mut again = full();
        overrule(&mut again, draft(&[]), |_| false);
        assert_eq!(again, full());
        let new = [
            ("Upstash-Retries", "0"),
            ("Upstash-Delay", "5s"),
            ("Upstash-Forward-x-a", "other"),
            ("Upstash-Label", "three"),
        ];
        let is_named = |name: &str| ["retries", "delay", "label"].contains(&name);
        overrule(&mut again, draft(&new), is_named);
        let mut wanted = full();
        wanted.delivery.retries = Some(0);
        wanted.delivery.headers = vec![("x-a".to_owned(), "other".to_owned())];
        wanted.labels = vec!["three".to_owned()];
        wanted.start = Start::After(Span::from_secs(5));
        assert_eq!(again, wanted);
    }
}
