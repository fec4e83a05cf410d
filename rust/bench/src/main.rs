//! The command: what to run, and where the results go.

use clap::Parser;
use slabyard_bench::allocators::{self, Allocator};
use slabyard_bench::measure::{Effort, TRICKLE};
use slabyard_bench::rows::{self, Row, SIZES};
use slabyard_bench::run::{self, Plan};
use slabyard_bench::{
    alone, checks, cpp, machine, report, requests, rust, seeds, server, truth, vmem,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Slabyard's pool, cache and heap beside the peers and the limits, in one interleaved run.
///
/// Every measurement is a process of its own. Figures are medians; raw data is kept as CSV. A run
/// that no option narrows goes on with the arenas; `vmem` measures those alone, `requests` what a
/// server of requests holds, `server` the key-value server of the examples, `checks` what checks
/// cost, `rust` the Rust crate, `cpp` containers, `truth` whether `slabyard compare` is right, `seeds`
/// the tables of five earlier systems.
#[derive(Parser)]
#[command(name = "slabyard-bench", args_conflicts_with_subcommands = true)]
struct Options {
    /// A run of two to four minutes: fewer sizes and repeats, shorter samples
    #[arg(long)]
    quick: bool,
    /// Only rows whose name begins with one of these, separated by commas
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    /// Object sizes in bytes, of those compiled in: 8, 16, 64, 256, 1024, 4096
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<usize>,
    /// Only these allocators, by the names that --list shows
    #[arg(long, value_delimiter = ',')]
    allocators: Vec<String>,
    /// How often everything is measured [default: 7, quick: 3]
    #[arg(long)]
    repeats: Option<usize>,
    /// Milliseconds of one sample [default: 20, quick: 4]
    #[arg(long)]
    sample_ms: Option<u64>,
    /// Read resident memory again this many seconds after a purge
    #[arg(long, default_value_t = 0)]
    later: u64,
    /// Where the raw data goes [default: a new file in out/bench]
    #[arg(long)]
    csv: Option<PathBuf>,
    /// Show rows and allocators, and measure nothing
    #[arg(long)]
    list: bool,
    /// What the parent tells a measuring process
    #[arg(long, hide = true, num_args = 7)]
    child: Option<Vec<String>>,
    #[command(subcommand)]
    other: Option<Other>,
}

#[derive(clap::Subcommand)]
enum Other {
    Vmem(vmem::Options),
    Requests(requests::Options),
    Checks(checks::Options),
    /// The Rust crate only: pools, caches and maps beside nexus-slab, slotmap, sharded-slab and
    /// others, and beside `Box` over the peers.
    ///
    /// Every measurement is a process of its own. Figures are medians; raw data is kept as CSV.
    Rust(alone::Options),
    /// Containers of the C++ library only: their allocators and resources beside `std::pmr`'s,
    /// Boost's pools and others.
    ///
    /// Every measurement is a process of its own. Figures are medians; raw data is kept as CSV.
    Cpp(alone::Options),
    Server(server::Options),
    Truth(truth::Options),
    Seeds(seeds::Options),
}

impl Options {
    /// Nothing was said about what to measure.
    fn is_everything(&self) -> bool {
        self.rows.is_empty() && self.sizes.is_empty() && self.allocators.is_empty() && !self.list
    }
}

fn chosen_sizes(options: &Options) -> Result<Vec<usize>, String> {
    if let Some(unknown) = options.sizes.iter().find(|size| !SIZES.contains(size)) {
        return Err(format!(
            "no loops for objects of {unknown} B; there are {SIZES:?}"
        ));
    }
    Ok(match (options.sizes.is_empty(), options.quick) {
        (false, _) => options.sizes.clone(),
        (true, true) => vec![64, 1024],
        (true, false) => SIZES.to_vec(),
    })
}

fn chosen_rows(options: &Options, sizes: &[usize]) -> Result<Vec<Row>, String> {
    let wanted = |row: &Row| {
        let name = row.name();
        options.rows.is_empty()
            || options
                .rows
                .iter()
                .any(|part| name.starts_with(part.as_str()))
    };
    let rows: Vec<Row> = rows::all(sizes).into_iter().filter(wanted).collect();
    if rows.is_empty() {
        return Err("no row has such a name; --list shows them".to_owned());
    }
    Ok(rows)
}

fn chosen_allocators(options: &Options) -> Result<Vec<Allocator>, String> {
    if options.allocators.is_empty() {
        return Ok(allocators::ALL.to_vec());
    }
    let find = |name: &String| {
        allocators::find(name).ok_or_else(|| format!("no allocator {name}; --list shows them"))
    };
    options.allocators.iter().map(find).collect()
}

fn plan(options: &Options) -> Result<Plan, String> {
    let (repeats, sample, fewer_rounds) = if options.quick {
        (3, 4, 10)
    } else {
        (7, 20, 1)
    };
    Ok(Plan {
        rows: chosen_rows(options, &chosen_sizes(options)?)?,
        allocators: chosen_allocators(options)?,
        repeats: options.repeats.unwrap_or(repeats).max(1),
        effort: Effort {
            sample: Duration::from_millis(options.sample_ms.unwrap_or(sample)),
            fewer_objects: 1,
            fewer_rounds,
            later: Duration::from_secs(options.later),
            trickle: TRICKLE,
        },
    })
}

fn list(plan: &Plan) {
    println!("allocators:");
    for allocator in &plan.allocators {
        let version = allocator.version();
        println!("  {:<18} {:?} {version}", allocator.name, allocator.kind);
    }
    println!("rows:");
    for row in &plan.rows {
        println!("  {:<26} {}", row.name(), row.describe());
    }
}

fn header(plan: &Plan) -> String {
    let mut lines = machine::conditions();
    let versions = plan.allocators.iter().map(|one| (one.name, one.version()));
    let versions: Vec<String> = versions
        .filter(|(_, version)| !version.is_empty())
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    lines.push(format!("versions       {}", versions.join(", ")));
    lines.push(format!(
        "run            {} rows, {} repeats, samples of {} ms",
        plan.rows.len(),
        plan.repeats,
        plan.effort.sample.as_millis()
    ));
    lines.join("\n") + "\n"
}

/// out/bench at the root of the repository, wherever the command was given.
fn default_path(kind: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = now.map_or(0, |since| since.as_secs());
    root.canonicalize()
        .unwrap_or(root)
        .join(format!("out/bench/{seconds}{kind}"))
}

fn keep(path: &Path, raw: &str, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, raw)?;
    fs::write(path.with_extension("txt"), text)
}

fn bench(options: &Options) -> Result<ExitCode, String> {
    let plan = plan(options)?;
    if options.list {
        list(&plan);
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = header(&plan);
    print!("{text}");
    let (found, failures) = run::run(&plan, |row, found, failures| {
        let block = report::block(row, found, failures, report::shortest_trip(found));
        print!("{block}");
        text += &block;
    });
    let summary = report::summary(&plan.rows, &found);
    print!("{summary}");
    text += &summary;
    let path = options.csv.clone().unwrap_or_else(|| default_path(".csv"));
    keep(&path, &report::csv(&found), &text)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    println!(
        "\nraw data: {}\nthis text: {}",
        path.display(),
        path.with_extension("txt").display()
    );
    for failure in &failures {
        eprintln!(
            "failed: {} in {}: {}",
            failure.allocator,
            failure.row.name(),
            failure.what
        );
    }
    Ok(if failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What is measured alone, if that was asked for.
fn bench_other(other: &Other) -> Result<ExitCode, String> {
    match other {
        Other::Vmem(options) => vmem::bench(options, &default_path("-vmem")),
        Other::Requests(options) => requests::bench(options, &default_path("-requests")),
        Other::Checks(options) => checks::bench(options, &default_path("-checks")),
        Other::Rust(options) => alone::bench::<rust::Row>(options, &default_path("-rust")),
        Other::Cpp(options) => alone::bench::<cpp::Row>(options, &default_path("-cpp")),
        Other::Server(options) => server::bench(options, &default_path("-server")),
        Other::Truth(options) => truth::bench(options, &default_path("-truth")),
        Other::Seeds(options) => seeds::bench(options, &default_path("-seeds")),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// One of the others alone; after everything else the arenas.
fn bench_all(options: &Options) -> Result<ExitCode, String> {
    if let Some(other) = &options.other {
        return bench_other(other);
    }
    let status = bench(options)?;
    if options.is_everything() {
        let other = vmem::Options {
            quick: options.quick,
            repeats: options.repeats,
            sample_ms: options.sample_ms,
            ..vmem::Options::default()
        };
        println!("\nArenas");
        vmem::bench(&other, &default_path("-vmem"))?;
    }
    Ok(status)
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(arguments) = &options.child {
        return match run::run_child(arguments) {
            Some(()) => ExitCode::SUCCESS,
            None => ExitCode::FAILURE,
        };
    }
    bench_all(&options).unwrap_or_else(|message| {
        eprintln!("slabyard-bench: {message}");
        ExitCode::from(2)
    })
}
