//! The command `emberscope`.

fn main() {
    println!("{}", 1);
}
