"""experiment_test: x.toml, trained by the program, gives the table x.expected."""

def experiment_test(name):
    native.cc_test(
        name = name,
        size = "medium",
        data = [
            name + ".expected",
            name + ".toml",
            "//runner",
        ],
        env = {"EXPERIMENT": name},
        deps = [":experiment_test"],
    )
