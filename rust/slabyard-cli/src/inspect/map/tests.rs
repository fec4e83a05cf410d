use super::collect::{collect, Picture, FRAME, PAGE, PAGES, UNIT};
use super::{pack, page, png, svg};
use crate::inspect::heap::*;
use crate::inspect::image::{Image, Mapping, Source};
use base64::prelude::{Engine, BASE64_STANDARD};
use std::fmt::Write;
use std::io::Read;
use std::ops::Range;

const START: u64 = 0x7f00_0000_0000;

/// The picture needs no bytes of the process, only its lists and resident pages.
struct Nothing;

impl Source for Nothing {
    fn read(&self, _: u64, _: &mut [u8]) -> bool {
        false
    }
}

fn image(resident: &[Range<u64>]) -> Image {
    let mapping = Mapping {
        range: 0x1000..1 << 47,
        name: String::new(),
        offset: 0,
        writable: true,
        share: 1.0,
    };
    Image::new(Box::new(Nothing), vec![mapping], resident)
}

fn cache(name: &str, kind: Kind, size: u64, slot: u64) -> Cache {
    Cache {
        address: 0x1000,
        client: 1,
        name: name.into(),
        kind,
        size,
        slot,
        zone: 0,
        refills: 0,
        flushes: 0,
        limits_hit: 0,
        retired: 0,
        has_handles: false,
        moves: false,
    }
}

fn slab(cache: usize, first: u64, slots: u64, watermark: u64, free: Vec<u64>) -> Content {
    Content::Slab(Slab {
        cache,
        first,
        slots,
        free_count: free.iter().map(|word| u64::from(word.count_ones())).sum(),
        watermark,
        free: free.into(),
    })
}

fn run(from: u64, units: u64, content: Content) -> Run {
    Run {
        range: from..from + units * UNIT,
        content,
    }
}

fn area(from: u64, frames: u64, runs: Vec<Run>) -> Area {
    Area {
        range: from..from + frames * FRAME,
        runs,
        kept: false,
    }
}

/// A chunk, a large span, and a span that is kept. One cache has the name that is given.
fn small(name: &str) -> Heap {
    let unit = |number: u64| START + number * UNIT;
    let mut free = vec![0; 16];
    free[15] = u64::MAX; // never used
    free[1] = 0b1010;
    let mut sparse = vec![u64::MAX; 16];
    sparse[0] = u64::MAX - 1; // only slot 0 is out
    let piece = |from: u64, bytes: u64, out| Piece {
        start: unit(3) + from,
        bytes,
        out,
    };
    let chunk = vec![
        run(unit(1), 1, slab(0, unit(1), 1024, 960, free)),
        run(unit(2), 1, slab(0, unit(2), 1024, 1024, sparse)),
        run(
            unit(3),
            1,
            Content::Mixed(vec![
                piece(0, 208, true),
                piece(208, 48, true),
                piece(256, UNIT - 256, false),
            ]),
        ),
        run(unit(4), 3, Content::Span),
        run(unit(8), 2, slab(1, unit(8) + 512, 6, 6, vec![0b01_0000])),
        run(unit(12), 1, Content::Unknown),
    ];
    let large = vec![run(START + FRAME, 65, Content::Span)];
    let mut kept = area(START + 4 * FRAME, 1, Vec::new());
    kept.kept = true;
    let waiting = |address, holder| Waiting {
        address,
        client: 0,
        holder,
    };
    Heap {
        file: "libslabyard.so".into(),
        caches: vec![
            cache("orders", Kind::Program, 60, 64),
            cache(name, Kind::Heap, 20_000, 20_480),
            cache("heap-208", Kind::Size, 208, 208),
            cache("unused", Kind::Size, 1024, 1024),
        ],
        areas: vec![
            area(START, 1, chunk),
            area(START + FRAME, 2, large),
            area(START + 3 * FRAME, 1, Vec::new()),
            kept,
        ],
        waiting: vec![
            waiting(unit(1) + 64, Holder::Thread(0)),
            waiting(unit(1) + 128, Holder::Depot),
        ],
        ..Heap::default()
    }
}

fn small_picture(name: &str) -> Picture {
    let resident = [
        START + UNIT..START + 3 * UNIT - 4 * PAGE,
        START + 3 * UNIT..START + 10 * UNIT,
        START + FRAME..START + FRAME + 65 * UNIT,
        START + 4 * FRAME..START + 4 * FRAME + 3 * PAGE,
    ];
    let mut picture = collect(&image(&resident), &[small(name)], PAGE);
    picture.pid = 4711;
    picture.program = "server".into();
    picture
}

struct Packed {
    bytes: Vec<u8>,
    at: usize,
}

impl Packed {
    fn of(page: &str) -> Packed {
        let text = page.split("id=\"packed\" type=\"text/plain\">").nth(1);
        let text = text.unwrap().split('<').next().unwrap();
        let packed = BASE64_STANDARD.decode(text).unwrap();
        let mut bytes = Vec::new();
        let mut from = flate2::read::ZlibDecoder::new(&packed[..]);
        from.read_to_end(&mut bytes).unwrap();
        Packed { bytes, at: 0 }
    }

    fn number(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.bytes[self.at];
            self.at += 1;
            value |= u64::from(byte & 127) << shift;
            shift += 7;
            if byte < 128 {
                return value;
            }
        }
    }

    fn numbers<const N: usize>(&mut self) -> [u64; N] {
        std::array::from_fn(|_| self.number())
    }

    fn states(&mut self) -> String {
        let length = self.number() as usize;
        let end = self.at + length;
        let mut text = String::new();
        while self.at < end {
            let entry = self.number();
            let state = ["live", "waiting", "free", "unused"][(entry & 3) as usize];
            let _ = write!(text, " {state} {}", entry >> 2);
        }
        text
    }

    /// All of it in words, without units and pages that hold no memory.
    fn in_words(mut self) -> String {
        let mut text = String::new();
        let mut next = 0;
        let frames: Vec<u64> = (0..self.number())
            .map(|_| {
                let number = next + self.number();
                next = number + 1;
                number
            })
            .collect();
        next = 0;
        for number in 0..self.number() {
            let [skipped, units, group, first, live, waiting, free] = self.numbers();
            let start = next + skipped;
            next = start + units;
            let _ = writeln!(
                text,
                "run {}: {:#x}, {units} units, group {group}, first {first}, objects {live} {waiting} \
                 {free}",
                number + 1,
                start * UNIT
            );
        }
        for frame in &frames {
            let units: Vec<[u64; 3]> = (0..64).map(|_| self.numbers()).collect();
            let mut unit = 0;
            for same in units.chunk_by(|a, b| a == b) {
                if same[0] != [0; 3] {
                    let at = frame * FRAME + unit * UNIT;
                    let _ = writeln!(text, "{} units at {at:#x}: {:?}", same.len(), same[0]);
                }
                unit += same.len() as u64;
            }
        }
        for frame in &frames {
            let pages = &self.bytes[self.at..self.at + PAGES];
            self.at += PAGES;
            let mut page = 0;
            for same in pages.chunk_by(|a, b| a == b) {
                if same[0] != 0 {
                    let at = frame * FRAME + page * PAGE;
                    let _ = writeln!(text, "{} pages at {at:#x}: {}", same.len(), same[0]);
                }
                page += same.len() as u64;
            }
        }
        loop {
            match self.number() {
                0 => break,
                run => {
                    let _ = writeln!(text, "slots of run {run}:{}", self.states());
                }
            }
        }
        assert_eq!(self.at, self.bytes.len());
        text
    }
}

/// Compares a text with a snapshot file; with SNAPSHOTS=write, writes the file instead.
fn same_as(file: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/inspect/map")
        .join(file);
    if std::env::var_os("SNAPSHOTS").is_some_and(|what| what == "write") {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, expected, "{file}: SNAPSHOTS=write takes the new one");
}

/// The page's own part: without style, script and packed data, a line for each element.
fn body(page: &str) -> String {
    let from = page.find("<main>").unwrap();
    let end = page.find("<script id=\"packed\"").unwrap();
    page[from..end].replace("><", ">\n<")
}

#[test]
fn the_pictures_of_a_small_heap_are_as_before() {
    let picture = small_picture("boards");
    let page = page::render(&picture);
    same_as("page.snapshot", &(body(&page) + "\n"));
    same_as("packed.snapshot", &Packed::of(&page).in_words());
    let svg = svg::render(&picture);
    let from = svg.find("</style>").unwrap();
    same_as("svg.snapshot", &svg[from..]);
}

/// The width of a PNG picture, and its pixels: red, green, blue.
fn pixels_of(file: &[u8]) -> (usize, Vec<[u8; 3]>) {
    let mut reader = ::png::Decoder::new(std::io::Cursor::new(file))
        .read_info()
        .unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    assert_eq!(info.color_type, ::png::ColorType::Rgb);
    let pixels = bytes.chunks_exact(3).map(|pixel| pixel.try_into().unwrap());
    (info.width as usize, pixels.collect())
}

/// Its places are those of the SVG (svg.snapshot), times 1.5.
#[test]
fn the_png_shows_what_the_svg_shows() {
    let (width, pixels) = pixels_of(&png::render(&small_picture("boards")).unwrap());
    assert_eq!((width, pixels.len()), (1440, 1440 * 1099));
    let at = |x: f64, y: f64| pixels[(y * 1.5) as usize * width + (x * 1.5) as usize];
    let cell = |column: f64, row: f64| at(16.0 + 28.0 * column, 128.0 + 28.0 * row);
    let (paper, live, absent) = ([255; 3], [0x2f, 0x62, 0xc4], [0xef, 0xed, 0xe7]);
    assert_eq!(at(5.0, 300.0), paper);
    // Units of the first chunk: the header, one that is mostly live, one of which a quarter is not in
    // memory, and those of a large object. There is a gap between two.
    assert_eq!(cell(0.5, 0.5), absent);
    assert_eq!(cell(1.5, 0.5), live);
    assert_eq!(cell(1.5, 0.96), paper);
    assert_eq!(cell(2.5, 0.2), [0xf5, 0x9d, 0x1e]);
    assert_eq!(cell(2.5, 0.8), absent);
    assert_eq!(cell(4.5, 0.5), live);
    // The key, and the bar of the cache that is named first.
    assert_eq!(at(84.0, 112.0), live);
    assert_eq!(at(350.0, 642.0), live);
    let dark = |left: f64, top: f64, right: f64, end: f64| {
        let rows = (top * 1.5) as usize..(end * 1.5) as usize;
        let row = |y: usize| &pixels[y * width..][(left * 1.5) as usize..(right * 1.5) as usize];
        rows.flat_map(row).filter(|pixel| pixel[0] < 0x60).count()
    };
    for (left, base, right) in [
        (16.0, 26.0, 300.0),
        (16.0, 52.0, 400.0),
        (16.0, 646.0, 120.0),
    ] {
        assert!(dark(left, base - 12.0, right, base) > 100, "text at {base}");
    }
    assert!(
        dark(236.0, 634.0, 294.0, 646.0) > 100,
        "the size ends at its bar"
    );
    assert_eq!(dark(296.0, 634.0, 303.0, 646.0), 0);
}

/// Letters that the tool has no bitmaps of are question marks.
#[test]
fn the_png_takes_names_of_all_letters() {
    let draw = |name: &str| pixels_of(&png::render(&small_picture(name)).unwrap());
    assert_eq!(draw("\u{6f22}\u{202e}"), draw("??"));
    assert_ne!(draw("r\u{e9}sum\u{e9}"), draw("r?sum?"));
    draw(&"\u{1f4be}".repeat(1 << 16));
}

#[test]
fn parts_add_up_to_the_resident_memory() {
    let picture = small_picture("boards");
    let resident = (9 + 65) * UNIT - 4 * PAGE + 3 * PAGE;
    assert_eq!(picture.bytes().resident(), resident);
    let frames: u64 = 4 * FRAME;
    assert_eq!(picture.frames.len() as u64 * FRAME, frames);
    assert_eq!(picture.absent_bytes, FRAME);
}

/// A program chooses the names of its caches.
#[test]
fn names_are_text_wherever_they_stand() {
    let names = [
        "</script><script>alert(1)</script>",
        "<!--<script>",
        "\"><img src=x onerror=alert(1)>",
        "' onclick='alert(1)",
        "]]></style><svg onload=alert(1)>&amp;",
        "\u{2028}\\u003c/script>",
    ];
    let usual = page::render(&small_picture("usual"));
    let tags = |page: &str| {
        let (body, rest) = page.split_at(page.find("<script id=\"packed\"").unwrap());
        (body.matches('<').count(), rest.matches('<').count())
    };
    for name in names {
        let mut picture = small_picture(name);
        picture.program = name.into();
        let page = page::render(&picture);
        assert_eq!(tags(&page), tags(&usual), "{name}: another element");
        let head = page.split("id=\"head\" type=\"application/json\">").nth(1);
        let head = head.unwrap().split("</script>").next().unwrap();
        let head: serde_json::Value = serde_json::from_str(head).unwrap();
        assert_eq!(head["groups"][1]["name"], name);
        let svg = svg::render(&picture);
        let parsed = roxmltree::Document::parse(&svg).unwrap();
        let usual = svg::render(&small_picture("usual"));
        let elements = |text: &roxmltree::Document| text.descendants().count();
        assert_eq!(
            elements(&parsed),
            elements(&roxmltree::Document::parse(&usual).unwrap())
        );
    }
}

#[test]
fn the_script_makes_no_markup_and_loads_nothing() {
    let page = page::render(&small_picture("usual"));
    assert!(page.contains("default-src 'none'"));
    for word in [
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "http",
    ] {
        let script = page.rsplit("<script>").next().unwrap();
        assert!(!script.contains(word), "{word}");
    }
}

/// A cheap generator of numbers that nothing can compress.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn eight_gib_make_a_small_file() {
    const CHUNKS: u64 = 2048;
    const SLOT: u64 = 512;
    let mut state = 88_172_645_463_325_252;
    let mut heap = Heap {
        caches: vec![cache("orders", Kind::Program, SLOT, SLOT)],
        ..Heap::default()
    };
    let mut resident: Vec<Range<u64>> = Vec::new();
    for chunk in 0..CHUNKS {
        let start = START + chunk * FRAME;
        let slabs = (1..64).map(|unit| {
            let at = start + unit * UNIT;
            let free = (0..2).map(|_| random(&mut state)).collect();
            run(at, 1, slab(0, at, UNIT / SLOT, UNIT / SLOT, free))
        });
        heap.areas.push(area(start, 1, slabs.collect()));
        let pages = (0..PAGES as u64).map(|page| start + page * PAGE);
        let pages = pages.filter(|_| !random(&mut state).is_multiple_of(16));
        resident.extend(pages.map(|at| at..at + PAGE));
    }
    let picture = collect(&image(&resident), &[heap], PAGE);
    assert_eq!(picture.frames.len() as u64, CHUNKS);
    let (page, svg) = (page::render(&picture).len(), svg::render(&picture).len());
    assert!(page < 10 << 20, "the page has {page} bytes");
    assert!(svg < 4 << 20, "the picture has {svg} bytes");
    let png = png::render(&picture).unwrap().len();
    assert!(png < 1 << 20, "the PNG has {png} bytes");
    // With smaller objects there is no room for all slots.
    let most = page / 4 * 3 - (1 << 20);
    let some = pack::pack_within(&picture, most).unwrap();
    assert!(some.slabs_without_slots > 0 && some.slabs_without_slots < some.slabs);
    let packed = some.text.len() / 4 * 3;
    assert!(packed < most + (64 << 10), "{packed} bytes, not {most}");
}

/// The lists of a process that is read while it runs, or that is broken, may be nonsense.
#[test]
fn torn_lists_make_a_picture_too() {
    let mut heap = small("boards");
    heap.areas.push(area(START + 7 * UNIT, 2, Vec::new()));
    heap.areas
        .push(area(START + 5, 1, vec![run(START + 99, 3, Content::Span)]));
    heap.areas.push(Area {
        range: START..u64::MAX,
        runs: vec![run(START + UNIT, 1, slab(0, 3, u64::MAX, 0, Vec::new()))],
        kept: true,
    });
    heap.areas.push(Area {
        range: Range {
            start: u64::MAX - 5,
            end: 4,
        },
        runs: Vec::new(),
        kept: false,
    });
    heap.areas.sort_by_key(|area| area.range.start);
    let resident = [START - 5 * PAGE..START + 3, START + UNIT..START + 20 * UNIT];
    let picture = collect(&image(&resident), &[heap], PAGE);
    assert!(picture.bytes().resident() <= 25 * UNIT);
    page::render(&picture);
    svg::render(&picture);
    png::render(&picture).unwrap();
}

#[test]
fn an_empty_heap_makes_a_picture_too() {
    let picture = collect(&image(&[]), &[Heap::default()], PAGE);
    page::render(&picture);
    svg::render(&picture);
    png::render(&picture).unwrap();
}
