#!/usr/bin/env python3
"""tidy: the house rules as a test. Run from the root: `python3 tools/tidy.py`.

Each finding is `file:line: what; way out`. The last line counts files, in the words of the other
tests. A comment at the end of a line allows an exception: `// tidy: allow <word> (<reason>)`, with
the word that the finding names (`columns` for a long line).
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import build_files

COLUMNS = 100
CODE = {".cc", ".h", ".capnp", ".bzl", ".py", ".sh"}
CXX = {".cc", ".h", ".cu"}
TEXT = CODE | {".cu", ".md", ".toml", ".txt", ".expected", ".yml", ""}
NAMES = ("util", "helper", "common", "misc", "manager")


class Rule:
    """A pattern that code must not contain, with its word, the way out, and its files."""

    def __init__(self, word, pattern, way_out, applies):
        self.word = word
        self.pattern = re.compile(pattern)
        self.way_out = way_out
        self.applies = applies


def cxx(path):
    return path.suffix in CXX


def header(path):
    return path.suffix == ".h"


def outside_main(path):
    return cxx(path) and str(path) != "runner/main.cc"


def outside_cuda(path):
    return cxx(path) and "cuda" not in path.parts and path.suffix != ".cu"


# The guard of a header is allowed.
CONDITION = r"^\s*#\s*(if|ifdef|elif|ifndef(?!\s+\w+_H_?\s*$))\b"

RULES = [
    Rule("std::cout", r"\bstd::(cout|cerr|clog)\b", "use a kj::OutputStream or kj::str", cxx),
    Rule("throw", r"\bthrow\b(?!\()", "use KJ_REQUIRE, KJ_FAIL_REQUIRE or configs::fail", cxx),
    Rule("exit(", r"(^|[;{})]|\belse\b)\s*(std::|::)?exit\s*\(",
         "return from main; a child uses _exit", outside_main),
    Rule("sleep(", r"\b(u|nano)?sleep(_for|_until)?\s*\(", "wait for the event, or use kj::Timer",
         cxx),
    Rule("#if", CONDITION, "choose a folder in BUILD, or dispatch at run time", outside_cuda),
    Rule("std::string", r"\bstd::string\b", "use kj::String or kj::StringPtr", header),
    Rule("new", r"(?<![\w#])new\b(?=\s+[\w:(])", "use kj::heap", cxx),
    Rule("delete", r"(?<!\w)delete\b(\[\])?\s+\w", "let an owner destroy it", cxx),
    Rule("shared_ptr", r"\bshared_ptr\b", "use kj::Own with one owner, or kj::refcounted", cxx),
    Rule("KJ_DBG", r"\bKJ_DBG\b", "remove it", cxx),
]
TODO_NOW = re.compile(r"TODO\(now" + r"\)")
ALLOW = re.compile(r"(?://|#)\s*tidy: allow (\S+) \([^)]+\)\s*$")


RAW_STRING = r'R"(\w*)\((?s:.*?)\)\1"'


def blanked(pattern, text):
    """Returns `text` with every match of `pattern` replaced by spaces. Lines keep their lengths."""
    return re.sub(pattern, lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)


def strip(text):
    """`text` without its comments and literals."""
    return blanked(RAW_STRING + r'|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*(?s:.*?)\*/' +
                   r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", text)


def listed_files():
    """Every file that is tracked, or that could be: what git does not ignore."""
    out = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, stdout=subprocess.PIPE).stdout
    files = sorted({Path(name) for name in out.decode().split("\0") if name})
    return [path for path in files if path.is_file() and not path.is_symlink()]


class Tidy:
    def __init__(self):
        self.findings = []

    def find(self, path, line, what, way_out):
        self.findings.append((str(path), line, f"{what}; {way_out}"))

    def check_name(self, path):
        for word in re.split(r"[_.\-]", path.stem.lower()):
            if word.rstrip("s") in NAMES:
                self.find(path, 1, f"a file called `{word}`", "name it after what is in it")

    def check_lines(self, path, text, lines):
        # Lines of a raw string may be exact output of another program.
        ours = blanked(RAW_STRING, text).split("\n") if cxx(path) else lines
        golden = path.suffix == ".expected"
        for number, line in enumerate(lines, 1):
            quoted = line.strip() and not ours[number - 1].strip()
            allowed = ALLOW.search(line)
            if line != line.rstrip() and not golden and not quoted:
                self.find(path, number, "white space at the end of the line", "remove it")
            if path.suffix in CODE and len(line) > COLUMNS and not quoted and not allowed:
                self.find(path, number, f"{len(line)} columns", f"break the line at {COLUMNS}")
            if TODO_NOW.search(line):
                self.find(path, number, "a task for this very change", "do it")

    def check_head(self, path, lines):
        first = lines[0] if lines else ""
        if header(path) and not re.match(rf"// {re.escape(str(path))}: \S", first):
            self.find(path, 1, "no line that says what is in this header",
                      f"begin with `// {path}: …`")
        if path.name in ("BUILD", "BUILD.bazel") and not first.startswith("# "):
            self.find(path, 1, "no line that says what this folder is", "begin with `# …`")

    def check_words(self, path, text, lines):
        rules = [rule for rule in RULES if rule.applies(path)]
        if not rules:
            return
        for number, code in enumerate(strip(text).split("\n"), 1):
            for rule in rules:
                if not rule.pattern.search(code):
                    continue
                allowed = ALLOW.search(lines[number - 1])
                if not allowed or allowed.group(1) != rule.word:
                    self.find(path, number, f"`{rule.word}`", rule.way_out)

    def check_orphans(self, files, texts):
        """A source that no BUILD file names is compiled by nobody."""
        builds = {path: texts[path] for path in files
                  if path.name in ("BUILD", "BUILD.bazel", "WORKSPACE") or path.suffix == ".bzl"}
        for path in files:
            if path.suffix not in (".cc", ".h", ".cu", ".capnp", ".bzl"):
                continue
            if not any(self.names(*build, path) for build in builds.items() if build[0] != path):
                self.find(path, 1, "no BUILD file names it",
                          "add it to a target or remove it")

    @staticmethod
    def names(build, text, path):
        if path.suffix == ".bzl":
            return f":{path.name}" in text
        if build.parent not in path.parents:
            return False
        relative = str(path.relative_to(build.parent))
        if f'"{relative}"' in text:
            return True
        # module() compiles x.h, x.cc and x_test.cc for each "x". unit_test() compiles x_test.cc for
        # "x_test".
        stem = path.stem
        return build.parent == path.parent and any(
            f'"{name}"' in text for name in (stem, stem.removesuffix("_test")))

    def check_format(self, files):
        sources = [path for path in files if path.suffix in (".cc", ".h")]
        if not sources:
            return
        if shutil.which("clang-format") is None:
            print("tidy: clang-format not installed, format not checked")
            return
        run = subprocess.run(["clang-format", "--dry-run", "-Werror", *map(str, sources)],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        seen = set()
        for path, line in re.findall(r"^(\S+?):(\d+):\d+: error:", run.stdout, re.M):
            if path not in seen:
                seen.add(path)
                self.find(path, int(line), "not formatted by clang-format", "run clang-format -i")
        if run.returncode and not seen:
            self.find(".clang-format", 1, "clang-format failed", run.stdout.strip())

    def check_patch(self, path):
        run = subprocess.run(["git", "apply", "--check", str(path)],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if run.returncode:
            self.find(path, 1, f"does not apply: {run.stdout.strip()}", "make the patch anew")

    def check_file(self, path, text):
        lines = text.split("\n")
        self.check_name(path)
        self.check_lines(path, text, lines)
        self.check_head(path, lines)
        self.check_words(path, text, lines)
        if text and not text.endswith("\n"):
            self.find(path, len(lines), "no newline at the end", "add one")


def main():
    tidy = Tidy()
    texts = {}
    for path in listed_files():
        if path.suffix not in TEXT:
            continue
        try:
            texts[path] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            texts[path] = ""
            tidy.find(path, 1, f"not UTF-8 at byte {error.start}", "save it as UTF-8")
    files = list(texts)
    for path in files:
        tidy.check_file(path, texts[path])
    for path in listed_files():
        if path.suffix == ".patch":
            tidy.check_patch(path)
    tidy.check_orphans(files, texts)
    for path, line, what, way_out in build_files.findings(files):
        tidy.find(path, line, what, way_out)
    tidy.check_format(files)

    for path, line, message in sorted(tidy.findings):
        print(f"{path}:{line}: {message}")
    failed = len({path for path, _, _ in tidy.findings})
    print(f"tidy: {len(files) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
