//! What a `traceparent` says: the trace, the span that is the parent, and whether it is sampled.

use super::TraceParent;

/// Which characters are the ids and the flags.
const TRACE: std::ops::Range<usize> = 3..35;
const SPAN: std::ops::Range<usize> = 36..52;
const FLAGS: std::ops::Range<usize> = 53..55;

/// The flag of a trace that someone records.
const SAMPLED: u8 = 1;

/// A span's id.
pub type SpanId = [u8; 8];

impl TraceParent {
    /// The trace.
    pub fn trace_id(&self) -> [u8; 16] {
        self.bytes(TRACE)
    }

    /// The span that is the parent of what is done next.
    pub fn span_id(&self) -> SpanId {
        self.bytes(SPAN)
    }

    /// The flags, as they came.
    pub fn flags(&self) -> u8 {
        let [flags] = self.bytes(FLAGS);
        flags
    }

    /// Whether someone records the trace. Who is told of one that is not records nothing, and passes it on.
    pub fn is_sampled(&self) -> bool {
        self.flags() & SAMPLED != 0
    }

    /// The same trace with another span as the parent; `None` if the id is all zeros, which is none.
    pub fn with_parent(&self, span: SpanId) -> Option<Self> {
        Self::from_ids(self.trace_id(), span, self.flags())
    }

    /// One that says this; `None` if an id is all zeros, which is none.
    pub fn from_ids(trace: [u8; 16], span: SpanId, flags: u8) -> Option<Self> {
        let (trace, span) = (u128::from_be_bytes(trace), u64::from_be_bytes(span));
        Self::new(&format!("00-{trace:032x}-{span:016x}-{flags:02x}"))
    }

    fn bytes<const BYTES: usize>(&self, at: std::ops::Range<usize>) -> [u8; BYTES] {
        let text = self.as_str().get(at).unwrap_or_default();
        let digit = |nth: usize| match text.as_bytes().get(nth) {
            Some(digit @ b'0'..=b'9') => digit - b'0',
            Some(digit @ b'a'..=b'f') => digit - b'a' + 10,
            // There are no others: the constructor saw to it.
            _ => 0,
        };
        std::array::from_fn(|nth| digit(2 * nth) << 4 | digit(2 * nth + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_read_is_what_was_said() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03";
        let trace = TraceParent::new(text).unwrap();
        assert_eq!(trace.trace_id(), 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes());
        assert_eq!(trace.span_id(), 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
        assert_eq!((trace.flags(), trace.is_sampled()), (3, true));
        assert!(!TraceParent::new(&text.replace("-03", "-02")).unwrap().is_sampled());
        assert_eq!(trace.with_parent([0; 8]), None);
    }

    proptest! {
        #[test]
        fn any_ids_come_back(trace: [u8; 16], span: [u8; 8], flags: u8) {
            let is_none = trace == [0; 16] || span == [0; 8];
            match TraceParent::from_ids(trace, span, flags) {
                None => prop_assert!(is_none),
                Some(said) => {
                    prop_assert_eq!((said.trace_id(), said.span_id()), (trace, span));
                    prop_assert_eq!(said.flags(), flags);
                    prop_assert!(!is_none);
                }
            }
        }
    }
}
