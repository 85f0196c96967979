"""PORTABLE: the link options of programs that //runner:dist holds."""

# DT_RPATH, not RUNPATH, because the loader also uses it for the libraries that libdnnl.so.2 needs.
# The build tree has no folder lib/, so there the loader goes on to the system's libraries.
PORTABLE = [
    "-Wl,--disable-new-dtags",
    "-Wl,-rpath,'$$ORIGIN/lib'",
]
