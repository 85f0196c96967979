#!/usr/bin/env bash
# Packs programs so that they run on a machine that has only glibc:
# tools/dist.sh OUT.tar.gz PROGRAM… -- FILE…
# The tar holds, under runner/, the programs without symbols, and each FILE at its path. lib/ has
# every shared library that the programs need here, except those of glibc. Programs find lib/ by
# their own DT_RPATH: tools/bazel/portable.bzl. The tar does not hold NVIDIA's libraries, which are
# opened at run time.
set -euo pipefail
out=$(realpath -m "$1")
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
root=$folder/runner
mkdir -p "$root/lib"

programs=()
while [ "$1" != -- ]; do
  programs+=("$1")
  shift
done
shift

for program in "${programs[@]}"; do
  if [[ $(readelf -d "$program") != *'(RPATH)'*'$ORIGIN/lib]'* ]]; then
    echo "error: $program does not look into lib/; link it with PORTABLE" >&2
    exit 1
  fi
  strip -o "$root/$(basename "$program")" "$program"
done

# The loader and the libraries of its release must be those of the system.
glibc='ld-linux-.*|lib(c|m|dl|pthread|rt|resolv|util|anl|mvec|nsl|nss_.*)'
# ldd prints lines NAME => PATH (ADDRESS).
libraries=$(ldd "${programs[@]}" | sed -nE 's/^\s*(\S+) => (.*)$/\1 \2/p' | sort -u -k1,1)
while read -r name path _; do
  [[ $name =~ ^($glibc)\.so\.[0-9]+$ ]] && continue
  if [ "$path" = not ]; then
    echo "error: $name is not found on this machine" >&2
    exit 1
  fi
  strip --strip-unneeded -o "$root/lib/$name" "$(realpath "$path")"
done <<<"$libraries"

for file in "$@"; do
  mkdir -p "$root/$(dirname "$file")"
  cp -L "$file" "$root/$file"
done

chmod -R u+w,a+rX "$folder"
tar -C "$folder" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -c runner |
  gzip -9n >"$out"
