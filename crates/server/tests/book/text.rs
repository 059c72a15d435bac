//! Texts that people read, compared without what differs each time.

/// Units of time as commands print them behind a number.
const UNITS: [&str; 7] = ["ns", "us", "ms", "s", "min", "h", "d"];

/// Whether two texts say the same but for numbers, spans of time and the room between words.
pub(crate) fn says_the_same(shown: &str, came: &str) -> bool {
    words(shown) == words(came)
}

/// Whether two texts are the same but for their digits.
pub(crate) fn is_alike(shown: &str, came: &str) -> bool {
    without_digits(shown) == without_digits(came)
}

/// The ids of runs in a text.
pub(crate) fn ids(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().filter(|word| is_id(word))
}

fn is_id(word: &str) -> bool {
    word.len() >= 16 && word.chars().all(|letter| letter.is_ascii_hexdigit())
}

fn words(text: &str) -> Vec<String> {
    let words = text.split_whitespace().filter(|word| !UNITS.contains(word));
    words.map(|word| if is_id(word) { "#".to_owned() } else { without_digits(word) }).collect()
}

/// The text with one `#` for each number, also one that is broken by points.
fn without_digits(text: &str) -> String {
    let mut told = String::new();
    for letter in text.chars() {
        let is_number = letter.is_ascii_digit() || letter == '.' && told.ends_with('#');
        if !is_number {
            told.push(letter);
        } else if !told.ends_with('#') {
            told.push('#');
        }
    }
    told
}

#[test]
fn numbers_and_spans_may_differ_and_words_may_not() {
    assert!(says_the_same("call 7  went\n 1.2 s ago", "call 12 went 99 ms ago"));
    assert!(says_the_same(
        "run 1a1e355bdf652cc68c7f148 began",
        "run 1a1e4b066c49215579320d4 began"
    ));
    assert!(!says_the_same("call 7 went", "call 7 waits"));
    assert!(is_alike("retry after 1789ms", "retry after 7ms"));
    assert!(!is_alike("retry after 1789ms", "retry after 7s"));
}
