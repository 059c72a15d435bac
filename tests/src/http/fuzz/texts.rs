//! Texts with a grammar of their own: read or refused, whatever they are, and read again as they were
//! written.

use super::mutation::{cron, duration, path};
use proptest::prelude::*;
use tollgate::lanes::BodyPath;
use tollgate::{Cron, Span, Timestamp};

/// Nearly what is wanted, or anything.
fn or_anything(nearly: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop_oneof![4 => nearly, 1 => ".{0,60}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4 * super::config().cases, ..super::config() })]

    #[test]
    fn any_text_is_a_duration_or_none(text in or_anything(duration())) {
        match text.parse::<Span>() {
            Ok(span) => prop_assert_eq!(span.to_string().parse::<Span>(), Ok(span)),
            Err(error) => prop_assert!(error.to_string().contains("250ms"), "{}", error),
        }
    }

    #[test]
    fn any_text_is_a_cron_expression_or_none(
        text in or_anything(cron()),
        zone in prop_oneof![Just("UTC".to_owned()), Just("Europe/Berlin".to_owned()), "[A-Za-z/_+-]{0,20}"],
        at: u64,
    ) {
        let at = Timestamp::from_nanos(at);
        if let Ok(cron) = Cron::new(&text, &zone)
            && let Some(next) = cron.next_after(at)
        {
            prop_assert!(next > at, "the tick after {:?} is {:?}", at, next);
        }
    }

    #[test]
    fn any_text_is_a_path_or_none(text in or_anything(path())) {
        if let Ok(path) = BodyPath::new(&text) {
            prop_assert_eq!(path.as_str(), text);
        }
    }
}
