//! Reasons why figures may mislead, for the reports on runs and on replays.

use serde::{Serialize, Serializer};

/// A reason why figures may mislead; in JSON, its text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Caveat {
    /// A few words that stand beside the answer, if the answer itself is doubtful because of this.
    pub doubt: Option<String>,
    pub text: String,
}

impl Caveat {
    pub fn doubtful(doubt: impl Into<String>, text: impl Into<String>) -> Self {
        Caveat {
            doubt: Some(doubt.into()),
            text: text.into(),
        }
    }

    /// The words of all doubts.
    pub fn doubts(all: &[Caveat]) -> Vec<String> {
        all.iter().filter_map(|one| one.doubt.clone()).collect()
    }
}

impl<T: Into<String>> From<T> for Caveat {
    fn from(text: T) -> Self {
        Caveat {
            doubt: None,
            text: text.into(),
        }
    }
}

impl Serialize for Caveat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}
