//! Data with a weight for each stack, as all formats take it.

/// A function, and the line of the call in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    pub function: String,
    /// Empty and 0 without debug information.
    pub file: String,
    pub line: u32,
    /// The file with its code.
    pub module: String,
}

impl Frame {
    pub fn named(function: &str) -> Self {
        Frame {
            function: function.to_string(),
            ..Frame::default()
        }
    }

    /// `fill at main.c:12`
    pub fn with_line(&self) -> String {
        let file = self.file.rsplit('/').next().unwrap_or("");
        match (file, self.line) {
            ("", _) => self.function.clone(),
            (file, 0) => format!("{} at {file}", self.function),
            (file, line) => format!("{} at {file}:{line}", self.function),
        }
    }
}

/// What a weight is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The word for formats: `peak_bytes`.
    pub name: &'static str,
    /// `bytes` or `count`.
    pub unit: &'static str,
    /// A title: `bytes in use at the peak`.
    pub title: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Indices of frames, the outermost one first.
    pub frames: Vec<u32>,
    /// One for each measure. With another recording subtracted, they may be negative.
    pub values: Vec<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The program.
    pub title: String,
    pub measures: Vec<Measure>,
    pub frames: Vec<Frame>,
    pub stacks: Vec<Stack>,
    /// Whether another profile was subtracted.
    pub is_difference: bool,
}

impl Profile {
    /// The sum of a measure over all stacks.
    pub fn total(&self, measure: usize) -> i64 {
        let values = self.stacks.iter().map(|stack| stack.values[measure]);
        values.fold(0, i64::saturating_add)
    }

    /// The stacks by the size of a measure, those of 0 left out.
    pub fn sorted(&self, measure: usize) -> Vec<&Stack> {
        let stacks = self.stacks.iter();
        let mut sorted: Vec<_> = stacks.filter(|stack| stack.values[measure] != 0).collect();
        sorted.sort_by_key(|stack| std::cmp::Reverse(stack.values[measure].unsigned_abs()));
        sorted
    }

    /// This profile minus `earlier`. Stacks are the same if their functions are, whatever the
    /// addresses and lines.
    pub fn minus(&self, earlier: &Profile) -> Profile {
        let mut both = Merged::default();
        both.add(earlier, -1);
        both.add(self, 1);
        let stacks = both.stacks.into_iter();
        Profile {
            title: self.title.clone(),
            measures: self.measures.clone(),
            frames: both.frames,
            stacks: stacks
                .map(|(frames, values)| Stack { frames, values })
                .collect(),
            is_difference: true,
        }
    }
}

/// Stacks of two profiles. The frames are of the one that was added last, with its lines.
#[derive(Default)]
struct Merged {
    numbers: std::collections::HashMap<String, u32>,
    frames: Vec<Frame>,
    stacks: std::collections::BTreeMap<Vec<u32>, Vec<i64>>,
}

impl Merged {
    fn add(&mut self, profile: &Profile, sign: i64) {
        let frames = profile.frames.iter();
        let map: Vec<u32> = frames.map(|frame| self.numbered(frame)).collect();
        for stack in &profile.stacks {
            let frames = stack.frames.iter().map(|&at| map[at as usize]).collect();
            let values = self.stacks.entry(frames).or_default();
            values.resize(stack.values.len(), 0);
            for (sum, value) in values.iter_mut().zip(&stack.values) {
                *sum += sign * value;
            }
        }
    }

    fn numbered(&mut self, frame: &Frame) -> u32 {
        let next = self.frames.len() as u32;
        let number = *self.numbers.entry(frame.function.clone()).or_insert(next);
        if number == next {
            self.frames.push(frame.clone());
        } else {
            self.frames[number as usize] = frame.clone();
        }
        number
    }
}
