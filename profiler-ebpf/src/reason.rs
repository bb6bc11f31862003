//! Why a stack ended and why a record was lost: stable numbers with a sentence each.

macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $number:literal, $slug:literal, $sentence:literal;)+ }) => {
        $(#[$doc])*
        #[repr(u8)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* #[doc = $sentence] $variant = $number,)+ }

        impl $name {
            /// All of them, in number order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
            /// How many there are; their numbers are 0 to COUNT - 1.
            pub const COUNT: usize = Self::ALL.len();

            /// Short stable name, for metric labels and JSON.
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$variant => $slug,)+ }
            }
            /// One sentence for people.
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence,)+ }
            }
            /// The reason with this number, if there is one.
            pub const fn from_number(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

reasons! {
    /// How the user half of a stack ended.
    StackEnd {
        Root = 0, "root", "The walk reached the thread's first frame.";
        DepthLimit = 1, "depth_limit", "The stack is deeper than the walker's limit.";
        ReadFailed = 2, "read_failed", "The stack's memory could not be read (paged out or not mapped).";
        NoFramePointer = 3, "no_frame_pointer", "The frame pointer does not point up the stack: this code does not keep one.";
        BadReturnAddress = 4, "bad_return_address", "The return address is not in user space: this code does not keep a frame pointer.";
        NoUserRegisters = 5, "no_user_registers", "The sample hit the kernel and this kernel does not provide the user registers (bpf_task_pt_regs, Linux 5.15).";
        KernelThread = 6, "kernel_thread", "A kernel thread has no user stack.";
        Unknown = 7, "unknown", "The walker returned a number that this daemon does not know.";
        JvmNotReady = 8, "jvm_not_ready", "The JVM's code heaps were not known yet when the sample was taken: it had just started.";
        JvmNotKnown = 9, "jvm_not_known", "This virtual machine is not HotSpot, or not as this daemon knows it: its frames are walked by frame pointers only.";
        CodeHeapUnreadable = 10, "code_heap_unreadable", "The JVM's table of its code could not be read (paged out or changing).";
        NoCodeBlob = 11, "no_code_blob", "The address lies in the JVM's code heap where no code is.";
        CodeTableTooLong = 12, "code_table_too_long", "The path through the JVM's table of its code was longer than the walker's limit.";
        FrameNotUnderstood = 13, "frame_not_understood", "The JVM's code at the address is of a kind whose frames the walker does not know.";
        BadJavaFrame = 14, "bad_java_frame", "A Java frame's fields are inconsistent: the frame is being built, or the frame below it was read wrongly.";
        BadJavaCaller = 15, "bad_java_caller", "The place that should hold a Java frame's return address holds none.";
        Deoptimizing = 16, "deoptimizing", "The JVM is replacing this thread's compiled frames by interpreted ones at this moment.";
        ContinuationUnknown = 17, "continuation_unknown", "A virtual thread's stack continues in its carrier, at a place that was not found.";
        StackNotGrowing = 18, "stack_not_growing", "A caller's frame would lie below its callee's: a frame was read wrongly.";
        TableNotReady = 19, "table_not_ready", "The unwind table of the file was not built yet: its code was just mapped.";
        NoTable = 20, "no_unwind_table", "The code has no unwind table (memory without a file, or a file without .eh_frame), and its frame pointer led nowhere.";
        TableRefused = 21, "unwind_table_refused", "The file's unwind information was refused, or there was no room for its table, and its frame pointer led nowhere.";
        NoUnwindRow = 22, "no_unwind_row", "The file's unwind information leaves this address out, and its frame pointer led nowhere.";
        RuleNotSupported = 23, "unwind_rule_unsupported", "The unwind rule of this address needs a register that the walker does not follow.";
        BadNativeFrame = 24, "bad_native_frame", "A native frame does not fit its unwind rule: a frame below it was read wrongly.";
        ArchUnsupported = 25, "arch_unsupported", "The walker does not support frames of this kind on this processor: on arm64 those of 32-bit programs.";
    }
}

reasons! {
    /// Why the kernel side could not deliver something. Counted by the program, per CPU.
    DropReason {
        RingFullSample = 0, "ring_full_sample", "The ring buffer was full, or the user's share of it: a sample is lost.";
        RingFullStack = 1, "ring_full_stack", "The ring buffer was full, or the user's share of it: a stack was not sent and its samples are nameless until the next one.";
        RingFullEvent = 2, "ring_full_event", "A ring buffer had no room for events, or the user's share of it was used up: an exec, fork, exit or mmap event is lost; the user's processes are read again.";
        SeenMapFull = 3, "seen_map_full", "The table of stacks already sent was full: a stack is sent again.";
        NoScratch = 4, "no_scratch", "The per-CPU scratch memory was not available: a sample is lost.";
        KernelStackFailed = 5, "kernel_stack_failed", "The kernel stack could not be read: a sample has only its user half.";
        RingFullThread = 6, "ring_full_thread", "The ring buffer had no room for events, or the user's share of it was used up: a thread's name, end or accounts are lost, and after a name its samples have none until the next.";
        NameUnreadable = 7, "name_unreadable", "A thread's name could not be read: its samples have none until the next.";
        ThreadsFull = 8, "threads_full", "The table of named threads was full, or the user's share of it was used up: a thread's samples have no name.";
        NamesTooFast = 9, "names_too_fast", "A thread renamed itself over 1,000 times in a second, or a user's threads together over 20,000 times (60,000 if the user runs Spark): their names are not read for the rest of that second.";
        WakeUnseen = 10, "wake_unseen", "The end of a thread's wait was not seen, and this kernel does not tell how long it stood still: it is not counted.";
        WaitersFull = 11, "waiters_full", "The table of threads whose waits are watched was full, or the user's share of it was used up: a thread's waits are not counted.";
        RingFullWait = 12, "ring_full_wait", "The ring buffer was half full: a wait is not counted.";
        ProbesMet = 13, "probes_met", "A thread allocated while another thread's allocation was being sampled on the same CPU: the allocation is not counted.";
        PauseLost = 14, "pause_lost", "A JVM's pause is not listed, but is in the sums of its tasks: there were over 1,000 in a second, or the ring buffer or the table of JVMs had no room.";
    }
}
