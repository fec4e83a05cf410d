//! The names of functions that a process made at run time, and the addresses of calls in them. See
//! `recorder/format.h` for the encoding.

use super::records::{Malformed, Records};
use super::writer::put_varint;
use std::collections::HashMap;

/// Names by address. Many addresses may have one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    names: Vec<String>,
    of: HashMap<u64, u32>,
}

impl Made {
    /// Adds a name with its addresses. An address keeps the first name that it gets.
    pub fn add(&mut self, name: String, addresses: impl IntoIterator<Item = u64>) {
        let number = self.names.len() as u32;
        for address in addresses {
            self.of.entry(address).or_insert(number);
        }
        self.names.push(name);
    }

    /// Adds the names that these addresses have there, if they have none here.
    pub fn add_from(&mut self, there: &Made, addresses: &[u64]) {
        let mut numbers = HashMap::new();
        for address in addresses {
            let (Some(&number), false) = (there.of.get(address), self.of.contains_key(address))
            else {
                continue;
            };
            let here = *numbers.entry(number).or_insert_with(|| {
                self.names.push(there.names[number as usize].clone());
                self.names.len() as u32 - 1
            });
            self.of.insert(*address, here);
        }
    }

    /// The function with the call at this address.
    pub fn name(&self, address: u64) -> Option<&str> {
        let number = *self.of.get(&address)?;
        Some(&self.names[number as usize])
    }

    /// The number of names.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut of_names = vec![Vec::new(); self.names.len()];
        for (&address, &number) in &self.of {
            of_names[number as usize].push(address);
        }
        let (mut out, mut before) = (Vec::new(), 0u64);
        for (name, addresses) in self.names.iter().zip(&mut of_names) {
            put_varint(&mut out, name.len() as u64);
            out.extend(name.as_bytes());
            put_varint(&mut out, addresses.len() as u64);
            addresses.sort_unstable();
            for &address in addresses.iter() {
                let moved = address.wrapping_sub(before) as i64;
                put_varint(&mut out, ((moved << 1) ^ (moved >> 63)) as u64);
                before = address;
            }
        }
        out
    }

    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut numbers = Records::new(payload, 0, false);
        let (mut made, mut address) = (Made::default(), 0u64);
        while numbers.at < payload.len() {
            let at = numbers.at;
            let entry = entry(&mut numbers, &mut address);
            let (name, addresses) = entry.map_err(|what| Malformed { at, what })?;
            made.add(name, addresses);
        }
        Ok(made)
    }
}

fn entry(numbers: &mut Records, address: &mut u64) -> Result<(String, Vec<u64>), &'static str> {
    let name = String::from_utf8_lossy(numbers.text()?).into_owned();
    let count = numbers.varint()?;
    let mut addresses = Vec::new();
    for _ in 0..count {
        let zigzag = numbers.varint()?;
        let moved = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        *address = address.wrapping_add(moved as u64);
        addresses.push(*address);
    }
    Ok((name, addresses))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> Made {
        let mut made = Made::default();
        made.add("first".into(), [0x7f00_0000_1000, 0x1000]);
        made.add("second".into(), [u64::MAX]);
        made.add("without an address".into(), []);
        made
    }

    #[test]
    fn names_are_read_as_they_were_written() {
        assert_eq!(Made::decode(&made().encode()).unwrap(), made());
        assert_eq!(made().name(0x1000), Some("first"));
        assert_eq!((made().name(0x1001), made().len()), (None, 3));
        assert_eq!(Made::decode(&[]).unwrap(), Made::default());
    }

    #[test]
    fn names_of_others_are_added_where_there_are_none() {
        let mut names = Made::default();
        names.add("own".into(), [0x1000]);
        let addresses = [0x1000, 0x2000, 0x7f00_0000_1000, u64::MAX];
        names.add_from(&made(), &addresses);
        let found = addresses.map(|address| names.name(address));
        assert_eq!(found, [Some("own"), None, Some("first"), Some("second")]);
        assert_eq!(names.len(), 3);
        names.add_from(&made(), &addresses);
        assert_eq!(names.len(), 3);
    }

    #[test]
    fn damaged_names_are_refused() {
        let whole = made().encode();
        for length in 1..whole.len() {
            // Each name ends where the next one may begin.
            if let Ok(part) = Made::decode(&whole[..length]) {
                assert!(part.len() < 3, "{length}");
            }
        }
        let cut = Made::decode(&[9, b'a']).unwrap_err();
        assert!(cut.what.contains("cut off"), "{}", cut.what);
        assert!(Made::decode(&[1, b'a', 0xff, 0xff, 0xff, 0xff, 0x0f]).is_err());
    }
}
