//! What a terminal can show, and the few colours used on it. No meaning hangs on a colour alone.

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether ANSI colours may be used.
    pub colour: bool,
    /// Columns of the terminal: no line is wider.
    pub width: usize,
    /// Whether characters beyond ASCII can be shown (sparklines, ellipses).
    pub unicode: bool,
}

impl Default for Style {
    /// 80 columns of plain ASCII: what every terminal and every log file takes.
    fn default() -> Self {
        Self { colour: false, width: 80, unicode: false }
    }
}

/// What a piece of text is, for those who see colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Strong,
    Faint,
    Good,
    Doubtful,
    Bad,
}

impl Tone {
    /// The parameter of the ANSI sequence "select graphic rendition" (ECMA-48, 8.3.117).
    const fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Strong => Some("1"),
            Self::Faint => Some("2"),
            Self::Good => Some("1;32"),
            Self::Doubtful => Some("1;33"),
            Self::Bad => Some("1;31"),
        }
    }
}

impl Style {
    /// `text` in the colour of `tone`, where there are colours. Blanks around it are left bare.
    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        let core = text.trim();
        match tone.code() {
            Some(code) if self.colour && !core.is_empty() => {
                text.replacen(core, &format!("\x1b[{code}m{core}\x1b[0m"), 1)
            }
            _ => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_painted_gets_through_to_a_terminal() {
        let style = Style { colour: true, ..Style::default() };
        for tone in [Tone::Plain, Tone::Strong, Tone::Faint, Tone::Good, Tone::Doubtful, Tone::Bad] {
            let painted = style.paint(tone, "text");
            assert_eq!(printable::coloured(&painted), painted, "{tone:?}");
        }
    }
}
