//! Short runs of the part `seeds`, with folders of the earlier systems and without. The systems are
//! replaced by tiny ones with the same functions.

use slabyard_seeds::documents::ALL;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const XSLAB: [(&str, &str); 2] = [
    (
        "x/base/slab.h",
        "#include <stddef.h>
         typedef struct xSlab xSlab;
         typedef struct xSlabMt xSlabMt;
         xSlab *xSlabCreate(size_t size, size_t align, size_t chunk);
         void *xSlabAlloc(xSlab *pool);
         void xSlabFree(xSlab *pool, void *slot);
         xSlabMt *xSlabMtCreate(size_t size, size_t align, size_t chunk);
         void *xSlabMtAlloc(xSlabMt *pool);
         void xSlabMtFree(xSlabMt *pool, void *slot);",
    ),
    (
        "x/base/slab.c",
        "#include <x/base/slab.h>
         #include <stdlib.h>
         xSlab *xSlabCreate(size_t size, size_t align, size_t chunk) { return malloc(1); }
         void *xSlabAlloc(xSlab *pool) { return malloc(64); }
         void xSlabFree(xSlab *pool, void *slot) { free(slot); }
         xSlabMt *xSlabMtCreate(size_t size, size_t align, size_t chunk) { return malloc(1); }
         void *xSlabMtAlloc(xSlabMt *pool) { return malloc(64); }
         void xSlabMtFree(xSlabMt *pool, void *slot) { free(slot); }",
    ),
];

const MAGAZINE_SLAB: [(&str, &str); 2] = [
    (
        "src/slab.h",
        "#include <stddef.h>
         #include <stdint.h>
         #define SLAB_NO_MAGAZINES 4
         struct slab_cache;
         struct slab_cache *slab_cache_create(const char *name, size_t size, size_t align,
                                              uint32_t flags, void (*ctor)(void *),
                                              void (*dtor)(void *));
         void *slab_alloc(struct slab_cache *cache);
         void slab_free(struct slab_cache *cache, void *object);",
    ),
    (
        "src/slab.c",
        "#include \"slab.h\"
         #include <stdlib.h>
         struct slab_cache *slab_cache_create(const char *name, size_t size, size_t align,
                                              uint32_t flags, void (*ctor)(void *),
                                              void (*dtor)(void *)) { return malloc(1); }
         void *slab_alloc(struct slab_cache *cache) { return malloc(64); }
         void slab_free(struct slab_cache *cache, void *object) { free(object); }",
    ),
];

const USERLAND_SLAB_HEADER: (&str, &str) = (
    "src/slab.h",
    "#include <stddef.h>
     struct Objs_cache { int ready; };
     int slab_allocator_init(void);
     struct Objs_cache *objs_cache_init(struct Objs_cache *cache, size_t size, void (*ctor)(void *));
     void *objs_cache_alloc(struct Objs_cache *cache);",
);

/// Objects have 1,000 bytes each, whatever size was asked for.
const USERLAND_SLAB: [(&str, &str); 2] = [
    USERLAND_SLAB_HEADER,
    (
        "src/slab.c",
        "#include \"slab.h\"
         #include <stdlib.h>
         int slab_allocator_init(void) { return 1; }
         struct Objs_cache *objs_cache_init(struct Objs_cache *cache, size_t size,
                                            void (*ctor)(void *)) { return cache; }
         void *objs_cache_alloc(struct Objs_cache *cache) { return malloc(1000); }",
    ),
];

const ZNS_SLAB: [(&str, &str); 2] = [
    (
        "include/slab_alloc.h",
        "#include <stdbool.h>
         #include <stdint.h>
         typedef struct SlabAllocator SlabAllocator;
         typedef uint64_t SlabHandle;
         SlabAllocator *slab_allocator_create(void);
         void *alloc_obj(SlabAllocator *slabs, uint32_t size, SlabHandle *handle);
         bool free_obj(SlabAllocator *slabs, SlabHandle handle);",
    ),
    (
        "src/slab_alloc.c",
        "#include <slab_alloc.h>
         #include <stdlib.h>
         SlabAllocator *slab_allocator_create(void) { return malloc(1); }
         void *alloc_obj(SlabAllocator *slabs, uint32_t size, SlabHandle *handle) {
             void *object = malloc(size);
             *handle = (SlabHandle)object;
             return object;
         }
         bool free_obj(SlabAllocator *slabs, SlabHandle handle) {
             free((void *)handle);
             return true;
         }",
    ),
];

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Two quick rounds of some rows, kept in `out`.
fn run(only: &str, originals: &[&Path], out: &Path) -> Output {
    let originals = originals
        .iter()
        .flat_map(|folder| [Path::new("--original"), folder]);
    Command::new(env!("CARGO_BIN_EXE_slabyard-seeds"))
        .args(["seeds", "--quick", "--repeats=2", "--only", only, "--out"])
        .arg(out.join("found"))
        .args(originals)
        .output()
        .unwrap()
}

/// Values by row, metric and contender.
type Found = BTreeMap<(String, String, String), Vec<f64>>;

fn read(out: &Path) -> Found {
    let mut found = Found::new();
    let text = fs::read_to_string(out.join("found.csv")).unwrap();
    for line in text.lines().skip(1) {
        let fields: Vec<String> = line.split(',').map(str::to_owned).collect();
        let [row, metric, who, _, value] = <[String; 5]>::try_from(fields).unwrap();
        let values = found.entry((row, metric, who)).or_default();
        values.push(value.parse().unwrap());
    }
    found
}

fn values<'a>(found: &'a Found, row: &str, metric: &str, who: &str) -> Option<&'a Vec<f64>> {
    found.get(&(row.to_owned(), metric.to_owned(), who.to_owned()))
}

#[test]
fn every_figure_of_the_documents_is_measured() {
    let out = tempfile::tempdir().unwrap();
    let only = "nexus-slab/churn/32,nexus-slab/free-lifo/1024,nexus-slab-2/alloc/64,magazine,userland,xslab,zns";
    let output = run(only, &[], out.path());
    assert!(output.status.success(), "{output:?}");
    let found = read(out.path());
    for document in &ALL {
        for row in document.rows {
            let name = document.full_name(row);
            if document.is_rust() && !only.split(',').any(|one| one == name) {
                continue;
            }
            for figure in row.figures {
                let of = |who| values(&found, &name, figure.metric, who);
                for who in ["slabyard", row.peer] {
                    let values = of(who).unwrap_or_else(|| panic!("{name} of {who}"));
                    assert_eq!(values.len(), 2, "{name} of {who}");
                    assert!(
                        values.iter().all(|&value| value >= 0.0),
                        "{name}: {values:?}"
                    );
                }
                assert_eq!(of("original").is_some(), document.is_rust(), "{name}");
            }
        }
    }
    let text = fs::read_to_string(out.path().join("found.txt")).unwrap();
    let losses = text.find("Where Slabyard loses").unwrap();
    assert!(losses < text.find("`xslab/pair`").unwrap(), "{text}");
}

#[test]
fn systems_are_recognised_built_and_measured() {
    let out = tempfile::tempdir().unwrap();
    let systems: [(&str, &[(&str, &str)]); 4] = [
        ("a", &XSLAB),
        ("b", &MAGAZINE_SLAB),
        ("c", &USERLAND_SLAB),
        ("d", &ZNS_SLAB),
    ];
    let folders = systems.map(|(name, files)| {
        let folder = out.path().join(name);
        write(&folder, files);
        folder
    });
    let only = "xslab/pair,xslab/threads-2,magazine-slab/steady,magazine-slab/bulk,\
                userland-slab/memory-8,zns-slab";
    let output = run(
        only,
        &folders.each_ref().map(|folder| folder.as_path()),
        out.path(),
    );
    assert!(output.status.success(), "{output:?}");
    let found = read(out.path());
    for (row, metric) in [
        ("xslab/pair", "ns"),
        ("xslab/threads-2", "ns"),
        ("magazine-slab/steady", "ns"),
        ("magazine-slab/bulk-no-magazines", "free"),
        ("zns-slab/latency", "alloc p99"),
    ] {
        let original = values(&found, row, metric, "original");
        assert_eq!(original.map(Vec::len), Some(2), "{row}");
    }
    // 1,000 bytes for each object, and its pointer. Slabyard has less, so this is no loss.
    let row = ("userland-slab/memory-8", "MiB");
    let original = values(&found, row.0, row.1, "original").unwrap();
    assert!(original.iter().all(|&mib| mib > 950.0), "{original:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (losses, others) = text.split_once("claimed figures:").unwrap();
    assert!(!losses.contains("| `userland-slab/memory-8`"), "{text}");
    assert!(others.contains("| `userland-slab/memory-8`"), "{text}");
}

#[test]
fn a_system_that_fails_is_said_and_the_others_are_measured() {
    let out = tempfile::tempdir().unwrap();
    write(out.path(), &USERLAND_SLAB);
    write(
        out.path(),
        &[(
            "src/slab.c",
            "#include \"slab.h\"
             int slab_allocator_init(void) { return 0; }
             struct Objs_cache *objs_cache_init(struct Objs_cache *cache, size_t size,
                                                void (*ctor)(void *)) { return 0; }
             void *objs_cache_alloc(struct Objs_cache *cache) { return 0; }",
        )],
    );
    let output = run("userland-slab/memory-8", &[out.path()], out.path());
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stdout).unwrap();
    let failure = "FAILED: userland-slab/memory-8 of original: exit status: 1 no cache";
    assert!(text.contains(failure), "{text}");
    let found = read(out.path());
    assert!(values(&found, "userland-slab/memory-8", "MiB", "original").is_none());
    assert_eq!(
        values(&found, "userland-slab/memory-8", "MiB", "slabyard").map(Vec::len),
        Some(2)
    );
}

#[test]
fn what_cannot_be_used_is_refused() {
    let out = tempfile::tempdir().unwrap();
    let complaint = |only: &str, originals: &[&Path]| {
        let output = run(only, originals, out.path());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(!out.path().join("found.csv").exists());
        String::from_utf8(output.stderr).unwrap()
    };
    let unknown = complaint("nonsense", &[]);
    assert!(unknown.contains("no row has such a name"), "{unknown}");

    let empty = out.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let none = complaint("xslab", &[&empty]);
    assert!(none.contains("empty is none of the four systems"), "{none}");
    assert!(none.contains("xSlabCreate in x/base/slab.h"), "{none}");

    let [one, other] = ["one", "other"].map(|name| out.path().join(name));
    write(&one, &XSLAB);
    write(&other, &XSLAB);
    let twice = complaint("xslab", &[&one, &other]);
    assert!(twice.contains("are both xslab"), "{twice}");

    let broken = out.path().join("broken");
    write(&broken, &[USERLAND_SLAB_HEADER]);
    let unbuilt = complaint("userland", &[&broken]);
    assert!(
        unbuilt.contains("userland-slab does not build"),
        "{unbuilt}"
    );
    assert!(unbuilt.contains("undefined reference"), "{unbuilt}");
}
