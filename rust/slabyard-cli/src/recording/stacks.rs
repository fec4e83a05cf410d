//! The stacks of a recording's allocations: nodes of a tree, and the modules that their addresses lie
//! in. See `recorder/format.h` for the encoding.

use super::records::{Malformed, Records};

/// One frame of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The number of the node that called it; 0: it is an outermost one.
    pub caller: u32,
    /// The address behind the call. An outermost node with the address 0 stands for frames that could
    /// not be found.
    pub address: u64,
}

/// Where a file's code lay in the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    pub start: u64,
    pub end: u64,
    /// What is subtracted from an address to get that in the file.
    pub bias: u64,
    pub build_id: Vec<u8>,
    /// Empty for memory of no file, unless the program gave it a name.
    pub path: String,
    /// The number of the first node that it holds for.
    pub since: u64,
}

/// Decodes the nodes of a block, the first of which has the number `first`.
pub fn nodes(payload: &[u8], first: u64) -> Result<Vec<Node>, Malformed> {
    let mut numbers = Records::new(payload, 0, false);
    let (mut nodes, mut address) = (Vec::new(), 0u64);
    while numbers.at < payload.len() {
        let start = numbers.at;
        let number = first + nodes.len() as u64;
        let node = node(&mut numbers, number, address);
        let node = node.map_err(|what| Malformed { at: start, what })?;
        address = node.address;
        nodes.push(node);
    }
    Ok(nodes)
}

fn node(numbers: &mut Records, number: u64, previous: u64) -> Result<Node, &'static str> {
    let distance = numbers.varint()?;
    let zigzag = numbers.varint()?;
    let caller = match distance {
        0 => 0,
        distance => number
            .checked_sub(distance)
            .filter(|&caller| caller > 0)
            .ok_or("a stack whose caller does not exist")?,
    };
    let moved = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
    Ok(Node {
        caller: u32::try_from(caller).map_err(|_| "more than 2^32 stacks")?,
        address: previous.wrapping_add(moved as u64),
    })
}

impl Module {
    /// Whether its code is of no file, so the program made it at run time.
    pub fn is_made(&self) -> bool {
        const SHARED: [&str; 3] = ["/memfd:", "/dev/zero", "/SYSV"];
        let path = self.path.as_str();
        !path.starts_with('/') || SHARED.iter().any(|begin| path.starts_with(begin))
    }

    pub fn decode(payload: &[u8], since: u64) -> Result<Self, Malformed> {
        let mut numbers = Records::new(payload, 0, false);
        let module = Self::read(&mut numbers, since);
        let at = numbers.at;
        let module = module.map_err(|what| Malformed { at, what })?;
        if at != payload.len() {
            let what = "bytes behind a module";
            return Err(Malformed { at, what });
        }
        Ok(module)
    }

    fn read(numbers: &mut Records, since: u64) -> Result<Self, &'static str> {
        let start = numbers.varint()?;
        let length = numbers.varint()?;
        Ok(Module {
            start,
            end: start
                .checked_add(length)
                .ok_or("a module beyond the address space")?,
            bias: numbers.varint()?,
            build_id: numbers.text()?.to_vec(),
            path: String::from_utf8_lossy(numbers.text()?).into_owned(),
            since,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::ReadError;
    use super::super::tests::{encode, file_of, malloc, Sketch};
    use super::super::writer::{put_varint, write_block, write_finish, Head};
    use super::super::*;
    use super::*;

    fn node(out: &mut Vec<u8>, distance: u64, moved: i64) {
        put_varint(out, distance);
        put_varint(out, ((moved << 1) ^ (moved >> 63)) as u64);
    }

    fn three_nodes() -> Vec<u8> {
        let mut payload = Vec::new();
        node(&mut payload, 0, 0x1000);
        node(&mut payload, 1, 0x20);
        node(&mut payload, 2, -0x10);
        payload
    }

    /// A file of one process with these blocks behind its first one.
    fn with_blocks(blocks: &[(Head, &[u8])], operations: u64) -> Result<Recording, ReadError> {
        let mut file = file_of(&[Sketch {
            ended: false,
            ..Sketch::default()
        }]);
        file.truncate(file.len() - BLOCK_HEADER_BYTES - FINISH_BYTES);
        for &(head, payload) in blocks {
            write_block(&mut file, head, payload).unwrap();
        }
        write_finish(&mut file, 1, blocks.len() as u64 + 1, operations).unwrap();
        Recording::from_bytes(file, Strictness::Whole)
    }

    fn head(kind: u8, records: u32, stamp: u64) -> Head {
        Head {
            kind,
            records,
            stamp,
            ..Head::default()
        }
    }

    fn refusal(blocks: &[(Head, &[u8])]) -> String {
        match with_blocks(blocks, 0) {
            Ok(_) => panic!("it is accepted"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn stacks_and_modules_are_read_as_they_were_written() {
        let mut module = Vec::new();
        for number in [0x400_000, 0x3000, 0x400_000, 2] {
            put_varint(&mut module, number);
        }
        module.extend([0xab, 0xcd, 4]);
        module.extend(b"/bin");
        let mut records = encode(&[malloc(5, 0x10, 8)], 5);
        put_varint(&mut records, 3);
        let blocks = [
            (head(KIND_MODULE, 1, 1), &module[..]),
            (head(KIND_STACKED, 1, 5), &records[..]),
            (head(KIND_STACKS, 3, 1), &three_nodes()[..]),
        ];
        let recording = with_blocks(&blocks, 1).unwrap_or_else(|error| panic!("{error}"));
        let process = &recording.processes[0];
        let of = |caller, address| Node { caller, address };
        assert_eq!(
            process.stacks,
            [of(0, 0x1000), of(1, 0x1020), of(1, 0x1010)]
        );
        assert_eq!(process.modules[0].build_id, [0xab, 0xcd]);
        assert_eq!(
            (process.modules[0].end, process.modules[0].since),
            (0x403_000, 1)
        );
        let mut records = recording.records(&process.threads[0].blocks[0]);
        assert!(records.next().unwrap().is_some());
        assert_eq!(records.stack(), 3);
        assert!(records.next().unwrap().is_none() && process.has_stacks);
    }

    #[test]
    fn damaged_stacks_are_refused() {
        let nodes = three_nodes();
        let gap = refusal(&[(head(KIND_STACKS, 3, 2), &nodes)]);
        assert!(gap.contains("stacks from number 2 after 0"), "{gap}");
        let count = refusal(&[(head(KIND_STACKS, 4, 1), &nodes)]);
        assert!(count.contains("a block of 3 nodes says 4"), "{count}");
        let mut caller = Vec::new();
        node(&mut caller, 1, 5);
        let caller = refusal(&[(head(KIND_STACKS, 1, 1), &caller)]);
        assert!(caller.contains("caller does not exist"), "{caller}");
        let cut = refusal(&[(head(KIND_STACKS, 3, 1), &nodes[..nodes.len() - 1])]);
        assert!(cut.contains("a record that is cut off"), "{cut}");
    }

    #[test]
    fn damaged_modules_are_refused() {
        let mut module = Vec::new();
        for number in [0x1000, 0x1000, 0, 9] {
            put_varint(&mut module, number);
        }
        let cut = refusal(&[(head(KIND_MODULE, 1, 1), &module)]);
        assert!(cut.contains("a text that is cut off"), "{cut}");
        let long = refusal(&[(head(KIND_MODULE, 1, 1), &[1, 1, 1, 0, 0, 7])]);
        assert!(long.contains("bytes behind a module"), "{long}");
    }
}
