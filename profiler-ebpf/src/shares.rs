//! Who may put what into the ring, and who may have one more place in a table of threads.
//!
//! In: the current task's user and cgroup, the size of a record, how full the ring is. Out: whether it may go up; what may
//! not is counted under its user. The rule is that of buffers in switches (dynamic thresholds): a user may have as many
//! bytes in the ring as a multiple of those that are free, and a cgroup as many as its user may have more. So one who
//! floods fills a part of it whatever he does, what is left is for the others, and nobody has to be asked who they are.
//! His stacks go first, for each is as large as ten samples and more, then his samples; his events, which come of
//! themselves, before either. Users with processes of Spark's may have three times as much.
//!
//! Below a quarter nothing is counted: then the reader keeps up, and a sample costs what it cost. CPUs count without
//! locks, so that now and then a record is counted for none: the parts are about right, and what was lost exactly so.
//!
//! What other rooms call are functions with a name that is kept (`no_mangle`) and numbers for arguments and answer: so they
//! are global in the object's BTF, and the verifier looks at each once in a program and not at each call in each state
//! (kernel/bpf/verifier.c, `do_check_subprogs`; since Linux 5.6).
#![allow(unsafe_code)]

use crate::globals::{RING_BYTES, SHARE_SEED, THREAD_ROOM, WAKE_BYTES};
use crate::maps::{EVENTS, SHARES, SPARK_USERS};
use crate::walk::mix;
use aya_ebpf::bindings::BPF_RB_CONS_POS;
use aya_ebpf::helpers::bpf_get_current_uid_gid;
use aya_ebpf::helpers::generated::bpf_get_current_cgroup_id;
use core::arch::asm;
use profiler_ebpf::{
    GROUPS_AT, Loss, MAX_NAMES_OF_USER, MAX_WAITERS, SHARE_SETS, SHARE_WAYS, SPARK_WEIGHT, Share, TOTAL_AT,
};

/// A record's head in the ring (`BPF_RINGBUF_HDR_SZ`).
const HEAD_BYTES: u64 = 8;

/// Says that a thread's place is on somebody's account.
const COUNTED: u64 = 1 << 63;

/// Whether a record of the current task may be put into the ring, in which `waiting` bytes wait to be read; it is then on
/// the account of its user.
#[inline(always)]
pub fn may_put(what: Loss, bytes: u64, waiting: u64) -> bool {
    waiting < WAKE_BYTES.load() || put(what as u64, bytes, waiting) != 0
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn put(what: u64, bytes: u64, waiting: u64) -> u64 {
    let uid = bpf_get_current_uid_gid() as u32;
    let read = EVENTS.query(u64::from(BPF_RB_CONS_POS));
    let written = read + waiting;
    let Some((_, user, _, group)) = both(uid, read) else { return 1 };
    // SAFETY: slots of the array.
    let (user, group) = unsafe { (&mut *user, &mut *group) };
    // Twice, since a user's first cgroup may have half of it.
    let free = 2 * RING_BYTES.load().saturating_sub(waiting) * weight(uid);
    let share = match what {
        w if w == Loss::Sample as u64 => free,
        w if w == Loss::Stack as u64 => free / 2,
        _ => free / 4,
    };
    let held = user.in_ring(read, written) + group.in_ring(read, written);
    let bytes = bytes + HEAD_BYTES;
    if held + bytes > share {
        count(user, what);
        return 0;
    }
    user.put(bytes, written);
    group.put(bytes, written);
    1
}

/// Counts what the ring had no room for, or the user's budget.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn lost(what: u64) -> u64 {
    let uid = bpf_get_current_uid_gid() as u32;
    let read = EVENTS.query(u64::from(BPF_RB_CONS_POS));
    if let Some((_, user)) = slot(user_key(uid), 0, read) {
        // SAFETY: a slot of the array.
        count(unsafe { &mut *user }, what);
    }
    0
}

/// Whether the user may tell one more name in this second.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn one_more_name(now: u64) -> u64 {
    let uid = bpf_get_current_uid_gid() as u32;
    let read = EVENTS.query(u64::from(BPF_RB_CONS_POS));
    let Some((_, user)) = slot(user_key(uid), 0, read) else { return 1 };
    // SAFETY: a slot of the array.
    let user = unsafe { &mut *user };
    let told = user.one_more_name(now, MAX_NAMES_OF_USER * weight(uid));
    if !told {
        count(user, Loss::Name as u64);
    }
    u64::from(told)
}

/// A table of threads that users share.
#[derive(Clone, Copy)]
pub enum Table {
    /// [`crate::maps::THREADS`].
    Named,
    /// [`crate::maps::WAITERS`].
    Waiting,
}

impl Table {
    /// How many places it has.
    #[inline(always)]
    fn room(self) -> u64 {
        match self {
            Self::Named => THREAD_ROOM.load(),
            Self::Waiting => u64::from(MAX_WAITERS),
        }
    }

    /// What a user loses who may have no more of them.
    #[inline(always)]
    pub fn loss(self) -> u64 {
        match self {
            Self::Named => Loss::Place as u64,
            Self::Waiting => Loss::Waiter as u64,
        }
    }

    /// Where an account has its places.
    #[inline(always)]
    fn taken(self, share: *mut Share) -> *mut u64 {
        // SAFETY: a field's address; nothing is read.
        match self {
            Self::Named => unsafe { &raw mut (*share).threads },
            Self::Waiting => unsafe { &raw mut (*share).waiters },
        }
    }
}

/// A place in the table of named threads, for the current one: what to give back at its end, or 0 when its user has as
/// many as he may.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn take_place() -> u64 {
    take(Table::Named)
}

/// Gives a place back: what [`take_place`] answered.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn give_back(place: u64) -> u64 {
    give(Table::Named, place)
}

/// As [`take_place`], in the table of threads whose waits are watched.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn take_waiter() -> u64 {
    take(Table::Waiting)
}

/// Gives back what [`take_waiter`] answered.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn give_back_waiter(place: u64) -> u64 {
    give(Table::Waiting, place)
}

#[inline(always)]
fn take(table: Table) -> u64 {
    let uid = bpf_get_current_uid_gid() as u32;
    let read = EVENTS.query(u64::from(BPF_RB_CONS_POS));
    let Some((user_at, user, group_at, group)) = both(uid, read) else { return COUNTED };
    let Some(all) = SHARES.get_ptr_mut(TOTAL_AT) else { return COUNTED };
    // SAFETY: slots of the array; each word is read whole.
    unsafe {
        let taken = table.taken(all).read_volatile();
        let free = 2 * table.room().saturating_sub(taken) * weight(uid);
        if *table.taken(user) + *table.taken(group) + 1 > free {
            count(&mut *user, table.loss());
            return 0;
        }
        for share in [user, group, all] {
            add(table.taken(share), 1);
        }
    }
    COUNTED | u64::from(user_at) << 32 | u64::from(group_at)
}

#[inline(always)]
fn give(table: Table, place: u64) -> u64 {
    if place & COUNTED == 0 {
        return 0;
    }
    for at in [(place >> 32) as u32 & 0xffff, place as u32, TOTAL_AT] {
        if let Some(share) = SHARES.get_ptr_mut(at) {
            // SAFETY: a slot of the array.
            unsafe { add(table.taken(share), u64::MAX) };
        }
    }
    0
}

/// The slots of the current user and of his cgroup.
#[inline(always)]
fn both(uid: u32, read: u64) -> Option<(u32, *mut Share, u32, *mut Share)> {
    // SAFETY: the helper has no preconditions.
    let cgroup = unsafe { bpf_get_current_cgroup_id() };
    let (user_at, user) = slot(user_key(uid), 0, read)?;
    let (group_at, group) = slot(mix(user_key(uid), cgroup) | 1, GROUPS_AT, read)?;
    Some((user_at, user, group_at, group))
}

#[inline(always)]
fn user_key(uid: u32) -> u64 {
    u64::from(uid) + 1
}

#[inline(always)]
fn weight(uid: u32) -> u64 {
    if SPARK_USERS.get_ptr(uid).is_some() { SPARK_WEIGHT } else { 1 }
}

/// An owner's slot in its set: the one that is his, else one that was nobody's yet, else one whose owner has nothing now,
/// else the last, which he then shares.
#[inline(always)]
fn slot(owner: u64, at: u32, read: u64) -> Option<(u32, *mut Share)> {
    let hash = (mix(SHARE_SEED.load(), owner) >> 20) as u32;
    let first = at + (hash & (SHARE_SETS - 1)) * SHARE_WAYS;
    let (mut chosen, mut rank) = (first + SHARE_WAYS - 1, 0);
    for way in 0..SHARE_WAYS {
        let share = SHARES.get_ptr(first + way)?;
        // SAFETY: a slot of the array; each word is read whole.
        let share = unsafe { &*share };
        if share.owner == owner {
            return Some((first + way, SHARES.get_ptr_mut(first + way)?));
        }
        if share.owner == 0 && rank < 2 {
            (chosen, rank) = (first + way, 2);
        } else if share.threads == 0 && share.waiters == 0 && share.last <= read && rank < 1 {
            (chosen, rank) = (first + way, 1);
        }
    }
    let share = SHARES.get_ptr_mut(chosen)?;
    if rank > 0 {
        // SAFETY: a slot of the array. Word by word: a whole one is written byte by byte, and each byte is looked at by the
        // verifier on each way here.
        unsafe {
            for word in 1..size_of::<Share>() / 8 {
                share.cast::<u64>().add(word).write_volatile(0);
            }
            (*share).owner = owner;
        }
    }
    Some((chosen, share))
}

#[inline(always)]
fn count(user: &mut Share, what: u64) {
    let at = (what & 7) as usize;
    // SAFETY: within the slot.
    unsafe { add((&raw mut user.lost).cast::<u64>().add(at), 1) };
}

/// Adds in one instruction (`BPF_ATOMIC | BPF_ADD`); core has none for this target.
///
/// # Safety
/// `to` may be written; the verifier checks.
#[inline(always)]
unsafe fn add(to: *mut u64, n: u64) {
    // SAFETY: by contract.
    unsafe { asm!("lock *(u64 *)({0} + 0) += {1}", in(reg) to, in(reg) n) };
}
