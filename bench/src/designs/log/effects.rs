//! What a commit did, in as many bytes as it would take for good: 40 a call, 30 a start, 20 an end.

use anyhow::{Context as _, bail};

const ENQUEUED_BYTES: usize = 40;
const STARTED_BYTES: usize = 30;
const ENDED_BYTES: usize = 20;

/// A call that waits, and where its payload lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Waiting {
    pub(crate) id: i64,
    pub(crate) parcel: i64,
    pub(crate) place: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Effect {
    Enqueued { lane: i64, call: Waiting },
    Started { lane: i64, id: i64 },
    Ended { id: i64, parcel: i64 },
}

impl Effect {
    pub(crate) fn write(self, bytes: &mut Vec<u8>) {
        let begin = bytes.len();
        let length = match self {
            Self::Enqueued { lane, call } => {
                bytes.push(0);
                bytes.extend(call.id.to_le_bytes());
                bytes.extend(lane.to_le_bytes());
                bytes.extend(call.parcel.to_le_bytes());
                bytes.extend(call.place.to_le_bytes());
                ENQUEUED_BYTES
            }
            Self::Started { lane, id } => {
                bytes.push(1);
                bytes.extend(id.to_le_bytes());
                bytes.extend(lane.to_le_bytes());
                STARTED_BYTES
            }
            Self::Ended { id, parcel } => {
                bytes.push(2);
                bytes.extend(id.to_le_bytes());
                bytes.extend(parcel.to_le_bytes());
                ENDED_BYTES
            }
        };
        bytes.resize(begin + length, 0);
    }

    /// Takes the first effect off; there must be one.
    pub(crate) fn read(bytes: &mut &[u8]) -> anyhow::Result<Self> {
        let length = match bytes.first() {
            Some(0) => ENQUEUED_BYTES,
            Some(1) => STARTED_BYTES,
            Some(2) => ENDED_BYTES,
            kind => bail!("no effect is of kind {kind:?}"),
        };
        let (own, rest) = bytes.split_at_checked(length).context("an effect is cut off")?;
        *bytes = rest;
        let number = |place: usize| {
            let number = own.get(place..).and_then(|own| own.first_chunk());
            number.copied().map(i64::from_le_bytes).context("an effect is too short")
        };
        Ok(match length {
            ENQUEUED_BYTES => {
                let place = own.get(25..).and_then(|own| own.first_chunk());
                let place = place.copied().map(u32::from_le_bytes).context("no place")?;
                let call = Waiting { id: number(1)?, parcel: number(17)?, place };
                Self::Enqueued { lane: number(9)?, call }
            }
            STARTED_BYTES => Self::Started { lane: number(9)?, id: number(1)? },
            _ => Self::Ended { id: number(1)?, parcel: number(9)? },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_are_read_as_they_were_written() {
        let call = Waiting { id: 1 << 40, parcel: 1 << 33, place: 70_000 };
        let effects = [
            Effect::Enqueued { lane: 3 << 35, call },
            Effect::Started { lane: 5 << 36, id: 1 << 41 },
            Effect::Ended { id: 7 << 37, parcel: 9 << 38 },
        ];
        let mut bytes = Vec::new();
        for effect in effects {
            effect.write(&mut bytes);
        }
        assert_eq!(bytes.len(), 90);
        let mut rest = bytes.as_slice();
        for effect in effects {
            assert_eq!(Effect::read(&mut rest).unwrap(), effect);
        }
        assert!(rest.is_empty());
    }
}
