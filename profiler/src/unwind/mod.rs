//! What the kernel's walker needs to know of a process before it can leave frame pointers behind: tables of
//! libraries, code heaps of JVMs. Nothing yet: the walker follows frame pointers, which needs no table.
