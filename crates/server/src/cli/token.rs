//! `tollgate token new`: a token, shown once, and what the server is told of it.

use super::{Exit, NewTokenArguments, output};
use crate::access::{Namespace, Roles, TokenHash, TokenSpec, Tokens};
use crate::token::Token;
use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

/// Random bytes of a token: nobody guesses so many, and so a plain hash of them gives nothing away.
const RANDOM_BYTES: usize = 32;

/// What tokens begin with, so that one that leaked is known for what it is.
const PREFIX: &str = "tollgate_";

pub(super) fn new(arguments: &NewTokenArguments) -> anyhow::Result<Exit> {
    let token = random().context("the system gives no random bytes")?;
    let spec = TokenSpec {
        name: arguments.name.clone(),
        hash: TokenHash::of(&Token::new(&token)?),
        roles: Roles::of(arguments.roles.iter().copied()),
        namespace: arguments.namespace.as_deref().map(Namespace::new).transpose()?,
    };
    // What is printed is something that a server takes.
    Tokens::new(vec![spec.clone()])?;
    let value = json!({
        "token": token,
        "name": spec.name,
        "hash": spec.hash.to_string(),
        "roles": spec.roles.iter().map(|role| role.as_str()).collect::<Vec<_>>(),
        "namespace": spec.namespace.as_ref().map(Namespace::as_str),
    });
    let mut lines = vec![token, String::new()];
    lines.push("# The token is above, and is shown once. For the configuration file:".to_owned());
    lines.extend(section(&spec));
    output::outcome(arguments.json.then_some(&value), &lines);
    Ok(Exit::Done)
}

fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// The token as the configuration file has it.
fn section(spec: &TokenSpec) -> Vec<String> {
    // Texts in JSON are texts in TOML.
    let roles: Vec<_> = spec.roles.iter().map(|role| json!(role.as_str()).to_string()).collect();
    let mut lines = vec![
        "[[tokens]]".to_owned(),
        format!("name = {}", json!(spec.name)),
        format!("hash = \"{}\"", spec.hash),
        format!("roles = [{}]", roles.join(", ")),
    ];
    if let Some(namespace) = &spec.namespace {
        lines.push(format!("namespace = {}", json!(namespace.as_str())));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Role;

    #[test]
    fn a_new_token_is_long_and_never_the_same() {
        let [one, two] = [(); 2].map(|()| random().unwrap());
        assert_eq!(one.len(), PREFIX.len() + 43);
        assert_ne!(one, two);
        assert!(Token::new(&one).is_ok());
    }

    #[test]
    fn the_lines_for_the_file_do_not_hold_the_token() {
        let spec = TokenSpec {
            name: "ci".to_owned(),
            hash: TokenHash::of(&Token::new("abc").unwrap()),
            roles: Roles::of([Role::Work, Role::Enqueue]),
            namespace: Some(Namespace::new("a \"b\"").unwrap()),
        };
        let lines = section(&spec);
        assert_eq!(lines[..2], ["[[tokens]]", "name = \"ci\""]);
        assert!(lines[2].starts_with("hash = \"sha256:ba7816bf8f01cfea"), "{}", lines[2]);
        assert_eq!(lines[3..], [r#"roles = ["enqueue", "work"]"#, r#"namespace = "a \"b\"""#]);
    }
}
