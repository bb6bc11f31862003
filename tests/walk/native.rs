//! Java called by native code that Java called: by JNI, and by the stubs of java.lang.foreign (JDK 22). Where the
//! native code keeps frame pointers the stack is whole; where it does not it ends there, and says so.

use super::*;

/// Lets all code call java.lang.foreign.
const FOREIGN: &str = "--enable-native-access=ALL-UNNAMED";

/// tests/fixtures/updown.c, compiled with frame pointers.
fn library(test: &str) -> Option<&'static Path> {
    static BUILT: OnceLock<Option<tempfile::TempDir>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let home = [17, 25].into_iter().find_map(|v| std::env::var_os(format!("EMBERSCOPE_JAVA{v}")))?;
        let include = Path::new(&home).join("include");
        let dir = tempfile::tempdir().expect("a directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/updown.c");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-fno-omit-frame-pointer", "-fPIC", "-shared", "-o"])
            .arg(dir.path().join("updown.so"));
        cc.arg("-I").arg(&include).arg("-I").arg(include.join("linux")).arg(source);
        assert!(cc.status().expect("cc, which rustc links with, is there").success());
        Some(dir)
    });
    if built.is_none() {
        skip(test, "no JDK with jni.h: `cargo xtask test` sets EMBERSCOPE_JAVA17 and its kin");
    }
    built.as_ref().map(tempfile::TempDir::path)
}

/// Java, then native code, then Java: the leaf is first.
fn is_sandwich(stack: &RawStack) -> bool {
    let java = |f: &UserFrame| !f.is_native();
    let mut frames = stack.user.iter().skip_while(|f| java(f)).skip_while(|f| !java(f));
    stack.user.first().is_some_and(java) && frames.next().is_some()
}

/// Nearly all samples with a Java leaf are in what native code called, and whole.
fn whole(test: &str, major: u32, flags: &[&str], class: &str) {
    let Some((features, _guard)) = host(test) else { return };
    let Some(java) = java(test, major) else { return };
    let Some(library) = library(test) else { return };
    let library = library.join("updown.so").display().to_string();
    let Some(seen) = seen(test, &features, &java, flags, &[class, &library]) else { return };
    seen.print(&format!("JDK {major} {flags:?} {class}"));
    let all = seen.count(is_sandwich);
    let rooted = seen.count(|stack| is_sandwich(stack) && seen.rooted(stack));
    let leaves = seen.count(|_| true);
    assert!(all > 300 && all * 10 >= leaves * 9, "{all} of {leaves} have native code between Java frames");
    assert!(rooted * 100 >= leaves * 99, "{rooted} of {leaves}");
}

#[test]
fn jni_down_and_up_25() {
    whole("jni_down_and_up_25", 25, &[], "UpDown");
}

#[test]
fn foreign_down_and_up_25() {
    whole("foreign_down_and_up_25", 25, &[FOREIGN], "Upcalls");
}

/// As [`super::all_other_jvms`].
#[test]
#[ignore = "`cargo xtask bench stacks --rows walk` runs it"]
fn down_and_up_in_other_jvms() {
    each(&[
        ("jni_down_and_up_17", &|name| whole(name, 17, &[], "UpDown")),
        ("jni_down_and_up_interpreted_17", &|name| whole(name, 17, &["-Xint"], "UpDown")),
        ("foreign_down_and_up_interpreted_25", &|name| whole(name, 25, &[FOREIGN, "-Xint"], "Upcalls")),
    ]);
}

/// The C library's qsort keeps no frame pointer on most distributions: its frames end the stack, those of the
/// comparator are there.
#[test]
fn a_comparator_of_qsort_is_whole_or_says_why() {
    const TEST: &str = "a_comparator_of_qsort_is_whole_or_says_why";
    let Some((features, _guard)) = host(TEST) else { return };
    let Some(java) = java(TEST, 25) else { return };
    let Some(seen) = seen(TEST, &features, &java, &[FOREIGN], &["Upcalls", "qsort"]) else { return };
    seen.print("JDK 25 qsort");
    let all = seen.count(|_| true);
    let said = |stack: &RawStack| {
        let native = stack.user.last().is_some_and(|f| f.is_native());
        native
            && [StackEnd::NoFramePointer, StackEnd::BadReturnAddress, StackEnd::ReadFailed]
                .contains(&stack.end)
    };
    let good = seen.count(|stack| seen.rooted(stack) || said(stack));
    assert!(all > 300 && good * 100 >= all * 99, "{good} of {all}");
}
