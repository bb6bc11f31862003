//! Mangled C++ names as the grammar has them (Itanium C++ ABI 5.1), as large and as deep as they are asked for.
//!
//! In: a seed. Out: the same names for the same seed, of 8 bytes to 64 KiB; some are cut off or spoiled, as that is what
//! a parser reads again and again. For tests.

/// Longest name.
pub const MAX: usize = 64 << 10;

/// Numbers that look like chance (xorshift64*: Marsaglia, Vigna).
pub struct Names(u64);

impl Names {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % sides.max(1)
    }

    fn pick(&mut self, words: &[&str]) -> String {
        words[self.below(words.len())].to_owned()
    }

    /// A name.
    pub fn name(&mut self) -> String {
        let length = (8 << self.below(14)).min(MAX);
        let depth = 1 + self.below(60);
        let mut out = "_Z".to_owned();
        self.encoding(&mut out, depth, length);
        match self.below(8) {
            0 => out.truncate(2 + self.below(out.len())),
            1 => {
                let at = 2 + self.below(out.len() - 2);
                let piece = self
                    .pick(&["E", "I", "J", "X", "nw", "cv", "N", "T_", "S_", "sr", "DT", "Z", "L", "C1I"]);
                out.insert_str(at, &piece);
            }
            2 => {
                let (from, at) = (2 + self.below(out.len() - 2), 2 + self.below(out.len() - 2));
                let some = out[from..(from + 40).min(out.len())].to_owned();
                let times = 1 + self.below(8);
                out.insert_str(at, &some.repeat(times));
            }
            _ => {}
        }
        out.truncate(MAX);
        out
    }

    fn encoding(&mut self, out: &mut String, depth: usize, length: usize) {
        self.entity(out, depth, length);
        for _ in 0..1 + self.below(5) {
            self.kind(out, depth.saturating_sub(1), length);
        }
        while out.len() < length / 2 {
            self.kind(out, depth.saturating_sub(1), length);
        }
    }

    fn number(&mut self, out: &mut String) {
        if self.below(2) == 0 {
            out.push_str(&self.below(40).to_string());
        }
        out.push('_');
    }

    fn source(&mut self, out: &mut String) {
        let word = self.pick(&["a", "foo", "vector", "nw", "cvcv", "IJE", "_M_impl"]);
        out.push_str(&format!("{}{word}", word.len()));
    }

    fn entity(&mut self, out: &mut String, depth: usize, length: usize) {
        if depth == 0 || out.len() >= length {
            return self.source(out);
        }
        let depth = depth - 1;
        match self.below(7) {
            0 | 1 => self.source(out),
            2 | 3 => {
                self.source(out);
                self.arguments(out, depth, length);
            }
            4 => {
                out.push('N');
                for _ in 0..1 + self.below(4) {
                    self.source(out);
                    if self.below(3) == 0 {
                        self.arguments(out, depth, length);
                    }
                }
                self.source(out);
                self.arguments(out, depth, length);
                let end = self.pick(&["E", "C1E", "D0E", "aSE", "clE", "cviE"]);
                out.push_str(&end);
            }
            5 => {
                out.push('Z');
                self.entity(out, depth, length);
                self.kind(out, depth, length);
                out.push('E');
                self.source(out);
            }
            _ => {
                out.push_str("NS");
                self.number(out);
                self.source(out);
                out.push_str(["E", "cviE"][self.below(2)]);
            }
        }
    }

    fn arguments(&mut self, out: &mut String, depth: usize, length: usize) {
        out.push('I');
        for _ in 0..self.below(4) + usize::from(depth > 0) {
            if out.len() >= length {
                break;
            }
            match self.below(6) {
                0 => {
                    out.push('X');
                    self.expression(out, depth, length);
                    out.push('E');
                }
                1 => {
                    out.push('J');
                    for _ in 0..self.below(4) {
                        self.kind(out, depth.saturating_sub(1), length);
                    }
                    out.push('E');
                }
                2 => out.push_str("Li5E"),
                _ => self.kind(out, depth.saturating_sub(1), length),
            }
        }
        out.push('E');
    }

    /// A type.
    fn kind(&mut self, out: &mut String, depth: usize, length: usize) {
        if depth == 0 || out.len() >= length {
            let plain = self.pick(&["i", "c", "T_", "T0_", "S_", "S0_", "St", "Sa", "Ss", "v", "Dn"]);
            return out.push_str(&plain);
        }
        let depth = depth - 1;
        match self.below(12) {
            0 => out.push('i'),
            1 | 2 => {
                let mark = self.pick(&["P", "R", "K", "O", "PK", "A3_", "C", "G", "VK", "U3abc", "Dp"]);
                out.push_str(&mark);
                self.kind(out, depth, length);
            }
            3 | 4 => self.entity(out, depth, length),
            5 => {
                out.push('F');
                (0..1 + self.below(3)).for_each(|_| self.kind(out, depth, length));
                out.push('E');
            }
            6 => {
                out.push('M');
                self.kind(out, depth, length);
                self.kind(out, depth, length);
            }
            7 => {
                out.push_str("DT");
                self.expression(out, depth, length);
                out.push('E');
            }
            8 => {
                out.push(['S', 'T'][self.below(2)]);
                self.number(out);
                self.arguments(out, depth, length);
            }
            9 => {
                out.push_str("Ul");
                (0..1 + self.below(2)).for_each(|_| self.kind(out, depth, length));
                out.push_str("E_");
            }
            10 => {
                out.push('A');
                self.expression(out, depth, length);
                out.push('_');
                self.kind(out, depth, length);
            }
            _ => {
                out.push(['S', 'T'][self.below(2)]);
                self.number(out);
            }
        }
    }

    fn expression(&mut self, out: &mut String, depth: usize, length: usize) {
        if depth == 0 || out.len() >= length {
            let plain = self.pick(&["Li5E", "T_", "fp_", "L_Z1fE", "1a", "sZT_", "fL0p_", "dtfp_1a"]);
            return out.push_str(&plain);
        }
        let depth = depth - 1;
        match self.below(12) {
            0 | 1 => {
                let two = self.pick(&["pl", "eq", "ds", "aN", "ix", "ls"]);
                out.push_str(&two);
                self.expression(out, depth, length);
                self.expression(out, depth, length);
            }
            2 => {
                let one = self.pick(&["ng", "ad", "de", "nt", "sz", "te", "nx", "sp", "tw", "pp_", "gs"]);
                out.push_str(&one);
                self.expression(out, depth, length);
            }
            3 => {
                out.push_str("cl");
                (0..1 + self.below(3)).for_each(|_| self.expression(out, depth, length));
                out.push('E');
            }
            4 => {
                out.push_str("cv");
                self.kind(out, depth, length);
                self.expression(out, depth, length);
            }
            5 => {
                let new = self.pick(&["nw", "na", "gsnw"]);
                out.push_str(&new);
                self.expression(out, depth, length);
                out.push('_');
                self.kind(out, depth, length);
                let end = self.pick(&["E", "piE"]);
                out.push_str(&end);
            }
            6 => {
                out.push_str("qu");
                (0..3).for_each(|_| self.expression(out, depth, length));
            }
            7 => {
                out.push_str("sr");
                self.kind(out, depth, length);
                self.source(out);
                self.arguments(out, depth, length);
            }
            8 => {
                out.push_str("tl");
                self.kind(out, depth, length);
                self.expression(out, depth, length);
                out.push('E');
            }
            9 => {
                let cast = self.pick(&["sc", "dc", "st", "rc", "cc"]);
                out.push_str(&cast);
                self.kind(out, depth, length);
                self.expression(out, depth, length);
            }
            10 => {
                out.push('L');
                self.kind(out, depth, length);
                out.push_str("5E");
            }
            _ => {
                out.push_str("il");
                self.expression(out, depth, length);
                out.push('E');
            }
        }
    }
}
