#!/bin/sh
# rustdoc in the place of the one that `cargo test --doc` starts: it writes the pages instead of running their examples, of
# crates that are compiled already. `cargo doc` would want all dependencies once more, checked instead of compiled.
after=
for word; do
    shift
    case $after$word in
    --test) set -- "$@" --out-dir "$EMBERSCOPE_RUSTDOC_OUT" ;;
    --test-run-directory | --test-args) after=drop ;;
    drop*) after= ;;
    *) set -- "$@" "$word" ;;
    esac
done
exec rustdoc "$@"
