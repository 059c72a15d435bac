//! Server-sent events, as they are put together from bytes.

use std::collections::VecDeque;

/// Most bytes of one message.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// A message of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    pub(super) event: String,
    pub(super) data: String,
}

/// Makes messages of bytes as they come.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// A line that has not ended.
    rest: Vec<u8>,
    begun: Message,
    whole: VecDeque<Message>,
}

impl Lines {
    pub(super) fn take_in(&mut self, bytes: &[u8]) -> Result<(), String> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(line);
            if self.rest.len() + self.begun.data.len() > MESSAGE_BYTES_MAX {
                return Err("a message is too long".to_owned());
            }
            if line.ends_with(b"\n") {
                let line = std::mem::take(&mut self.rest);
                let line = String::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())?;
                self.line(line.trim_end_matches(['\n', '\r']));
            }
        }
        Ok(())
    }

    /// The next whole message.
    pub(super) fn next(&mut self) -> Option<Message> {
        self.whole.pop_front()
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            let message = std::mem::take(&mut self.begun);
            if message != Message::default() {
                self.whole.push_back(message);
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.begun.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.begun.event),
            "data" => {
                if !self.begun.data.is_empty() {
                    self.begun.data.push('\n');
                }
                self.begun.data.push_str(value);
            }
            // A comment, or a field of a later version.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, event: &str, data: &str) -> Message {
        Message { id: Some(id.to_owned()), event: event.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn messages_are_whole_however_their_bytes_come() {
        let text = ": hello\n\nid: 1\nevent: started\ndata: {}\n\nid:2\nevent:ended\ndata: a\ndata: b\r\n\n";
        for size in 1..text.len() {
            let mut lines = Lines::default();
            for bytes in text.as_bytes().chunks(size) {
                lines.take_in(bytes).unwrap();
            }
            let told: Vec<_> = std::iter::from_fn(|| lines.next()).collect();
            assert_eq!(told, [message("1", "started", "{}"), message("2", "ended", "a\nb")]);
        }
    }

    #[test]
    fn a_message_without_end_is_refused() {
        let mut lines = Lines::default();
        assert!(lines.take_in(&vec![b'x'; MESSAGE_BYTES_MAX + 1]).is_err());
    }
}
