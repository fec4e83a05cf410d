//! The lines that a program writes to follow an advice, in C, C++ and Rust, for objects of a type `T`,
//! one of which is `value`. The tests below compile them.

use super::Kind;

/// A language, and lines in it.
pub type Lines = (&'static str, String);

fn in_languages(c: String, cpp: &str, rust: &str) -> [Lines; 3] {
    [("C", c), ("C++", cpp.into()), ("Rust", rust.into())]
}

fn pool_in_c(size: u64) -> String {
    format!("sy_pool *pool = sy_pool_create(&(sy_pool_config){{.size = {size}}});")
}

/// `flags`: further members of the configuration.
fn cache_in_c(size: u64, flags: &str) -> String {
    format!(
        "sy_cache *cache = sy_cache_create(&(sy_cache_config){{.name = \"name\", .size = {size}{flags}}});\n"
    )
}

const OBJECT_IN_C: &str = "void *object = sy_cache_alloc(cache); sy_cache_free(cache, object);";

pub fn lines(kind: Kind, size: u64) -> [Lines; 3] {
    match kind {
        Kind::Pool => in_languages(
            pool_in_c(size) + "\nvoid *object = sy_pool_alloc(pool); sy_pool_free(pool, object);",
            "slabyard::pool<T> pool;\nauto object = pool.make_unique(value);",
            "let pool = Pool::unbounded();\nlet object = pool.insert(value);",
        ),
        Kind::Reset => in_languages(
            pool_in_c(size) + "\nvoid *object = sy_pool_alloc(pool);\nsy_pool_reset(pool);",
            "slabyard::pool<T> pool; // a new one each time\nT *object = pool.make(value);",
            "let arena = Arena::new(); // a new one each time\nlet object = arena.alloc(value);",
        ),
        Kind::Cache => in_languages(
            cache_in_c(size, "") + OBJECT_IN_C,
            "slabyard::cache<T> cache(\"name\");\nauto object = cache.make_unique(value);",
            "let cache = Cache::new(\"name\");\nlet object = cache.insert(value);",
        ),
    }
}

/// The lines for epochs.
pub fn lines_of_epochs(size: u64) -> [Lines; 3] {
    in_languages(
        cache_in_c(size, ", .flags = SY_EPOCHS")
            + "sy_epoch *epoch = sy_epoch_create(\"name\"); sy_epoch_begin(epoch);\n"
            + OBJECT_IN_C
            + "\nsy_epoch_end(epoch); sy_epoch_close(epoch);",
        "slabyard::cache<T> cache(\"name\", 0, SY_EPOCHS);\n\
         slabyard::epoch epoch(\"name\");\n\
         slabyard::epoch::scope scope(epoch); auto object = cache.make_unique(value);",
        "let cache = Cache::builder().name(\"name\").epochs().build().unwrap();\n\
         let epoch = Epoch::new(\"name\").unwrap();\n\
         let object = epoch.scope(|| cache.insert(value));",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    #[track_caller]
    fn compiles(folder: &Path, compiler: &str, file: &str, source: &str) {
        std::fs::write(folder.join(file), source).unwrap();
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
        let output = Command::new(compiler)
            .current_dir(folder)
            .args(["-fsyntax-only", "-Wall", "-Wno-unused", "-Werror", "-I"])
            .args([include.as_os_str(), file.as_ref()])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{source}\n{said}");
    }

    /// Compiles lines of Rust as they are, and returns them without blanks. The names are passed because
    /// those of a macro would be others.
    macro_rules! rust {
    ($value:ident $object:ident; $($line:tt)*) => {{
        #[allow(dead_code)]
        fn compiled() {
            #[allow(unused_imports)]
            use slabyard::{Arena, Cache, Epoch, Pool};
            let $value = 1;
            $($line)*
            let _ = $object;
        }
        without_blanks(stringify!($($line)*))
    }};
}

    fn without_blanks(text: &str) -> String {
        let lines = text
            .lines()
            .map(|line| line.split("//").next().unwrap_or(""));
        lines.flat_map(str::split_whitespace).collect()
    }

    #[test]
    fn the_lines_to_write_compile() {
        let of_rust = [
            rust! { value object;
                let pool = Pool::unbounded();
                let object = pool.insert(value);
            },
            rust! { value object;
                let arena = Arena::new();
                let object = arena.alloc(value);
            },
            rust! { value object;
                let cache = Cache::new("name");
                let object = cache.insert(value);
            },
            rust! { value object;
                let cache = Cache::builder().name("name").epochs().build().unwrap();
                let epoch = Epoch::new("name").unwrap();
                let object = epoch.scope(|| cache.insert(value));
            },
        ];
        let kinds = [Kind::Pool, Kind::Reset, Kind::Cache];
        let all = kinds.map(|kind| lines(kind, 48)).into_iter();
        let folder = tempfile::tempdir().unwrap();
        for ([c, cpp, rust], of_rust) in all.chain([lines_of_epochs(48)]).zip(of_rust) {
            let c = format!(
                "#include <slabyard/slabyard.h>\nvoid use(void) {{\n{}}}\n",
                c.1 + "\n"
            );
            compiles(folder.path(), "cc", "lines.c", &c);
            let cpp = format!(
                "#include <slabyard/slabyard.hpp>\nstruct T {{ int a; }};\nvoid use(T value) {{\n{}}}\n",
                cpp.1 + "\n"
            );
            compiles(folder.path(), "c++", "lines.cpp", &cpp);
            assert_eq!(without_blanks(&rust.1), of_rust);
        }
    }
}
