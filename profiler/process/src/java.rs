//! A `java` command line taken apart.
//!
//! In: the words. Out: the main class in its place (the first word that is no option of the launcher),
//! system properties, and the arguments after it. The place matters: `bash -c "java .. MainClass"` and
//! `org.apache.spark.launcher.Main org.apache.spark.deploy.SparkSubmit` both carry a main class that is
//! not theirs. Argument files (`java @file`) are not followed.

use super::text::base_name;

/// A command line of the JDK's `java` launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JavaCommand<'a> {
    /// Main class, `module/class`, or the file of `-jar`.
    pub main: &'a str,
    /// The launcher's options.
    options: &'a [String],
    /// The program's arguments.
    pub args: &'a [String],
}

/// Launcher options whose value is the next word (`java --help`, JDK 8 to 25). With `=` they are one word.
const WITH_VALUE: &[&str] = &[
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--enable-native-access",
    "--limit-modules",
    "--add-opens",
    "--add-exports",
    "--add-reads",
    "--patch-module",
    "--source",
    "--describe-module",
    "-d",
];

impl<'a> JavaCommand<'a> {
    /// Takes the words of a JVM apart; None when there is no main class. Whether it is a JVM the caller knows.
    pub fn parse(words: &'a [String]) -> Option<Self> {
        let mut i = 1;
        loop {
            let word = words.get(i)?.as_str();
            let ends_options = matches!(word, "-jar" | "-m" | "--module");
            if ends_options {
                let main = words.get(i + 1)?;
                return Some(Self { main, options: words.get(1..i)?, args: words.get(i + 2..)? });
            }
            if WITH_VALUE.contains(&word) {
                i += 2;
            } else if word.starts_with('-') || word.starts_with('@') || word.is_empty() {
                i += 1;
            } else {
                return Some(Self { main: word, options: words.get(1..i)?, args: words.get(i + 1..)? });
            }
        }
    }

    /// The value of `-Dname=value`; the last counts.
    pub fn property(&self, name: &str) -> Option<&'a str> {
        let value = |w: &'a String| w.strip_prefix("-D")?.strip_prefix(name)?.strip_prefix('=');
        self.options.iter().rev().find_map(value)
    }

    /// The value of an argument, as `--name value` or `--name=value`.
    pub fn arg(&self, name: &str) -> Option<&'a str> {
        self.args_named(name).next()
    }

    /// All values of an argument, in order.
    pub fn args_named<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        named(self.args, name)
    }

    /// The main class without its package, or the jar's file name: for people.
    pub fn short_main(&self) -> &'a str {
        let main = base_name(self.main);
        if main.ends_with(".jar") { main } else { main.rsplit('.').next().unwrap_or(main) }
    }
}

fn named<'a, 'n>(words: &'a [String], name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
    words.iter().enumerate().filter_map(move |(i, word)| {
        if word == name {
            return words.get(i + 1).map(String::as_str);
        }
        word.strip_prefix(name)?.strip_prefix('=')
    })
}

/// The options of `spark-submit`, which end at the application's own file: what follows is the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmitOptions<'a> {
    options: &'a [String],
    /// The application's file, `pyspark-shell`, `spark-shell`, `spark-internal`.
    pub resource: Option<&'a str>,
}

/// Options of spark-submit without a value (SparkSubmitOptionParser.java, 2.4 to 4.x).
const SUBMIT_SWITCHES: &[&str] =
    &["--help", "-h", "--supervise", "--usage-error", "--verbose", "-v", "--version"];

impl<'a> SubmitOptions<'a> {
    /// Takes the arguments of SparkSubmit apart.
    pub fn parse(args: &'a [String]) -> Self {
        let mut i = 0;
        while let Some(word) = args.get(i) {
            if SUBMIT_SWITCHES.contains(&word.as_str()) || (word.starts_with("--") && word.contains('=')) {
                i += 1;
            } else if word.starts_with('-') {
                i += 2;
            } else {
                break;
            }
        }
        let i = i.min(args.len());
        Self { options: args.get(..i).unwrap_or_default(), resource: args.get(i).map(String::as_str) }
    }

    /// The value of an option; the last counts.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        named(self.options, name).last()
    }

    /// The value of `--conf key=value`; the last counts.
    pub fn conf(&self, key: &str) -> Option<&'a str> {
        let pairs = named(self.options, "--conf").chain(named(self.options, "-c"));
        pairs.filter_map(|pair| pair.split_once('=')).filter(|(k, _)| *k == key).map(|(_, v)| v).last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_main_class_is_the_first_word_that_is_no_option() {
        for line in [
            "java -cp a:b -Xmx1g Main x",
            "java -Dk=v --add-opens java.base/java.lang=ALL-UNNAMED Main x",
            "java --add-opens=java.base/java.lang=ALL-UNNAMED --class-path=a Main x",
            "java @args --module-path p -XX:+UseG1GC Main x",
        ] {
            let line = words(line);
            let java = JavaCommand::parse(&line).unwrap();
            assert_eq!((java.main, java.args), ("Main", &["x".to_owned()][..]), "{line:?}");
        }
    }

    #[test]
    fn jars_and_modules_are_mains_too() {
        let jar = words("java -Dx=1 -jar /opt/App.jar --name n");
        let java = JavaCommand::parse(&jar).unwrap();
        assert_eq!(
            (java.main, java.short_main(), java.arg("--name")),
            ("/opt/App.jar", "App.jar", Some("n"))
        );
        assert_eq!(java.property("x"), Some("1"));
        let module = words("java -m mod/pkg.Main");
        assert_eq!(JavaCommand::parse(&module).unwrap().short_main(), "Main");
    }

    #[test]
    fn without_a_main_there_is_none() {
        for line in ["java", "java -version", "java -cp", "java -cp a", "java -jar", ""] {
            assert_eq!(JavaCommand::parse(&words(line)), None, "{line}");
        }
    }

    #[test]
    fn submit_options_end_at_the_application() {
        let args = words("--master local[2] --verbose --conf spark.app.name=a --name=n job.py --name theirs");
        let submit = SubmitOptions::parse(&args);
        assert_eq!(submit.resource, Some("job.py"));
        assert_eq!(submit.get("--name"), Some("n"));
        assert_eq!(submit.get("--master"), Some("local[2]"));
        assert_eq!(submit.conf("spark.app.name"), Some("a"));
        assert_eq!(SubmitOptions::parse(&words("--master")).resource, None);
        assert_eq!(SubmitOptions::parse(&[]).resource, None);
    }
}
