//! What is on the screen, and what the keys do to it.

use super::pace::Pace;
use super::processes::{self, Found};
use super::session::{Session, CACHES_ORDER, MEMORY_ORDER, TAGS_ORDER, THREADS_ORDER};
use super::table::{Order, Table, Value};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pane {
    /// The processes to choose from.
    List,
    Memory,
    Caches,
    Threads,
    /// Of programs that have tags.
    Tags,
}

const PANES: [Pane; 4] = [Pane::Memory, Pane::Caches, Pane::Threads, Pane::Tags];

/// What a table looks like at present.
pub struct View {
    pub order: Order,
    pub filter: String,
    /// The row of the cursor, counted from the first that is shown.
    pub cursor: usize,
    /// The first row that is shown.
    pub top: usize,
}

impl View {
    fn by(column: usize) -> Self {
        View {
            order: Order::by(column),
            filter: String::new(),
            cursor: 0,
            top: 0,
        }
    }

    /// Keeps the cursor among `rows` rows, and shows it on a page of `page` of them.
    pub fn keep_in(&mut self, rows: usize, page: usize) {
        let page = page.max(1);
        self.cursor = self.cursor.min(rows.saturating_sub(1));
        let least = (self.cursor + 1).saturating_sub(page);
        self.top = self.top.clamp(least, self.cursor);
        self.top = self.top.min(rows.saturating_sub(page));
    }
}

/// What the program must do after a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Act {
    Nothing,
    /// Look now.
    Look,
    Open(u32),
    /// Back to the list.
    Close,
    Suspend,
    Quit,
}

pub struct App {
    pub pane: Pane,
    views: [View; 5],
    /// The tables of the panes.
    tables: [Table; 5],
    pub session: Session,
    /// The processes were listed.
    pub has_list: bool,
    /// The process was chosen from the list.
    pub from_list: bool,
    pub pace: Pace,
    pub is_paused: bool,
    pub has_ended: bool,
    pub is_searching: bool,
    pub shows_help: bool,
    /// What went wrong last.
    pub problem: Option<String>,
    /// The rows that the screen has room for, for PgUp and PgDn.
    pub page: usize,
}

impl App {
    pub fn new(pane: Pane, pace: Pace) -> Self {
        App {
            pane,
            views: [
                processes::ORDER,
                MEMORY_ORDER,
                CACHES_ORDER,
                THREADS_ORDER,
                TAGS_ORDER,
            ]
            .map(View::by),
            tables: Default::default(),
            session: Session::default(),
            has_list: false,
            from_list: pane == Pane::List,
            pace,
            is_paused: false,
            has_ended: false,
            is_searching: false,
            shows_help: false,
            problem: None,
            page: 10,
        }
    }

    pub fn view(&self) -> &View {
        &self.views[self.pane as usize]
    }

    pub fn view_mut(&mut self) -> &mut View {
        &mut self.views[self.pane as usize]
    }

    pub fn table(&self) -> &Table {
        &self.tables[self.pane as usize]
    }

    pub fn rows_of(&self, pane: Pane) -> usize {
        self.tables[pane as usize].rows.len()
    }

    /// Takes the processes. The cursor stays on its process.
    pub fn set_list(&mut self, all: &[Found]) {
        let chosen = self.chosen();
        self.has_list = true;
        self.tables[Pane::List as usize] = processes::table(all);
        let view = &self.views[Pane::List as usize];
        let rows = self.tables[Pane::List as usize].view(view.order, &view.filter);
        let is_chosen = |row: &&super::table::Row| {
            let pid = &row.values[processes::PID];
            chosen.is_some_and(|chosen| *pid == Value::Number(chosen.into()))
        };
        if let Some(at) = rows.iter().position(is_chosen) {
            self.views[Pane::List as usize].cursor = at;
        }
    }

    /// Makes the tables anew after a look of the session.
    pub fn show_session(&mut self) {
        self.tables[Pane::Memory as usize] = self.session.memory();
        self.tables[Pane::Caches as usize] = self.session.caches();
        self.tables[Pane::Threads as usize] = self.session.threads();
        self.tables[Pane::Tags as usize] = self.session.tags();
    }

    /// The panes of the process.
    pub fn panes(&self) -> &'static [Pane] {
        match self.session.has_tags() {
            true => &PANES,
            false => &PANES[..PANES.len() - 1],
        }
    }

    /// Begins with a process, or goes back to the list.
    pub fn turn_to(&mut self, pane: Pane) {
        self.pane = pane;
        self.session = Session::default();
        self.show_session();
        self.has_ended = false;
        self.is_paused = false;
        self.problem = None;
    }

    /// The process of the list that the cursor is on.
    fn chosen(&self) -> Option<u32> {
        let view = &self.views[Pane::List as usize];
        let rows = self.tables[Pane::List as usize].view(view.order, &view.filter);
        let row = rows.get(view.cursor.min(rows.len().saturating_sub(1)))?;
        match row.values[processes::PID] {
            Value::Number(pid) => Some(pid as u32),
            _ => None,
        }
    }

    fn shown_rows(&self) -> usize {
        let view = self.view();
        self.table().view(view.order, &view.filter).len()
    }

    fn move_cursor(&mut self, rows: isize) {
        let last = self.shown_rows().saturating_sub(1);
        let view = self.view_mut();
        view.cursor = view.cursor.min(last).saturating_add_signed(rows).min(last);
    }

    pub fn key(&mut self, key: KeyEvent) -> Act {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Act::Quit,
                KeyCode::Char('z') => Act::Suspend,
                _ => Act::Nothing,
            };
        }
        if self.shows_help {
            self.shows_help = false;
            return Act::Nothing;
        }
        if self.is_searching {
            self.search(key.code);
            return Act::Nothing;
        }
        self.command(key.code)
    }

    fn search(&mut self, key: KeyCode) {
        let view = self.view_mut();
        match key {
            KeyCode::Char(letter) => view.filter.push(letter),
            KeyCode::Backspace => drop(view.filter.pop()),
            KeyCode::Esc => view.filter.clear(),
            _ => (),
        }
        view.cursor = 0;
        self.is_searching = !matches!(key, KeyCode::Enter | KeyCode::Esc);
    }

    fn command(&mut self, key: KeyCode) -> Act {
        match key {
            KeyCode::Char('q') => return Act::Quit,
            KeyCode::Esc | KeyCode::Backspace => return self.leave(),
            KeyCode::Enter => return self.enter(),
            KeyCode::Char('p' | ' ') => return self.pause(),
            KeyCode::Char('+' | '=') => self.pace.slower(),
            KeyCode::Char('-') => self.pace.faster(),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.shows_help = true,
            KeyCode::Char('/') => self.is_searching = true,
            KeyCode::Char('r') => {
                let order = &mut self.view_mut().order;
                order.reversed = !order.reversed;
            }
            KeyCode::Char('s') => {
                let columns = self.table().columns;
                self.view_mut().order.advance(columns);
            }
            KeyCode::Up | KeyCode::Char('k') => self.move_cursor(-1),
            KeyCode::Down | KeyCode::Char('j') => self.move_cursor(1),
            KeyCode::PageUp => self.move_cursor(-(self.page as isize)),
            KeyCode::PageDown => self.move_cursor(self.page as isize),
            KeyCode::Home => self.move_cursor(isize::MIN),
            KeyCode::End => self.move_cursor(isize::MAX),
            KeyCode::Tab | KeyCode::Right => self.turn(1),
            KeyCode::BackTab | KeyCode::Left => self.turn(self.panes().len() - 1),
            KeyCode::Char(digit @ '1'..='4') if self.pane != Pane::List => {
                let chosen = self.panes().get(digit as usize - '1' as usize);
                self.pane = *chosen.unwrap_or(&self.pane);
            }
            _ => (),
        }
        Act::Nothing
    }

    fn turn(&mut self, steps: usize) {
        let panes = self.panes();
        if let Some(now) = panes.iter().position(|&pane| pane == self.pane) {
            self.pane = panes[(now + steps) % panes.len()];
        }
    }

    fn pause(&mut self) -> Act {
        self.is_paused = !self.is_paused;
        match self.is_paused {
            true => Act::Nothing,
            false => Act::Look,
        }
    }

    /// One step back: the filter goes, then the process.
    fn leave(&mut self) -> Act {
        if !self.view().filter.is_empty() {
            self.view_mut().filter.clear();
            return Act::Nothing;
        }
        match (self.pane, self.from_list) {
            (Pane::List, _) => Act::Nothing,
            (_, true) => Act::Close,
            (_, false) if self.has_ended => Act::Quit,
            (_, false) => Act::Nothing,
        }
    }

    fn enter(&mut self) -> Act {
        if self.has_ended {
            return self.leave();
        }
        match self.chosen() {
            Some(pid) if self.pane == Pane::List => Act::Open(pid),
            _ => Act::Nothing,
        }
    }
}
