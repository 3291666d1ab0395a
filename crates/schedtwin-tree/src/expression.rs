// SPDX-License-Identifier: GPL-2.0-or-later
//! Whole numbers computed from a machine, for files of options: `threads > 1`, `capacity * 1024 / largest_capacity`.
//!
//! ```text
//! choice = compared [ "?" choice ":" choice ]
//! compared = sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=") sum ]
//! sum = product { ("+" | "-") product }        product = unary { ("*" | "/" | "%") unary }
//! unary = [ "-" | "!" ] ( number | name | name "(" choice { "," choice } ")" | "(" choice ")" )
//! ```
//!
//! Functions: `min`, `max`, `log2` (of the next lower power of two; of less than 1: 0). Numbers have 64 bits and wrap; what is
//! divided by 0 is 0.

use schedtwin_input::did_you_mean_or;

/// The deepest nesting.
const DEPTH_MAX: u32 = 32;
/// The longest text: operators of one precedence nest without brackets, one for every two characters.
const BYTES_MAX: usize = 1000;

/// A computation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// A number.
    Number(i64),
    /// A property of the machine or of a part of it, by its place in the list of names.
    Name(usize),
    /// An operator between two.
    Both(Operator, Box<(Expression, Expression)>),
    /// The second if the first is not 0, else the third.
    Choice(Box<(Expression, Expression, Expression)>),
    /// `log2`.
    Log2(Box<Expression>),
}

/// What is done with two numbers.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    Different,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Minimum,
    Maximum,
}

impl Expression {
    /// Reads a text that may use these names.
    ///
    /// # Errors
    /// In words: what is wrong with it, and what would be right.
    pub(crate) fn read(text: &str, names: &[&str]) -> Result<Expression, (String, String)> {
        if text.len() > BYTES_MAX {
            return Err((format!("it is longer than {BYTES_MAX} bytes"), "split it".into()));
        }
        let mut reader = Reader { rest: text.trim_start(), names, depth: 0 };
        let expression = reader.choice()?;
        match reader.rest {
            "" => Ok(expression),
            rest => Err(unexpected(rest)),
        }
    }

    /// Its value, with the values of the names.
    pub fn value(&self, values: &[i64]) -> i64 {
        match self {
            Expression::Number(number) => *number,
            Expression::Name(at) => values[*at],
            Expression::Both(operator, of) => operator.of(of.0.value(values), of.1.value(values)),
            Expression::Choice(of) if of.0.value(values) != 0 => of.1.value(values),
            Expression::Choice(of) => of.2.value(values),
            Expression::Log2(of) => of.value(values).max(1).ilog2().into(),
        }
    }
}

impl Operator {
    fn of(self, a: i64, b: i64) -> i64 {
        match self {
            Operator::Add => a.wrapping_add(b),
            Operator::Subtract => a.wrapping_sub(b),
            Operator::Multiply => a.wrapping_mul(b),
            Operator::Divide if b == 0 => 0,
            Operator::Divide => a.wrapping_div(b),
            Operator::Remainder if b == 0 => 0,
            Operator::Remainder => a.wrapping_rem(b),
            Operator::Equal => (a == b).into(),
            Operator::Different => (a != b).into(),
            Operator::Less => (a < b).into(),
            Operator::AtMost => (a <= b).into(),
            Operator::Greater => (a > b).into(),
            Operator::AtLeast => (a >= b).into(),
            Operator::Minimum => a.min(b),
            Operator::Maximum => a.max(b),
        }
    }
}

fn unexpected(rest: &str) -> (String, String) {
    let message = match rest {
        "" => "it ends too early".to_string(),
        rest => format!("`{rest}` is not expected here"),
    };
    (message, "an expression is made of numbers, names, + - * / %, comparisons and ? :".into())
}

type Read = Result<Expression, (String, String)>;

/// What is still to be read.
struct Reader<'t> {
    rest: &'t str,
    names: &'t [&'t str],
    depth: u32,
}

impl Reader<'_> {
    fn take(&mut self, word: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(word) else { return false };
        self.rest = rest.trim_start();
        true
    }

    /// The first of some operators that stands here, the longer ones first.
    fn operator(&mut self, of: &[(&str, Operator)]) -> Option<Operator> {
        of.iter().find(|(word, _)| self.take(word)).map(|(_, operator)| *operator)
    }

    fn expect(&mut self, word: &str) -> Result<(), (String, String)> {
        if self.take(word) { Ok(()) } else { Err(unexpected(self.rest)) }
    }

    fn choice(&mut self) -> Read {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(("it is nested too deeply".into(), "split it".into()));
        }
        let condition = self.compared()?;
        let read = if self.take("?") {
            let yes = self.choice()?;
            self.expect(":")?;
            Expression::Choice(Box::new((condition, yes, self.choice()?)))
        } else {
            condition
        };
        self.depth -= 1;
        Ok(read)
    }

    fn compared(&mut self) -> Read {
        const COMPARISONS: [(&str, Operator); 6] = [
            ("==", Operator::Equal),
            ("!=", Operator::Different),
            ("<=", Operator::AtMost),
            (">=", Operator::AtLeast),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        let left = self.sum()?;
        match self.operator(&COMPARISONS) {
            Some(operator) => Ok(both(operator, left, self.sum()?)),
            None => Ok(left),
        }
    }

    fn sum(&mut self) -> Read {
        let mut left = self.product()?;
        while let Some(operator) = self.operator(&[("+", Operator::Add), ("-", Operator::Subtract)])
        {
            left = both(operator, left, self.product()?);
        }
        Ok(left)
    }

    fn product(&mut self) -> Read {
        const PRODUCTS: [(&str, Operator); 3] =
            [("*", Operator::Multiply), ("/", Operator::Divide), ("%", Operator::Remainder)];
        let mut left = self.unary()?;
        while let Some(operator) = self.operator(&PRODUCTS) {
            left = both(operator, left, self.unary()?);
        }
        Ok(left)
    }

    fn unary(&mut self) -> Read {
        if self.take("-") {
            return Ok(both(Operator::Subtract, Expression::Number(0), self.operand()?));
        }
        if self.take("!") {
            return Ok(both(Operator::Equal, self.operand()?, Expression::Number(0)));
        }
        self.operand()
    }

    fn operand(&mut self) -> Read {
        if self.take("(") {
            let inner = self.choice()?;
            self.expect(")")?;
            return Ok(inner);
        }
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if word.is_empty() {
            return Err(unexpected(self.rest));
        }
        self.rest = rest.trim_start();
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let number = word.parse().map(Expression::Number);
            return number.map_err(|_| unexpected(word));
        }
        if self.take("(") {
            return self.function(word);
        }
        let at = self.names.iter().position(|name| *name == word);
        at.map(Expression::Name).ok_or_else(|| {
            let help = did_you_mean_or(word, self.names.iter().copied(), || {
                Some(format!("there are {}", self.names.join(", ")))
            });
            (format!("there is no `{word}` here"), help.unwrap_or_default())
        })
    }

    fn function(&mut self, name: &str) -> Read {
        let first = self.choice()?;
        let result = match name {
            "log2" => Expression::Log2(Box::new(first)),
            "min" | "max" => {
                self.expect(",")?;
                let operator = if name == "min" { Operator::Minimum } else { Operator::Maximum };
                both(operator, first, self.choice()?)
            }
            _ => {
                let message = format!("there is no function `{name}`");
                return Err((message, "there are min, max and log2".into()));
            }
        };
        self.expect(")")?;
        Ok(result)
    }
}

fn both(operator: Operator, a: Expression, b: Expression) -> Expression {
    Expression::Both(operator, Box::new((a, b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_computed() {
        let names = ["cpu", "threads"];
        for (text, expected) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * -3", -9),
            ("cpu % 4 == 3 ? 10 : 20", 10),
            ("threads > 1", 1),
            ("!threads", 0),
            ("min(cpu, 5) + max(1, threads) - log2(9)", 4),
            ("cpu / 0 + cpu % 0", 0),
            ("10 - 3 - 2", 5),
        ] {
            let read = Expression::read(text, &names).unwrap();
            assert_eq!(read.value(&[7, 2]), expected, "{text}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (text, expected) in [
            ("", "it ends too early"),
            ("1 2", "`2` is not expected here"),
            ("thread", "there is no `thread` here"),
            ("min(1)", "`)` is not expected here"),
            ("sum(1, 2)", "there is no function `sum`"),
            ("9x", "`9x` is not expected here"),
        ] {
            let fault = Expression::read(text, &["threads"]).unwrap_err();
            assert_eq!(fault.0, expected, "{text}");
        }
        let fault = Expression::read("thread", &["threads"]).unwrap_err();
        assert_eq!(fault.1, "did you mean `threads`?");
        assert!(Expression::read(&"(".repeat(99), &[]).unwrap_err().0.contains("deeply"));
        let long = format!("0{}", "+1".repeat(1_000_000));
        assert_eq!(Expression::read(&long, &[]).unwrap_err().0, "it is longer than 1000 bytes");
    }
}
