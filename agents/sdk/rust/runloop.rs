//! The guest half of the interface runloop_v1 of rlp, for Rust.
//!
//! One file without dependencies: `mod runloop;`. Every function here that reaches
//! the host is exactly one import, and the linker keeps an import only if something
//! calls it: the imports of a module are the list of what it could ever do. Files,
//! arguments, variables and standard input are std's as usual, at the host's
//! absolute paths.
//!
//! A denial is an [`Error`] and never the end of the agent: say what could not be
//! done, do the rest, exit 0.
//!
//!     if let Err(e) = runloop::kb_put("contacts", id, value) {
//!         println!("{} is not kept: {}", id, e.why());
//!     }
//!
//! Requests and responses that are JSON are texts: [`quote`], [`member`] and
//! [`string`] do for small ones; a crate such as serde_json reads all.
//! Built for anything but WASI every call is [`UNAVAILABLE`], so that the rest of
//! an agent can be tested by `cargo test`.
#![allow(dead_code, clippy::all)]

use std::fmt;

/// The numbers of errors, which are WASI's.
pub const TOO_BIG: i32 = 1; // the request is larger than the host takes
pub const DENIED: i32 = 2; // the policy does not allow it
pub const CONFLICT: i32 = 6; // another revision is stored
pub const BUDGET: i32 = 19; // a budget, rate or limit is used up
pub const FAULT: i32 = 21; // a pointer outside of the memory
pub const INVALID: i32 = 28; // a malformed request
pub const IO: i32 = 29; // the host could not do it
pub const NOT_EXIST: i32 = 44; // no such thing
pub const NO_SYS: i32 = 52; // the host does not know this call
pub const UNAVAILABLE: i32 = 58; // not available here
pub const TIMEOUT: i32 = 73; // took too long

/// What the host answered instead of a response. All text is the host's, and may
/// be empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    pub op: &'static str,   // the import, such as "kb_put"
    pub errno: i32,         // such as DENIED
    pub capability: String, // what was required, such as "kb:write:contacts"
    pub reason: String,     // the audit log's word, such as "domain_not_permitted"
    pub hint: String,       // what could be done about it
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// In a few words: "denied (domain_not_permitted)".
    pub fn why(&self) -> String {
        let word = match self.errno {
            TOO_BIG => "too big",
            DENIED => "denied",
            CONFLICT => "revision conflict",
            BUDGET => "budget exhausted",
            FAULT => "bad address",
            INVALID => "invalid request",
            IO => "i/o error",
            NOT_EXIST => "does not exist",
            NO_SYS => "no such call",
            UNAVAILABLE => "unavailable",
            TIMEOUT => "timed out",
            _ => "error",
        };
        let refused = self.errno == DENIED || self.errno == BUDGET;
        if !self.hint.is_empty() && !refused {
            return format!("{}: {}", word, self.hint);
        }
        if !self.reason.is_empty() {
            return format!("{} ({})", word, self.reason);
        }
        word.to_string()
    }

    fn broken(op: &'static str, what: &str) -> Error {
        Error { op, errno: IO, capability: String::new(), reason: String::new(), hint: what.to_string() }
    }

    /// The error of a call, with the host's account of it.
    fn read(op: &'static str, errno: i32) -> Error {
        let account = rest(4096);
        let text = String::from_utf8_lossy(&account);
        let get = |key| member(&text, key).and_then(string).unwrap_or_default();
        Error { op, errno, capability: get("capability"), reason: get("reason"), hint: get("hint") }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.capability.is_empty() {
            return write!(f, "{}: {}", self.op, self.why());
        }
        write!(f, "{} {}: {}", self.op, self.capability, self.why())
    }
}

impl std::error::Error for Error {}

macro_rules! imports {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        #[cfg(target_family = "wasm")]
        mod host {
            #[link(wasm_import_module = "runloop_v1")]
            extern "C" {
                $(pub fn $name($($arg: $type),*) -> $result;)*
            }
        }
        #[cfg(not(target_family = "wasm"))]
        mod host {
            $(pub unsafe fn $name($(_: $type),*) -> $result { -58 })*
        }
    };
}

imports! {
    response_read(out: *mut u8, room: usize) -> i32;
    net_http(r: *const u8, rn: usize, b: *const u8, bn: usize, out: *mut u8, room: usize) -> i64;
    kb_get(d: *const u8, dn: usize, k: *const u8, kn: usize, out: *mut u8, room: usize) -> i64;
    kb_put(d: *const u8, dn: usize, k: *const u8, kn: usize, v: *const u8, vn: usize, out: *mut u8, room: usize) -> i64;
    kb_cas(d: *const u8, dn: usize, k: *const u8, kn: usize, v: *const u8, vn: usize, r: *const u8, rn: usize,
        out: *mut u8, room: usize) -> i64;
    kb_delete(d: *const u8, dn: usize, k: *const u8, kn: usize, out: *mut u8, room: usize) -> i64;
    kb_list(d: *const u8, dn: usize, p: *const u8, pn: usize, out: *mut u8, room: usize) -> i64;
    kb_search(d: *const u8, dn: usize, q: *const u8, qn: usize, out: *mut u8, room: usize) -> i64;
    secret_handle(id: *const u8, n: usize, out: *mut u8, room: usize) -> i64;
    model_complete(r: *const u8, rn: usize, out: *mut u8, room: usize) -> i64;
    model_embed(r: *const u8, rn: usize, out: *mut u8, room: usize) -> i64;
    exec_run(r: *const u8, rn: usize, i: *const u8, n: usize, out: *mut u8, room: usize) -> i64;
    mcp_call(r: *const u8, rn: usize, out: *mut u8, room: usize) -> i64;
    agent_launch(r: *const u8, rn: usize, out: *mut u8, room: usize) -> i64;
    turn_next(out: *mut u8, room: usize) -> i64;
    time_now(out: *mut u8, room: usize) -> i64;
    log(l: *const u8, ln: usize, m: *const u8, mn: usize, out: *mut u8, room: usize) -> i64;
    result(j: *const u8, n: usize, out: *mut u8, room: usize) -> i64;
}

/// Reads up to so many bytes of what the last call did not hand over.
fn rest(most: usize) -> Vec<u8> {
    let mut all = vec![0; most];
    let mut have = 0;
    while have < most {
        // The host writes at most most - have bytes there.
        let got = unsafe { host::response_read(all[have..].as_mut_ptr(), most - have) };
        if got <= 0 {
            break;
        }
        have += got as usize;
    }
    all.truncate(have);
    all
}

/// Makes one call and returns its response.
fn call(op: &'static str, invoke: impl FnOnce(*mut u8, usize) -> i64) -> Result<Vec<u8>> {
    let mut out = vec![0; 4096];
    let n = invoke(out.as_mut_ptr(), out.len());
    if n < 0 {
        return Err(Error::read(op, if n < -1000 { IO } else { -n as i32 }));
    }
    let n = n as usize;
    if n > out.len() {
        out = rest(n);
    }
    if n > out.len() {
        return Err(Error::broken(op, "the response ended early"));
    }
    out.truncate(n);
    Ok(out)
}

fn text(op: &'static str, response: Vec<u8>) -> Result<String> {
    String::from_utf8(response).map_err(|_| Error::broken(op, "a response that is no UTF-8"))
}

fn number(op: &'static str, response: Vec<u8>) -> Result<u64> {
    text(op, response)?.parse().map_err(|_| Error::broken(op, "a response that is no decimal number"))
}

/// Splits a response of two parts: the length of the first in four bytes, the
/// first, the rest.
fn parts(op: &'static str, response: Vec<u8>) -> Result<(String, Vec<u8>)> {
    let broken = || Error::broken(op, "a response that is not framed");
    if response.len() < 4 {
        return Err(broken());
    }
    let size = u32::from_le_bytes([response[0], response[1], response[2], response[3]]) as usize;
    if size > response.len() - 4 {
        return Err(broken());
    }
    Ok((text(op, response[4..4 + size].to_vec())?, response[4 + size..].to_vec()))
}

macro_rules! invoke {
    ($name:ident $(, $arg:expr)*) => {
        // Each pointer is that of a slice which outlives the call.
        call(stringify!($name), |out, room| unsafe { host::$name($($arg.as_ptr(), $arg.len(),)* out, room) })
    };
}

/// The value that the operator gave a parameter of the manifest's [params]. Of
/// kinds "dir" and "file" it is an absolute path.
pub fn param(name: &str) -> Option<String> {
    std::env::var(format!("RLP_PARAM_{}", name.to_ascii_uppercase())).ok()
}

/// The value at a key. Needs kb_read of the domain.
pub fn kb_get(domain: &str, key: &str) -> Result<Vec<u8>> {
    invoke!(kb_get, domain, key)
}

/// Stores a value, whatever is there, and returns its revision. Needs kb_write of
/// the domain, as do kb_cas and kb_delete.
pub fn kb_put(domain: &str, key: &str, value: &[u8]) -> Result<u64> {
    number("kb_put", invoke!(kb_put, domain, key, value)?)
}

/// Stores a value if the stored revision is this one (0: nothing is there);
/// otherwise the error is CONFLICT.
pub fn kb_cas(domain: &str, key: &str, value: &[u8], revision: u64) -> Result<u64> {
    let revision = revision.to_string();
    number("kb_cas", invoke!(kb_cas, domain, key, value, revision)?)
}

/// Removes a key.
pub fn kb_delete(domain: &str, key: &str) -> Result<()> {
    invoke!(kb_delete, domain, key).map(drop)
}

/// The keys that begin with a prefix: JSON [{key,revision,size}]. Needs kb_read of
/// the domain.
pub fn kb_list(domain: &str, prefix: &str) -> Result<String> {
    text("kb_list", invoke!(kb_list, domain, prefix)?)
}

/// Up to so many values that suit a text best: JSON [{key,score,snippet}]. Needs
/// kb_read of the domain.
pub fn kb_search(domain: &str, words: &str, most: u32) -> Result<String> {
    let query = format!("{{\"text\":{},\"k\":{}}}", quote(words), most);
    text("kb_search", invoke!(kb_search, domain, query)?)
}

/// Makes one request, JSON {method,url,headers,timeout_ms}, and returns JSON
/// {status,headers} and the body. Needs net of the host.
pub fn net_http(request: &str, body: &[u8]) -> Result<(String, Vec<u8>)> {
    parts("net_http", invoke!(net_http, request, body)?)
}

/// Runs a program, JSON {argv,env,cwd,timeout_ms}, and returns JSON
/// {exit_code,timed_out,stdout_bytes,stderr_bytes} and stdout, then stderr. Needs
/// exec of the program.
pub fn exec_run(request: &str, input: &[u8]) -> Result<(String, Vec<u8>)> {
    parts("exec_run", invoke!(exec_run, request, input)?)
}

/// The handle of a secret, "rlsec_...". Needs secrets of the id.
pub fn secret_handle(id: &str) -> Result<String> {
    text("secret_handle", invoke!(secret_handle, id)?)
}

/// Asks a model: JSON {model,messages,max_tokens,...} for JSON
/// {text,tool_calls,usage,model,finish_reason,cached}. Needs model.
pub fn model_complete(request: &str) -> Result<String> {
    text("model_complete", invoke!(model_complete, request)?)
}

/// Turns texts into vectors: JSON {model,input} for JSON {vectors,usage,model,cached}.
/// Needs model.
pub fn model_embed(request: &str) -> Result<String> {
    text("model_embed", invoke!(model_embed, request)?)
}

/// Calls a tool of an MCP server: JSON {server,tool,arguments} for JSON
/// {content,structuredContent,isError}. Needs mcp of the server.
pub fn mcp_call(request: &str) -> Result<String> {
    text("mcp_call", invoke!(mcp_call, request)?)
}

/// Runs another agent: JSON {agent,input,allow,deny,limits} for the report of its
/// run. Needs agents of the agent.
pub fn agent_launch(request: &str) -> Result<String> {
    text("agent_launch", invoke!(agent_launch, request)?)
}

/// Ends the turn and waits for the next input; NOT_EXIST after the last one.
pub fn turn_next() -> Result<Vec<u8>> {
    invoke!(turn_next)
}

/// The time in nanoseconds since 1970. Needs time.
pub fn time_now() -> Result<u64> {
    number("time_now", invoke!(time_now)?)
}

/// Puts a message in the operator's log; levels are debug, info, warn and error.
/// It needs nothing.
pub fn log(level: &str, message: &str) -> Result<()> {
    invoke!(log, level, message).map(drop)
}

/// Makes one JSON value what the agent returns; a later one takes its place. It
/// needs nothing.
pub fn result(json: &str) -> Result<()> {
    invoke!(result, json).map(drop)
}

/// A JSON string, quotes included.
pub fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The text of a member of a JSON object; None where there is none.
pub fn member<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let mut rest = json.trim_start().strip_prefix('{')?;
    loop {
        let name = value(rest.trim_start())?;
        let after = rest.trim_start()[name.len()..].trim_start().strip_prefix(':')?.trim_start();
        let found = value(after)?;
        if name.starts_with('"') && name[1..name.len() - 1] == *key {
            return Some(found);
        }
        rest = after[found.len()..].trim_start().strip_prefix(',')?;
    }
}

/// The JSON value that a text begins with.
fn value(json: &str) -> Option<&str> {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for (i, c) in json.char_indices() {
        let closed = match c {
            _ if escaped => {
                escaped = false;
                false
            }
            '\\' if quoted => {
                escaped = true;
                false
            }
            '"' => {
                quoted = !quoted;
                !quoted
            }
            _ if quoted => false,
            '{' | '[' => {
                depth += 1;
                false
            }
            '}' | ']' if depth > 0 => {
                depth -= 1;
                true
            }
            ',' | '}' | ']' | ' ' | '\n' | '\r' | '\t' if depth == 0 => return if i > 0 { Some(&json[..i]) } else { None },
            _ => false,
        };
        if closed && depth == 0 {
            return Some(&json[..i + c.len_utf8()]);
        }
    }
    if depth == 0 && !quoted && !json.is_empty() {
        return Some(json);
    }
    None
}

/// What the text of a JSON string stands for; None where it is no string.
pub fn string(json: &str) -> Option<String> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    let mut units = Vec::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => match chars.next()? {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => {
                    let digits: String = chars.by_ref().take(4).collect();
                    units.push(u16::from_str_radix(&digits, 16).ok()?);
                    continue;
                }
                other => other,
            },
            c => c,
        };
        units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
    }
    Some(String::from_utf16_lossy(&units))
}
