"""PORTABLE: how a program is linked that //runner:dist holds."""

# DT_RPATH, not RUNPATH: it also serves what libdnnl.so.2 itself needs. In the build tree there is
# no such folder, and the loader goes on to the system's.
PORTABLE = [
    "-Wl,--disable-new-dtags",
    "-Wl,-rpath,'$$ORIGIN/lib'",
]
