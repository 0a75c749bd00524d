//! first_agent greets whom it is told to greet, and counts how often it did.

mod runloop;

/// Adds one to how often a name was greeted, in the knowledge base.
fn count(name: &str) -> Result<u64, runloop::Error> {
    let times = match runloop::kb_get("events", name) {
        Ok(value) => times_in(&value) + 1,
        Err(e) if e.errno == runloop::NOT_EXIST => 1,
        Err(e) => return Err(e),
    };
    runloop::kb_put("events", name, times.to_string().as_bytes())?;
    Ok(times)
}

fn times_in(value: &[u8]) -> u64 {
    String::from_utf8_lossy(value).parse().unwrap_or(0)
}

fn main() {
    let name = std::env::args().nth(1).unwrap_or_else(|| "world".to_string());
    match count(&name) {
        Ok(times) => {
            println!("hello, {} ({})", name, times);
            if let Err(e) = runloop::result(&times.to_string()) {
                eprintln!("{}", e);
            }
        }
        // A denial is no reason to end.
        Err(e) => println!("hello, {}; I cannot count: {}", name, e.why()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_stored_is_a_number() {
        assert_eq!(super::times_in(b"41"), 41);
        assert_eq!(super::times_in(b"many"), 0);
    }
}
