//! What is in one simulated file: as it is read, as it was synced, and what a crash makes of it.

use super::random::Random;

/// What a disk writes at once, or tears.
const SECTOR_BYTES: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Content {
    current: Vec<u8>,
    synced: Vec<u8>,
    /// What was done since the last sync, in order.
    changes: Vec<Change>,
    /// What lies on the medium, also behind the file's end: a sector that is lost reads as this.
    medium: Vec<u8>,
}

#[derive(Debug, Clone)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate { length: usize },
}

impl Content {
    pub(super) fn current(&self) -> &[u8] {
        &self.current
    }

    pub(super) fn synced(&self) -> &[u8] {
        &self.synced
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.changes.push(Change::Write { offset: self.current.len(), bytes: bytes.to_vec() });
        self.current.extend_from_slice(bytes);
    }

    pub(super) fn truncate(&mut self, length: usize, random: &mut Random) {
        // What is cut off may have reached the medium before.
        if random.coin() {
            overwrite(&mut self.medium, 0, &self.current);
        }
        self.current.truncate(length);
        self.changes.push(Change::Truncate { length });
    }

    pub(super) fn sync(&mut self) {
        for change in self.changes.drain(..) {
            match change {
                Change::Write { offset, bytes } => overwrite(&mut self.synced, offset, &bytes),
                Change::Truncate { length } => self.synced.truncate(length),
            }
        }
        overwrite(&mut self.medium, 0, &self.synced);
    }

    /// All of it lasts, or it never will: the system takes the pages for written and forgets them.
    pub(super) fn fail_to_sync(&mut self, random: &mut Random) {
        if random.coin() {
            self.sync();
        }
        self.changes.clear();
    }

    pub(super) fn flip(&mut self, bit: usize) {
        for bytes in [&mut self.current, &mut self.synced, &mut self.medium] {
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    pub(super) fn crash(&mut self, random: &mut Random) {
        let kept = random.below(self.changes.len() + 1);
        let mut survived = self.synced.clone();
        for (place, change) in self.changes.drain(..).take(kept).enumerate() {
            match change {
                Change::Truncate { length } => survived.truncate(length),
                Change::Write { offset, mut bytes } => {
                    damage(&mut bytes, offset, &self.medium, random);
                    if place + 1 == kept && random.coin() {
                        bytes.truncate(random.below(bytes.len() + 1));
                    }
                    overwrite(&mut survived, offset, &bytes);
                }
            }
        }
        overwrite(&mut self.medium, 0, &survived);
        self.current.clone_from(&survived);
        self.synced = survived;
    }
}

/// Loses and tears some sectors of what was written at `offset`, or none.
fn damage(bytes: &mut [u8], offset: usize, medium: &[u8], random: &mut Random) {
    // Most frames of a test are smaller than a sector: half of all writes stay whole.
    if random.coin() {
        return;
    }
    let mut start = 0;
    while start < bytes.len() {
        let end = ((offset + start + 1).next_multiple_of(SECTOR_BYTES) - offset).min(bytes.len());
        let lost = match random.below(4) {
            0 => start..end,
            1 => start + random.below(end - start)..end,
            2 => start..start + random.below(end - start),
            _ => end..end,
        };
        for place in lost {
            bytes[place] = medium.get(offset + place).copied().unwrap_or(0);
        }
        start = end;
    }
}

/// Puts `bytes` at `offset`, with zeros before it where there is nothing yet.
fn overwrite(target: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if target.len() < end {
        target.resize(end, 0);
    }
    target[offset..end].copy_from_slice(bytes);
}
