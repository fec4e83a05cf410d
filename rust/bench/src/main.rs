//! The command line: the options of a run over all allocators, and the parts as subcommands.

use clap::Parser;
use slabyard_bench::allocators::{self, Allocator};
use slabyard_bench::measure::{Effort, TRICKLE};
use slabyard_bench::part::{self, Common, Report, Sampling};
use slabyard_bench::rows::{self, Row, SIZES};
use slabyard_bench::run::{self, Plan};
use slabyard_bench::{
    alone, checks, cpp, littered, programs, report, requests, rust, server, service, sessions,
    survivors, threads, truth, vmem,
};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Slabyard's pool, cache and heap beside the peers and the limits, in one interleaved run.
///
/// Every measurement is a process of its own. Figures are medians; raw data is kept as CSV. Without
/// --rows, --sizes and --allocators the run also measures arenas, like the command `vmem`. The
/// other commands measure something else each.
#[derive(Parser)]
#[command(name = "slabyard-bench", args_conflicts_with_subcommands = true)]
struct Options {
    /// A run of two to four minutes: fewer sizes and repeats, shorter samples
    #[arg(long)]
    quick: bool,
    /// Only rows whose name begins with one of these, separated by commas
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    /// Object sizes in bytes; there are 8, 16, 64, 256, 1024, 4096
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<usize>,
    /// Only these allocators, by the names that --list shows
    #[arg(long, value_delimiter = ',')]
    allocators: Vec<String>,
    /// How often everything is measured [default: 7, quick: 3]
    #[arg(long)]
    repeats: Option<usize>,
    #[command(flatten)]
    sampling: Sampling,
    /// Read resident memory again this many seconds after a purge
    #[arg(long, default_value_t = 0)]
    later: u64,
    /// Where the raw data goes [default: a new file in out/bench]
    #[arg(long)]
    csv: Option<PathBuf>,
    /// Show rows and allocators, and measure nothing
    #[arg(long)]
    list: bool,
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
    Programs(programs::Options),
    Service(service::Options),
    Sessions(sessions::Options),
    /// Few survivors of many objects only: resident memory after the others were freed at random,
    /// and what objects that move cost.
    ///
    /// Every measurement is a process of its own. Figures are medians; raw data is kept as CSV.
    Survivors(alone::Options),
    Threads(threads::Options),
    Littered(littered::Options),
}

impl Options {
    /// Whether no option chooses what to measure.
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
    let is_left_out = |row: &Row| options.quick && options.rows.is_empty() && row.is_long();
    let wanted = |row: &Row| part::begins_with(&row.name(), &options.rows) && !is_left_out(row);
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
    let (repeats, fewer_rounds) = if options.quick { (3, 10) } else { (7, 1) };
    Ok(Plan {
        rows: chosen_rows(options, &chosen_sizes(options)?)?,
        allocators: chosen_allocators(options)?,
        repeats: options.repeats.unwrap_or(repeats).max(1),
        effort: Effort {
            sample: options.sampling.time(options.quick),
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

/// Lines of the report's head: the versions of the peers, and the extent of the run.
fn head(plan: &Plan) -> [String; 2] {
    let versions = plan.allocators.iter().map(|one| (one.name, one.version()));
    let versions: Vec<String> = versions
        .filter(|(_, version)| !version.is_empty())
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    [
        format!("versions       {}", versions.join(", ")),
        format!(
            "run            {} rows, {} repeats, samples of {} ms",
            plan.rows.len(),
            plan.repeats,
            plan.effort.sample.as_millis()
        ),
    ]
}

fn bench(options: &Options) -> Result<ExitCode, String> {
    let plan = plan(options)?;
    if options.list {
        list(&plan);
        return Ok(ExitCode::SUCCESS);
    }
    let mut report = Report::new(&head(&plan));
    let (found, failures) = run::run(&plan, |row, found, failures| {
        let shortest = report::shortest_trip(found);
        report.add(&report::text(row, found, failures, shortest));
    });
    report.add(&report::summary(&plan.rows, &found));
    let new = || part::new_path(".csv");
    let path = options.csv.clone().unwrap_or_else(new);
    part::write(&path, &report::csv(&found))?;
    report.write(&path)?;
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

/// Runs a part.
fn bench_other(other: &Other) -> Result<ExitCode, String> {
    match other {
        Other::Vmem(options) => vmem::bench(options),
        Other::Requests(options) => requests::bench(options),
        Other::Checks(options) => checks::bench(options),
        Other::Rust(options) => alone::bench::<rust::Row>(options),
        Other::Cpp(options) => alone::bench::<cpp::Row>(options),
        Other::Server(options) => server::bench(options),
        Other::Truth(options) => truth::bench(options),
        Other::Programs(options) => programs::bench(options),
        Other::Service(options) => service::bench(options),
        Other::Sessions(options) => sessions::bench(options),
        Other::Survivors(options) => alone::bench::<survivors::Row>(options),
        Other::Threads(options) => threads::bench(options),
        Other::Littered(options) => littered::bench(options),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a part, or the run over all allocators. If that is not narrowed, arenas follow.
fn bench_all(options: &Options) -> Result<ExitCode, String> {
    if let Some(other) = &options.other {
        return bench_other(other);
    }
    let status = bench(options)?;
    if options.is_everything() {
        let other = vmem::Options {
            common: Common {
                quick: options.quick,
                repeats: options.repeats,
                out: None,
            },
            sampling: options.sampling.clone(),
            only: Vec::new(),
        };
        println!("\nArenas");
        vmem::bench(&other)?;
    }
    Ok(status)
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(arguments) = &options.sampling.child {
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
