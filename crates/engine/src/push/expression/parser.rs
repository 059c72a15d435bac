//! Reads an expression, by descending from sums to what stands alone.

use super::{DEPTH_MAX, ExpressionError, NODES_MAX, Node};
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

type Unary = fn(f64) -> f64;
type Binary = fn(f64, f64) -> f64;

const UNARY: [(&str, Unary); 6] = [
    ("sqrt", f64::sqrt),
    ("abs", f64::abs),
    ("exp", f64::exp),
    ("floor", f64::floor),
    ("ceil", f64::ceil),
    ("round", f64::round),
];

const BINARY: [(&str, Binary); 3] = [("pow", f64::powf), ("min", f64::min), ("max", f64::max)];

/// What may stand where a value is due.
const VALUE: &str = "a number, retried, a function or (";

/// As much of an unknown name as an error shows.
const NAME_CHARS_SHOWN: usize = 32;

pub(super) fn parse(text: &str) -> Result<Node, ExpressionError> {
    let mut parser = Parser { text, at: 0, depth: 0, nodes: 0 };
    let root = parser.sum()?;
    match parser.peek() {
        None => Ok(root),
        Some(_) => Err(parser.unexpected("an operator or the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Bytes that were read.
    at: usize,
    depth: usize,
    nodes: usize,
}

impl<'a> Parser<'a> {
    fn sum(&mut self) -> Result<Node, ExpressionError> {
        self.chain(Self::product, &[('+', f64::add), ('-', f64::sub)])
    }

    fn product(&mut self) -> Result<Node, ExpressionError> {
        self.chain(Self::value, &[('*', f64::mul), ('/', f64::div), ('%', f64::rem)])
    }

    /// Operands with operators of one rank between them, from left to right.
    fn chain(
        &mut self,
        operand: fn(&mut Self) -> Result<Node, ExpressionError>,
        operators: &[(char, Binary)],
    ) -> Result<Node, ExpressionError> {
        let mut left = operand(self)?;
        while let Some((_, function)) =
            operators.iter().find(|(sign, _)| self.peek() == Some(*sign))
        {
            self.count()?;
            self.at += 1;
            left = Node::Binary(*function, Box::new(left), Box::new(operand(self)?));
        }
        Ok(left)
    }

    fn value(&mut self) -> Result<Node, ExpressionError> {
        match self.peek() {
            Some('-') => {
                self.count()?;
                let node = self.deeper(|parser| {
                    parser.at += 1;
                    parser.value()
                })?;
                Ok(Node::Unary(f64::neg, Box::new(node)))
            }
            Some('(') => self.deeper(|parser| {
                parser.at += 1;
                let node = parser.sum()?;
                parser.expect(')', ")")?;
                Ok(node)
            }),
            Some(first) if first.is_ascii_digit() => self.number(),
            Some(first) if first.is_ascii_alphabetic() => self.name(),
            _ => Err(self.unexpected(VALUE)),
        }
    }

    fn number(&mut self) -> Result<Node, ExpressionError> {
        self.count()?;
        let start = self.at;
        self.at += self.run(|c| c.is_ascii_digit());
        if self.rest().starts_with('.') {
            self.at += 1;
            let digits = self.run(|c| c.is_ascii_digit());
            if digits == 0 {
                return Err(self.unexpected("a digit"));
            }
            self.at += digits;
        }
        let number = self.text[start..self.at].parse();
        number.map(Node::Number).map_err(|_| self.unexpected("a number"))
    }

    fn name(&mut self) -> Result<Node, ExpressionError> {
        self.count()?;
        let start = self.at;
        let length = self.run(|c| c.is_ascii_alphanumeric() || c == '_');
        let name: &'a str = &self.text[start..start + length];
        if name == "retried" {
            self.at += length;
            return Ok(Node::Retried);
        }
        let unary = UNARY.iter().find(|(known, _)| *known == name);
        let binary = BINARY.iter().find(|(known, _)| *known == name);
        match (unary, binary) {
            (Some((_, function)), _) => self.deeper(|parser| {
                parser.at += length;
                parser.one(*function)
            }),
            (_, Some((_, function))) => self.deeper(|parser| {
                parser.at += length;
                parser.two(*function)
            }),
            _ => Err(ExpressionError::UnknownName {
                at: self.place(),
                name: name.chars().take(NAME_CHARS_SHOWN).collect(),
            }),
        }
    }

    fn one(&mut self, function: Unary) -> Result<Node, ExpressionError> {
        self.expect('(', "(")?;
        let argument = self.sum()?;
        self.expect(')', ")")?;
        Ok(Node::Unary(function, Box::new(argument)))
    }

    fn two(&mut self, function: Binary) -> Result<Node, ExpressionError> {
        self.expect('(', "(")?;
        let first = self.sum()?;
        self.expect(',', "a comma")?;
        let second = self.sum()?;
        self.expect(')', ")")?;
        Ok(Node::Binary(function, Box::new(first), Box::new(second)))
    }

    /// Reads what is nested here, if that is not too deep.
    fn deeper(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Node, ExpressionError>,
    ) -> Result<Node, ExpressionError> {
        if self.depth == DEPTH_MAX {
            return Err(ExpressionError::TooDeep { at: self.place() });
        }
        self.depth += 1;
        let node = read(self);
        self.depth -= 1;
        node
    }

    fn count(&mut self) -> Result<(), ExpressionError> {
        if self.nodes == NODES_MAX {
            return Err(ExpressionError::TooLarge { at: self.place() });
        }
        self.nodes += 1;
        Ok(())
    }

    fn expect(&mut self, sign: char, wanted: &'static str) -> Result<(), ExpressionError> {
        if self.peek() != Some(sign) {
            return Err(self.unexpected(wanted));
        }
        self.at += sign.len_utf8();
        Ok(())
    }

    /// The next character that is no space, which it leaves to be read.
    fn peek(&mut self) -> Option<char> {
        self.at += self.run(|c| c.is_ascii_whitespace());
        self.rest().chars().next()
    }

    /// Bytes of the characters ahead that are all of one sort.
    fn run(&self, is_one: impl Fn(char) -> bool) -> usize {
        let rest = self.rest();
        rest.find(|c| !is_one(c)).unwrap_or(rest.len())
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Which character is next, counted from 1.
    fn place(&self) -> usize {
        self.text[..self.at].chars().count() + 1
    }

    fn unexpected(&self, wanted: &'static str) -> ExpressionError {
        match self.rest().chars().next() {
            Some(found) => ExpressionError::Unexpected { at: self.place(), found, wanted },
            None => ExpressionError::Ends { wanted },
        }
    }
}
