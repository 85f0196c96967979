#!/usr/bin/env bash
# Installs the Debian packages of tools/packages.txt that are missing; says nothing and asks nobody when all are there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
missing=()
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
while read -r package; do
  [ -z "$package" ] || grep -qxF -- "$package" <<<"$installed" || missing+=("$package")
done <"$here/packages.txt"
[ ${#missing[@]} -eq 0 ] && exit 0

echo "installing Debian packages: ${missing[*]}" >&2
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "error: root or sudo is needed to install: ${missing[*]}" >&2; exit 1; }
  sudo=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get -o DPkg::Lock::Timeout=500 update -qq >&2
"${sudo[@]}" apt-get -o DPkg::Lock::Timeout=500 install -y -qq --no-install-recommends "${missing[@]}" >&2
