// A patch as a WASM module: proxies wait two seconds at most for a connection to any cluster. docs/contract.md is what it is made from. It needs no crates,
// and rustc 1.63 is enough.
use std::io::{self, ErrorKind, Read, Write};

const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

// Fields of protobuf messages: a number, and bytes, which texts and messages are too.
fn varint(b: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        b.push(n as u8 | 0x80);
        n >>= 7;
    }
    b.push(n as u8);
}

fn number(b: &mut Vec<u8>, field: u64, n: u64) {
    varint(b, field << 3);
    varint(b, n);
}

fn bytes(b: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(b, field << 3 | 2);
    varint(b, value.len() as u64);
    b.extend_from_slice(value);
}

/// A field that was read: its bytes with and without the tag, or its number.
struct Field<'a> {
    id: u64,
    number: u64,
    value: &'a [u8],
    raw: &'a [u8],
}

fn read_varint(at: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    for shift in (0..64).step_by(7) {
        let (&b, rest) = at.split_first()?;
        *at = rest;
        n |= ((b & 0x7f) as u64) << shift;
        if b < 0x80 {
            return Some(n);
        }
    }
    None
}

/// Reads all fields of a message; None if the bytes are none.
fn fields(mut at: &[u8]) -> Option<Vec<Field>> {
    let mut all = Vec::new();
    while !at.is_empty() {
        let whole = at;
        let tag = read_varint(&mut at)?;
        let mut number = 0;
        let size = match tag & 7 {
            0 => {
                number = read_varint(&mut at)?;
                0
            }
            1 => 8,
            2 => read_varint(&mut at)?,
            5 => 4,
            _ => return None,
        };
        if size > at.len() as u64 {
            return None;
        }
        let (value, rest) = at.split_at(size as usize);
        at = rest;
        all.push(Field {
            id: tag >> 3,
            number,
            value,
            raw: &whole[..whole.len() - rest.len()],
        });
    }
    Some(all)
}

fn cost(size: usize) -> u64 {
    size.max(256) as u64
}

struct Session {
    credit: u64,
    over: bool,
}

impl Session {
    /// Sends a FromPlugin message of one field. What costs credit waits for it.
    fn say(&mut self, field: u64, body: &[u8], free: bool) -> io::Result<()> {
        let mut m = Vec::new();
        bytes(&mut m, field, body);
        if !free {
            while self.credit < cost(m.len()) && !self.over {
                self.step()?;
            }
            self.credit -= cost(m.len()).min(self.credit);
        }
        let mut out = io::stdout();
        out.write_all(&(m.len() as u32).to_le_bytes())?;
        out.write_all(&m)?;
        out.flush()
    }

    /// Deals with one message.
    fn step(&mut self) -> io::Result<()> {
        let mut size = [0; 4];
        io::stdin().read_exact(&mut size)?;
        let mut frame = vec![0; u32::from_le_bytes(size) as usize];
        io::stdin().read_exact(&mut frame)?;
        let message = fields(&frame).unwrap_or_default();
        let (id, value) = message.first().map_or((0, &[][..]), |f| (f.id, f.value));
        let mut b = Vec::new();
        match id {
            1 => return self.ready(),                // Hello
            2 => self.credit += first_number(value), // Credit
            4 => self.over = true,                   // Drain
            3 => {
                // Ping
                number(&mut b, 1, first_number(value));
                return self.say(4, &b, true);
            }
            _ => {
                if id == 14 {
                    self.patch(value)?; // Patch
                }
                number(&mut b, 1, cost(frame.len())); // what is dealt with gives credit back
                return self.say(3, &b, true);
            }
        }
        Ok(())
    }

    fn ready(&mut self) -> io::Result<()> {
        let (mut b, mut of) = (Vec::new(), Vec::new());
        bytes(&mut of, 1, CLUSTER.as_bytes());
        number(&mut b, 1, 1);
        bytes(&mut b, 2, b"timeout-rust");
        bytes(&mut b, 3, b"1");
        number(&mut b, 4, 4);
        bytes(&mut b, 8, &of);
        self.say(1, &b, true)
    }

    fn patch(&mut self, given: &[u8]) -> io::Result<()> {
        let given = fields(given).unwrap_or_default();
        let mut b = Vec::new();
        number(&mut b, 1, given.iter().find(|f| f.id == 1).map_or(0, |f| f.number));
        let resources: Option<Vec<_>> = given.iter().filter(|f| f.id == 5).map(|f| cluster(f.value)).collect();
        match resources {
            Some(all) => all.iter().for_each(|r| bytes(&mut b, 2, r)),
            None => bytes(&mut b, 4, b"the bytes of a cluster can't be read"),
        }
        self.say(16, &b, false)
    }
}

fn first_number(message: &[u8]) -> u64 {
    fields(message).and_then(|all| all.first().map(|f| f.number)).unwrap_or(0)
}

/// Makes a Resource {name, bytes} with connect_timeout (4) of 2 s of one without.
fn cluster(given: &[u8]) -> Option<Vec<u8>> {
    let (mut resource, mut body) = (Vec::new(), Vec::new());
    for f in fields(given)? {
        match f.id {
            1 => bytes(&mut resource, 1, f.value),
            2 => fields(f.value)?
                .iter()
                .filter(|f| f.id != 4)
                .for_each(|f| body.extend_from_slice(f.raw)),
            _ => {}
        }
    }
    bytes(&mut body, 4, b"\x08\x02"); // Duration{seconds: 2}
    bytes(&mut resource, 2, &body);
    Some(resource)
}

fn main() {
    let mut session = Session {
        credit: 16 << 20,
        over: false,
    };
    while !session.over {
        if let Err(e) = session.step() {
            // At the end of standard input the core is gone.
            std::process::exit(if e.kind() == ErrorKind::UnexpectedEof { 0 } else { 1 });
        }
    }
}
