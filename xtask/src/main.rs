//! The one door to building, testing, showing and measuring Emberscope.

fn main() {}
