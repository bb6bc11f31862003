//! docs/reference/cli.md, docs/reference/configuration.md, deploy/emberscope.toml and profiler/ui/kinds.js are made from the
//! definitions here: tests compare them, and write them when `EMBERSCOPE_WRITE_DOCS` is set.

use super::Cli;
use clap::CommandFactory;
use emberscope_config::DaemonConfig;
use emberscope_model::{KindFacts, SampleKind};
use std::path::PathBuf;

const HOW: &str = "EMBERSCOPE_WRITE_DOCS=1 cargo test -p emberscope --lib cli::reference";

fn compare(path: &str, want: &str) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    if std::env::var_os("EMBERSCOPE_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, want).unwrap();
    }
    let got = std::fs::read_to_string(&file).unwrap_or_default();
    let differing = got.lines().zip(want.lines()).position(|(got, want)| got != want);
    let line = differing.unwrap_or(got.lines().count().min(want.lines().count())) + 1;
    assert!(got == want, "{path} is not what the code says, from line {line} on; write it anew by: {HOW}");
}

fn help(command: &clap::Command) -> String {
    let mut command = command.clone().term_width(100);
    let help = command.render_long_help().to_string();
    help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[test]
fn the_page_of_commands_is_what_the_program_says() {
    let mut program = Cli::command();
    program.build();
    let mut page = format!(
        "# The command line\n\nGenerated from the program's own help; regenerate it with `{HOW}`.\n\n\
         ## emberscope\n\n```text\n{}\n```\n",
        help(&program)
    );
    // `help` is clap's own, and listed above.
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        let named = command.clone().bin_name(format!("emberscope {}", command.get_name()));
        page.push_str(&format!("\n## emberscope {}\n\n```text\n{}\n```\n", command.get_name(), help(&named)));
    }
    compare("docs/reference/cli.md", &page);
}

#[test]
fn every_command_has_examples_that_it_understands() {
    let program = Cli::command();
    for command in program.get_subcommands() {
        let after = command
            .get_after_help()
            .unwrap_or_else(|| panic!("{}: no examples", command.get_name()))
            .to_string();
        let examples = after.lines().filter_map(|line| line.strip_prefix("  emberscope "));
        let mut count = 0;
        for example in examples {
            let line = example.split([';', '|', '>']).next().unwrap_or_default();
            // The selectors of the examples hold no blanks; their quotes are the shell's.
            let line = if example.contains('\'') {
                example.split(" --unit").next().unwrap_or_default()
            } else {
                line
            };
            let words = line.split_whitespace().map(|word| word.trim_matches('\''));
            let parsed = Cli::command().try_get_matches_from(std::iter::once("emberscope").chain(words));
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            assert!(line.starts_with(command.get_name()), "{example}");
            count += 1;
        }
        assert!(count > 1, "{}: {count} examples", command.get_name());
    }
    Cli::command().debug_assert();
}

#[test]
fn help_is_a_command_too() {
    let said = |words: &[&str]| Cli::command().try_get_matches_from(words).unwrap_err();
    let help = said(&["emberscope", "help", "diff"]);
    assert_eq!(help.kind(), clap::error::ErrorKind::DisplayHelp);
    assert!(help.to_string().contains("--slow"), "{help}");
    let typo = said(&["emberscope", "help", "dif"]);
    assert!(typo.exit_code() == 2 && typo.to_string().contains("dif"), "{typo}");
}

#[test]
fn a_limit_has_a_short_flag() {
    for command in ["top", "tasks", "stages", "labels", "diff --slow --app a --stage 3"] {
        let words = ["emberscope"].into_iter().chain(command.split(' ')).chain(["-n", "5"]);
        let parsed = Cli::command().try_get_matches_from(words);
        assert!(parsed.is_ok(), "{command}: {}", parsed.unwrap_err());
    }
}

#[test]
fn the_page_of_settings_is_what_the_program_says() {
    let mut page = format!(
        "# Configuration\n\nGenerated from the program's own settings; regenerate it with `{HOW}`.\n\n\
         `emberscope daemon` takes each setting as a flag (`--hz 99`) or as a key of the TOML file named by\n\
         `--config` (`hz = 99`). A flag overrides the file, and the file overrides the default. An unknown key is\n\
         an error that names the nearest one. `emberscope daemon --print-config` prints the effective settings as a file.\n\n\
         Sizes are whole numbers with a unit: `B`, `KB`, `MB`, `GB` (powers of 1000), `KiB`, `MiB`, `GiB` (powers of\n\
         1024). Durations are whole numbers with units, the largest first: `d`, `h`, `m`, `s`, `ms`, as in `1h30m`.\n\
         Lists are comma-separated strings, in the file also arrays of strings.\n\n\
         | setting | default | meaning |\n|---|---|---|\n"
    );
    for (key, default, meaning) in DaemonConfig::reference() {
        let default = match default.strip_prefix(&format!("{key} = ")) {
            Some(value) => format!("`{}`", value.trim()),
            None => "none".to_owned(),
        };
        let meaning = meaning.replace('|', "\\|").replace('*', "\\*");
        page.push_str(&format!("| `{key}` | {default} | {meaning} |\n"));
    }
    page.push_str(
        "\nCommands that query a daemon take `--url` (or the variable `EMBERSCOPE_URL`) and `--token-file` (or the\n\
         token itself in `EMBERSCOPE_TOKEN`).\n",
    );
    compare("docs/reference/configuration.md", &page);
}

#[test]
fn the_example_file_holds_the_defaults() {
    let head = "# Every setting of `emberscope daemon` with its default. A flag of the same name overrides this file.\n\n";
    compare("deploy/emberscope.toml", &format!("{head}{}", DaemonConfig::default().to_toml()));
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../deploy/emberscope.toml");
    let read = emberscope_config::read_file(&file).unwrap();
    assert_eq!(DaemonConfig::from_settings(read), DaemonConfig::default());
}

#[test]
fn the_pages_kinds_are_the_daemons() {
    let kinds: Vec<String> = SampleKind::ASKED.iter().map(|kind| kind_of_page(kind.facts())).collect();
    let file = format!(
        "// The kinds of samples. Made from the daemon's own table (profiler/model/src/kind/table.rs); write it anew by\n\
         // `{HOW}`.\n\n/** Each with its names in answers, and what the page calls it. */\n\
         export const KINDS = [\n{}];\n",
        kinds.concat()
    );
    compare("profiler/ui/kinds.js", &file);
}

fn kind_of_page(facts: &KindFacts) -> String {
    let text = |text: &str| format!("'{text}'");
    let fields = [
        ("type", text(facts.slug)),
        ("title", text(facts.title)),
        ("unit", text(facts.unit)),
        ("amount", text(facts.amount.key)),
        ("value", format!("['{}', '{}']", facts.weight.name, facts.weight.unit)),
        ("colour", format!("{:?}", facts.colour)),
        ("none", text(facts.none)),
    ];
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("    {name}: {value},\n")).collect();
    format!("  {{\n{}  }},\n", fields.concat())
}
