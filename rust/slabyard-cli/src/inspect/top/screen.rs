//! Draws the screen: a line about the process, the panes, a table, warnings, and the keys.

use super::super::account::What;
use super::super::text;
use super::app::{App, Pane};
use super::table::{Row, Shape, Table, Tone, GAP};
use crate::report::table::wrapped;
use crate::ui::bytes;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Padding, Paragraph};
use ratatui::Frame;

pub fn draw(frame: &mut Frame, app: &mut App) {
    let area = frame.area();
    let notes = notes(app, area);
    let [title, panes, table, below, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(notes.len() as u16),
        Constraint::Length(1),
    ])
    .areas(area);
    both_ends(frame, title, title_of(app), pace_of(app));
    frame.render_widget(Paragraph::new(panes_of(app)), panes);
    draw_table(frame, table, app);
    frame.render_widget(Paragraph::new(notes), below);
    frame.render_widget(Paragraph::new(keys_of(app)), keys);
    if app.shows_help {
        help(frame, area);
    }
}

/// A line with words at its left and at its right end.
fn both_ends(frame: &mut Frame, area: Rect, left: Line, right: Line) {
    let width = (right.width() as u16).min(area.width);
    let [start, end] =
        Layout::horizontal([Constraint::Min(0), Constraint::Length(width)]).areas(area);
    frame.render_widget(Paragraph::new(left), start);
    frame.render_widget(Paragraph::new(right), end);
}

fn title_of(app: &App) -> Line<'static> {
    let Some(account) = app.session.account.as_ref() else {
        return Line::from("slabyard top".bold());
    };
    let live = [What::Live, What::Large, What::Guarded];
    let live = live.iter().map(|&what| account.of(what)).sum();
    Line::from(vec![
        account.program.clone().bold(),
        format!(" ({})", account.pid).into(),
        "  RSS ".dim(),
        bytes(account.rss_bytes).bold(),
        "  live ".dim(),
        bytes(live).bold(),
        "  free ".dim(),
        bytes(account.free()).bold(),
    ])
}

fn pace_of(app: &App) -> Line<'static> {
    if app.has_ended {
        return Line::from("  ended".red().bold());
    }
    if app.is_paused {
        return Line::from("  paused".yellow().bold());
    }
    Line::from(format!("  every {}", app.pace.words()).dim())
}

fn panes_of(app: &App) -> Line<'static> {
    if app.pane == Pane::List {
        return Line::from(match app.rows_of(Pane::List) {
            _ if !app.has_list => String::new(),
            1 => "1 process uses Slabyard".to_string(),
            many => format!("{many} processes use Slabyard"),
        });
    }
    let name = |pane| match pane {
        Pane::List => "processes",
        Pane::Memory => "memory",
        Pane::Caches => "caches",
        Pane::Threads => "threads",
        Pane::Tags => "tags",
    };
    let mut spans = Vec::new();
    for (index, &pane) in app.panes().iter().enumerate() {
        let count = match pane {
            Pane::Memory => String::new(),
            _ => format!(" {}", app.rows_of(pane)),
        };
        let style = match pane == app.pane {
            true => Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD),
            false => Style::new(),
        };
        let words = format!(" {} {}{count} ", index + 1, name(pane));
        spans.push(Span::styled(words, style));
        spans.push("  ".into());
    }
    Line::from(spans)
}

fn draw_table(frame: &mut Frame, area: Rect, app: &mut App) {
    let page = usize::from(area.height).saturating_sub(1);
    app.page = page.max(1);
    let view = app.view();
    let (order, filter) = (view.order, view.filter.clone());
    let rows = app.table().view(order, &filter).len();
    app.view_mut().keep_in(rows, page);
    let (view, table) = (app.view(), app.table());
    let shown = table.fit(area.width.into());
    let heads = table.heads(Some(order), &shown);
    let heads = heads.join(&" ".repeat(GAP));
    let mut lines = vec![Line::from(heads).style(Style::new().bold().underlined())];
    for (index, row) in table.view(order, &filter).iter().enumerate() {
        if (view.top..view.top + page).contains(&index) {
            lines.push(line_of(table, row, &shown, index == view.cursor));
        }
    }
    if rows == 0 {
        lines.push(Line::from(nothing(app).dim()));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// Why there are no rows.
fn nothing(app: &App) -> &'static str {
    match app.pane {
        _ if !app.view().filter.is_empty() => "No name has these letters.",
        Pane::List if !app.has_list => "The processes are being read.",
        Pane::List => "No process of yours uses Slabyard.",
        _ if app.session.account.is_none() => "The process is being read.",
        _ => "There are none.",
    }
}

fn line_of(table: &Table, row: &Row, shown: &[(usize, usize)], has_cursor: bool) -> Line<'static> {
    let mut spans = Vec::new();
    for (index, cell) in table.cells(row, shown).into_iter().enumerate() {
        if index > 0 {
            spans.push(" ".repeat(GAP).into());
        }
        let style = match table.columns[shown[index].0].shape {
            Shape::Bar => Style::new().fg(colour_of(row.tone)),
            Shape::Trend => Style::new().fg(Color::Cyan),
            _ => Style::new(),
        };
        spans.push(Span::styled(cell, style));
    }
    let mut style = Style::new();
    if row.tone == Tone::Sum {
        style = style.bold();
    }
    if has_cursor {
        style = style.add_modifier(Modifier::REVERSED);
    }
    Line::from(spans).style(style)
}

fn colour_of(tone: Tone) -> Color {
    match tone {
        Tone::Live => Color::Green,
        Tone::Free => Color::Yellow,
        Tone::Own => Color::Blue,
        Tone::Other => Color::Magenta,
        Tone::Plain | Tone::Sum => Color::Reset,
    }
}

/// What is wrong, and what the figures warn of, in at most a third of the screen.
fn notes(app: &App, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width).max(10);
    let most = usize::from(area.height / 3);
    let mut lines: Vec<Line> = Vec::new();
    let mut add = |words: &str, style: Style| {
        let text = wrapped(words, width);
        let all = text
            .lines()
            .map(|line| Line::from(line.to_string()).style(style));
        lines.extend(all);
    };
    if app.has_ended {
        let words = match app.from_list {
            true => "The process has ended. These are its last figures; Esc goes back to the list.",
            false => "The process has ended. These are its last figures; q leaves.",
        };
        add(words, Style::new().red().bold());
    }
    if let Some(problem) = &app.problem {
        add(problem, Style::new().red());
    }
    if let Some(account) = &app.session.account {
        let tags = account.tags.as_ref().filter(|_| app.pane == Pane::Tags);
        if let Some(tags) = tags {
            add(&text::about_tags(tags), Style::new().dim());
        }
        for words in text::warnings(account) {
            add(&words, Style::new().yellow());
        }
        for problem in &account.problems {
            let words = format!("Not everything could be read: {problem}.");
            add(&words, Style::new().dim());
        }
    }
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            last.push_span("…");
        }
    }
    lines
}

fn keys_of(app: &App) -> Line<'static> {
    let filter = app.view().filter.clone();
    if app.is_searching {
        return Line::from(vec![
            "/".bold(),
            filter.into(),
            "█".into(),
            "  Enter keeps it, Esc ends it".dim(),
        ]);
    }
    let keys: &[(&str, &str)] = match app.pane {
        _ if !filter.is_empty() => &[
            ("Esc", "all rows"),
            ("s", "sort"),
            ("r", "reverse"),
            ("?", "help"),
            ("q", "quit"),
        ],
        Pane::List => &[
            ("Enter", "open"),
            ("s", "sort"),
            ("r", "reverse"),
            ("/", "search"),
            ("p", "pause"),
            ("?", "help"),
            ("q", "quit"),
        ],
        _ => &[
            ("Tab", "pane"),
            ("s", "sort"),
            ("r", "reverse"),
            ("/", "search"),
            ("p", "pause"),
            ("+ -", "interval"),
            ("?", "help"),
            ("q", "quit"),
        ],
    };
    let mut spans = Vec::new();
    if !filter.is_empty() {
        spans.push(format!("/{filter}").yellow().bold());
        spans.push("  ".into());
    }
    for (key, does) in keys {
        spans.push((*key).bold());
        spans.push(format!(" {does}  ").dim());
    }
    Line::from(spans)
}

const HELP: &str = "\
Tab, 1 2 3 4      the pane: memory, caches, threads, tags
arrows, PgUp PgDn move the cursor and scroll
s                 sort by the next column
r                 reverse the order
/                 show only names with these letters
p                 pause, and go on
+ -               look less often, more often
Enter             open a process of the list
Esc               end the search; back to the list
q                 quit

change    since this command has looked first
change/s  live objects a second more or less
waiting   free objects in magazines
waste     resident memory of its slabs without live
          objects; used: the part with them
trend     of resident bytes; of live objects";

fn help(frame: &mut Frame, area: Rect) {
    let lines = HELP.lines().count() as u16;
    let (width, height) = (60.min(area.width), (lines + 2).min(area.height));
    let place = Rect::new(
        (area.width - width) / 2,
        (area.height - height) / 2,
        width,
        height,
    );
    let block = Block::bordered()
        .title(" any key closes this ")
        .padding(Padding::horizontal(1));
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(HELP).block(block), place);
}
