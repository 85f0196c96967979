"""build_files: checks that BUILD files list what sources include, neither more nor less.

findings(files) yields (path, line, what, way_out) for each included file whose target is not in the
deps, and for each dep of which a target includes nothing. Rules written as list comprehensions, and
lists that are not written out (`if_cuda(…)`, `glob(…)`), are not checked.
"""

import ast
import re
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
# Deps that unit_test adds by itself.
GIVEN = frozenset({"//tests:doctest_main"})
TESTS = ("unit_test", "unit_tests")
CHECKED = ("module", "cc_binary", "cc_library") + TESTS


class Target:
    def __init__(self, package, line, kind, attributes, files):
        self.package = package
        self.line = line
        self.kind = kind
        self.attributes = attributes
        self.name = attributes.get("name")
        self.label = f"//{package}:{self.name}"
        stems = attributes.get("modules", [self.name]) if kind == "module" else []
        given = "modules" not in attributes and {"srcs", "hdrs"} & set(attributes)
        inferred = [] if given else stems
        self.hdrs = self.paths("hdrs", inferred, ".h", files)
        self.srcs = self.paths("srcs", inferred, ".cc", files)
        tests = [f"{package}/{test}.cc" for test in attributes.get("tests", [])]
        if kind == "unit_test" and "srcs" not in attributes:
            self.srcs = [f"{package}/{self.name}.cc"]
        if kind == "unit_tests":
            self.srcs = tests
        if kind == "capnp_cc_library":
            self.hdrs = [f"{path}.h" for path in self.srcs]
        self.deps = self.labels("deps")
        self.tests = self.existing(stems or [], "_test.cc", files)
        if kind == "module":
            self.tests += tests

    def existing(self, stems, suffix, files):
        paths = [f"{self.package}/{stem}{suffix}" for stem in stems]
        return [path for path in paths if path in files]

    def paths(self, key, stems, suffix, files):
        """Returns the files of an attribute and of modules, or None if they are not written out."""
        names = self.attributes.get(key, [])
        if names is None or stems is None:
            return None
        return [f"{self.package}/{name}" for name in names] + self.existing(stems, suffix, files)

    def labels(self, key):
        labels = self.attributes.get(key, [])
        return None if labels is None else [self.absolute(label) for label in labels]

    def absolute(self, label):
        if label.startswith(":"):
            return f"//{self.package}{label}"
        if label.startswith("//") and ":" not in label:
            return f"{label}:{label.rpartition('/')[2].lstrip('/')}"
        return label


def literal(node):
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def targets_of(build, files):
    for statement in ast.parse(build.read_text(encoding="utf-8")).body:
        call = getattr(statement, "value", None)
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        attributes = {word.arg: literal(word.value) for word in call.keywords}
        if attributes.get("name"):
            package = "" if build.parent == Path(".") else str(build.parent)
            yield Target(package, call.lineno, call.func.id, attributes, files)


def included(paths):
    for path in paths:
        if Path(path).is_file():
            for header in INCLUDE.findall(Path(path).read_text(encoding="utf-8")):
                yield path, header


def findings(files):
    names = {str(path) for path in files}
    targets = {}
    for path in files:
        if path.name == "BUILD":
            for target in targets_of(path, names):
                targets[target.label] = target
    owners = {}
    for target in targets.values():
        for header in target.hdrs or []:
            owners.setdefault(header, set()).add(target.label)

    for target in targets.values():
        if target.kind not in CHECKED or None in (target.srcs, target.hdrs, target.deps):
            continue
        own = set(target.srcs + target.hdrs)
        given = GIVEN if target.kind in TESTS else frozenset()
        yield from differences(target, target.deps, own, own, owners, targets, given)
        if target.tests:
            # A test has the module and its deps without listing them.
            deps = target.labels("test_deps") or []
            given = GIVEN | {target.label, *target.deps}
            yield from differences(target, deps, target.tests, own, owners, targets, given)


def differences(target, deps, sources, own, owners, targets, given):
    build = Path(target.package) / "BUILD"
    needed = set()
    for path, header in included(sources):
        labels = owners.get(header, set()) - {target.label}
        if header in own or not labels:
            continue
        needed |= labels
        if not labels & (set(deps) | given):
            yield (Path(path), 1, f"{header} is not in the deps of {target.label}",
                   f"add {' or '.join(sorted(labels))} in {build}")
    for label in deps:
        # A dep that has no header, or that shares one with this target, is only linked.
        hdrs = set(targets[label].hdrs or []) if label in targets else set()
        if hdrs and not hdrs & own and label not in needed:
            yield (build, target.line, f"{target.label} includes nothing of {label}",
                   "remove it from the deps")
