//! The output of `slabyard info`.

use crate::plan::Summary;
use crate::recording::Recording;
use crate::ui::{bytes, grouped};
use std::fmt::Write;

const PROCESSES_SHOWN: usize = 20;

pub fn render(recording: &Recording, summary: &Summary) -> String {
    let mut text = String::new();
    overview(&mut text, recording, summary);
    sizes(&mut text, summary);
    processes(&mut text, recording);
    text
}

fn overview(text: &mut String, recording: &Recording, summary: &Summary) {
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<22}{value}");
    };
    let per_op = recording.file_bytes() as f64 / summary.operations.max(1) as f64;
    line("operations", grouped(summary.operations));
    line("  malloc", grouped(summary.mallocs));
    line("  calloc", grouped(summary.callocs));
    line("  aligned", grouped(summary.aligned));
    line("  realloc", grouped(summary.reallocs));
    line("  free", grouped(summary.frees));
    line("  by another thread", grouped(summary.foreign_frees));
    line("  refused to program", grouped(summary.failed));
    line("asked for", bytes(summary.bytes));
    line("most at a time", bytes(summary.peak_payload));
    line("in RAM at its peak", summary.real_peak());
    line("objects at a time", grouped(summary.peak_objects));
    line("time", summary.duration());
    line(
        "file",
        format!(
            "{} ({per_op:.1} B an operation)",
            bytes(recording.file_bytes())
        ),
    );
}

fn sizes(text: &mut String, summary: &Summary) {
    let _ = writeln!(
        text,
        "\n{:>12}{:>16}{:>14}",
        "size up to", "allocations", "bytes"
    );
    for class in summary.size_classes.iter().filter(|class| class.count > 0) {
        let _ = writeln!(
            text,
            "{:>12}{:>16}{:>14}",
            bytes(class.up_to),
            grouped(class.count),
            bytes(class.bytes)
        );
    }
}

fn processes(text: &mut String, recording: &Recording) {
    let _ = writeln!(
        text,
        "\n{:>9}{:>9}{:>14}  command",
        "process", "threads", "operations"
    );
    for process in recording.processes.iter().take(PROCESSES_SHOWN) {
        let mut command: String = process.command.join(" ").chars().take(60).collect();
        if process.forked {
            command.push_str("  (forked)");
        }
        let _ = writeln!(
            text,
            "{:>9}{:>9}{:>14}  {command}",
            process.pid,
            process.threads.len(),
            grouped(process.records())
        );
    }
    if recording.processes.len() > PROCESSES_SHOWN {
        let more = recording.processes.len() - PROCESSES_SHOWN;
        let _ = writeln!(text, "{:>9} more", more);
    }
}
