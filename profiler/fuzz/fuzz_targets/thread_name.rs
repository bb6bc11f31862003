//! Names of threads, as user code may set them: no panic, a task only where the name is spelled as Spark
//! spells it, and always exactly one class.
#![cfg_attr(fuzzing, no_main)]

use emberscope_model::{Role, ThreadClass};
use emberscope_process::class_of;
use emberscope_process::threads::name::{TaskName, parse, parse_comm};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], bool)| {
    let (bytes, like_spark) = input;
    let prefix: &[u8] = if like_spark { b"Executor task launch worker for task " } else { b"" };
    let name = [prefix, bytes].concat();
    parse_comm(&name);
    let read = parse(&name);
    if let TaskName::Running(id) = read {
        let task = match id.stage {
            None => id.tid.to_string(),
            Some(stage) => {
                format!("{}.{} in stage {stage}.{} (TID {})", id.index, id.attempt, id.stage_attempt, id.tid)
            }
        };
        assert_eq!(name, format!("Executor task launch worker for task {task}").into_bytes());
    }
    let text = String::from_utf8_lossy(&name);
    for role in Role::ALL {
        let class = class_of(&text, *role);
        assert_eq!(
            class == ThreadClass::Task,
            read != TaskName::NotATask || parse_comm(text.as_bytes()) != TaskName::NotATask
        );
    }
});
