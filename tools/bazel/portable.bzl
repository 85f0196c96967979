"""PORTABLE: how a program is linked that //runner:dist holds."""

# DT_RPATH, not RUNPATH, because it also serves the libraries that libdnnl.so.2 needs. The build
# tree has no such folder, and there the loader goes on to the system's libraries.
PORTABLE = [
    "-Wl,--disable-new-dtags",
    "-Wl,-rpath,'$$ORIGIN/lib'",
]
