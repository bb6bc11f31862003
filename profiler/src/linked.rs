//! A program that has the C library inside, as what is released, loads no library.
//!
//! glibc would load one for each source that /etc/nsswitch.conf names (libnss_resolve.so.2, libnss_sss.so.2), and the client of
//! HDFS one for Kerberos. These are linked with the C library of the host, and another version of it beside ours in one
//! process may crash. `files` and `dns` are inside glibc itself since 2.34 (its NEWS), so no other source is asked;
//! systemd-resolved is reached by /etc/resolv.conf. Loading fails, which the client of HDFS reports (`emberscope_archive`).
// One call into glibc, and a function in place of one of its.
#![allow(unsafe_code)]

/// Databases, as nsswitch.conf(5) calls them, and the sources that need no library. The libraries that the program is made of
/// ask for addresses of hosts, and for the home directory and the name of the user who runs it.
#[cfg(all(target_env = "gnu", any(test, target_feature = "crt-static")))]
const SOURCES: [(&std::ffi::CStr, &std::ffi::CStr); 3] =
    [(c"hosts", c"files dns"), (c"passwd", c"files"), (c"group", c"files")];

/// To be called before there are threads. Does nothing in a program that is linked dynamically.
pub fn load_nothing() {
    #[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
    let _ = ask_what_is_inside();
}

/// Has glibc ask these sources alone; whether it takes all of them.
#[cfg(all(target_env = "gnu", any(test, target_feature = "crt-static")))]
fn ask_what_is_inside() -> bool {
    unsafe extern "C" {
        // glibc's <nss.h>: 0, or -1 with errno.
        fn __nss_configure_lookup(
            database: *const std::ffi::c_char,
            sources: *const std::ffi::c_char,
        ) -> std::ffi::c_int;
    }
    // SAFETY: both are texts that end with 0 and stay for as long as the program runs; glibc takes a lock of its own.
    let set = |(database, sources): (&std::ffi::CStr, &std::ffi::CStr)| unsafe {
        __nss_configure_lookup(database.as_ptr(), sources.as_ptr()) == 0
    };
    SOURCES.into_iter().all(set)
}

/// dlopen(3) in place of glibc's, for the libraries that this program is made of: it always fails.
///
/// # Safety
/// None is asked for: the arguments are not read.
// SAFETY: the linker takes it before glibc's, which lies in an object of its own (libc.a, dlopen.o); glibc itself calls another
// name (__libc_dlopen_mode). It has dlopen's arguments, and null is among its answers.
#[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(
    _file: *const std::ffi::c_char,
    _flags: std::ffi::c_int,
) -> *mut std::ffi::c_void {
    std::ptr::null_mut()
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;
    use std::net::ToSocketAddrs as _;

    #[test]
    fn hosts_are_found_without_libraries() {
        assert!(ask_what_is_inside());
        let mut found = ("localhost", 80).to_socket_addrs().unwrap();
        assert!(found.all(|address| address.ip().is_loopback()));
    }
}
