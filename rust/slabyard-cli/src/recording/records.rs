//! The records of one block. See `recorder/format.h` for the encoding.

/// An operation of the program, or a note of the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Malloc {
        object: u64,
        size: u64,
    },
    Calloc {
        object: u64,
        size: u64,
    },
    Aligned {
        object: u64,
        size: u64,
        align_log2: u8,
    },
    Free {
        object: u64,
    },
    /// The stamp of a realloc's record is the time at which the call began.
    Realloc {
        old: u64,
        new: u64,
        took: u64,
        size: u64,
    },
    Failed {
        size: u64,
    },
    /// A note, not an operation: the number of bytes in RAM of the object that the next record
    /// frees or resizes.
    Touched {
        object: u64,
        bytes: u64,
    },
}

/// An operation with its time in ticks of the recorder's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub stamp: u64,
    pub operation: Operation,
}

/// Runs of pages in ascending order: the first page and the number of pages.
pub type Runs = Vec<(u64, u64)>;

/// The reason why a block's payload is malformed, and the offset in the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    pub at: usize,
    pub what: &'static str,
}

/// Decodes the records of a payload, from first to last.
pub struct Records<'a> {
    pub(super) payload: &'a [u8],
    pub(super) at: usize,
    stamp: u64,
    address: u64,
    has_stacks: bool,
    stack: u32,
}

/// Decodes a payload of pairs of numbers. `None` in place of a number: it has more than 64 bits.
fn pairs(
    payload: &[u8],
    mut pair: impl FnMut(u64, u64) -> Option<(u64, u64)>,
) -> Result<Vec<(u64, u64)>, Malformed> {
    let mut numbers = Records::new(payload, 0, false);
    let mut all = Vec::new();
    while numbers.at < payload.len() {
        let start = numbers.at;
        let mut next = || pair(numbers.varint()?, numbers.varint()?).ok_or("numbers run over");
        all.push(next().map_err(|what| Malformed { at: start, what })?);
    }
    Ok(all)
}

impl<'a> Records<'a> {
    /// Reads the records of a block whose header has the stamp `stamp`. `has_stacks`: each allocation
    /// has a stack.
    pub fn new(payload: &'a [u8], stamp: u64, has_stacks: bool) -> Self {
        Records {
            payload,
            at: 0,
            stamp,
            address: 0,
            has_stacks,
            stack: 0,
        }
    }

    /// The stack of the record that was read last; 0: it has none, or it is not known.
    pub fn stack(&self) -> u32 {
        self.stack
    }

    /// Decodes a block of the pages that were not in RAM.
    pub fn runs(payload: &[u8]) -> Result<Runs, Malformed> {
        let mut end = 0u64;
        pairs(payload, |distance, pages| {
            let first = end.checked_add(distance)?;
            end = first.checked_add(pages)?;
            Some((first, pages))
        })
    }

    /// Decodes the samples of a process that was born at `birth`: the time, and the bytes in RAM.
    pub fn samples(payload: &[u8], birth: u64) -> Result<Vec<(u64, u64)>, Malformed> {
        let mut now = birth;
        pairs(payload, |elapsed, bytes| {
            now = now.checked_add(elapsed)?;
            Some((now, bytes))
        })
    }

    /// The next record; `None` after the last.
    #[inline]
    pub fn next(&mut self) -> Result<Option<Record>, Malformed> {
        if self.at == self.payload.len() {
            return Ok(None);
        }
        let start = self.at;
        let record = self.decode().and_then(|record| {
            self.stack = self.stack_of(record.operation)?;
            Ok(record)
        });
        record
            .map(Some)
            .map_err(|what| Malformed { at: start, what })
    }

    #[inline]
    fn decode(&mut self) -> Result<Record, &'static str> {
        let head = self.byte()?;
        let shift = if head & 8 != 0 { 4 } else { 0 };
        let align_log2 = self.align(head)?;
        let ticks = self.varint()?;
        self.stamp = self.stamp.checked_add(ticks).ok_or("time runs over")?;
        let object = self.address_after(self.address, shift)?;
        let operation = match head & 7 {
            0 => Operation::Malloc {
                object,
                size: self.varint()?,
            },
            1 => Operation::Free { object },
            2 => {
                let new = self.address_after(object, shift)?;
                let took = self.varint()?;
                let size = self.varint()?;
                self.address = new;
                let stamp = self.stamp;
                self.stamp = stamp.checked_add(took).ok_or("time runs over")?;
                let operation = Operation::Realloc {
                    old: object,
                    new,
                    took,
                    size,
                };
                return Ok(Record { stamp, operation });
            }
            3 => Operation::Calloc {
                object,
                size: self.varint()?,
            },
            4 => Operation::Aligned {
                object,
                size: self.varint()?,
                align_log2,
            },
            5 => Operation::Failed {
                size: self.varint()?,
            },
            6 => Operation::Touched {
                object,
                bytes: self.varint()?,
            },
            _ => return Err("an operation that does not exist"),
        };
        self.address = object;
        Ok(Record {
            stamp: self.stamp,
            operation,
        })
    }

    #[inline]
    fn stack_of(&mut self, operation: Operation) -> Result<u32, &'static str> {
        let has_none = matches!(
            operation,
            Operation::Free { .. } | Operation::Touched { .. }
        );
        if !self.has_stacks || has_none {
            return Ok(0);
        }
        u32::try_from(self.varint()?).map_err(|_| "a stack's number of more than 32 bits")
    }

    /// Reads the alignment of an aligned allocation, the only kind that has one. Its logarithm is
    /// at most 63.
    #[inline]
    fn align(&mut self, head: u8) -> Result<u8, &'static str> {
        let short = head >> 4;
        if short == 0 {
            return Ok(3);
        }
        if head & 7 != 4 {
            return Err("an alignment where none belongs");
        }
        let long = if short < 15 {
            u64::from(short)
        } else {
            self.varint()?
        };
        if long > 60 {
            return Err("an alignment beyond the address space");
        }
        Ok(long as u8 + 3)
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, &'static str> {
        let byte = *self
            .payload
            .get(self.at)
            .ok_or("a record that is cut off")?;
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    pub(super) fn varint(&mut self) -> Result<u64, &'static str> {
        let first = self.byte()?;
        if first < 128 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 127);
        let mut shift = 7;
        loop {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                return Err("a number of more than 64 bits");
            }
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    /// Bytes behind their number.
    pub(super) fn text(&mut self) -> Result<&'a [u8], &'static str> {
        let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
        let bytes = self.payload[self.at..].get(..length);
        let bytes = bytes.ok_or("a text that is cut off")?;
        self.at += length;
        Ok(bytes)
    }

    #[inline]
    fn address_after(&mut self, from: u64, shift: u32) -> Result<u64, &'static str> {
        let zigzag = self.varint()?;
        let distance = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        Ok(from.wrapping_add((distance << shift) as u64))
    }
}
