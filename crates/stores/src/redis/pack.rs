//! What a script is handed, as MessagePack, which Redis takes apart by itself.

/// A number of 64 bits is two in a script, its billions and the rest.
const BILLION: u64 = 1_000_000_000;

/// A number of 64 bits, as a script takes it.
pub(super) fn pair(number: u64) -> [u64; 2] {
    [number / BILLION, number % BILLION]
}

/// A request under way: values one after the other, in lists whose lengths are said first.
#[derive(Debug, Default)]
pub(super) struct Pack(Vec<u8>);

impl Pack {
    /// So many values follow as one list.
    pub(super) fn list(&mut self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.0.push(0xdd);
        self.0.extend(count.to_be_bytes());
    }

    /// A number below 2^53: a script has no others.
    pub(super) fn number(&mut self, number: u64) {
        match (u8::try_from(number), u32::try_from(number)) {
            (Ok(small), _) if small < 0x80 => self.0.push(small),
            (_, Ok(number)) => {
                self.0.push(0xce);
                self.0.extend(number.to_be_bytes());
            }
            _ => {
                self.0.push(0xcf);
                self.0.extend(number.to_be_bytes());
            }
        }
    }

    /// Any number, as two.
    pub(super) fn pair(&mut self, number: u64) {
        for part in pair(number) {
            self.number(part);
        }
    }

    /// A list of numbers.
    pub(super) fn numbers(&mut self, numbers: &[u64]) {
        self.list(numbers.len());
        for number in numbers {
            self.number(*number);
        }
    }

    /// Bytes, or that there are none.
    pub(super) fn bytes(&mut self, bytes: Option<&[u8]>) {
        let Some(bytes) = bytes else {
            self.0.push(0xc2);
            return;
        };
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.0.push(0xdb);
        self.0.extend(length.to_be_bytes());
        self.0.extend(bytes);
    }

    /// The whole.
    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}
