#!/usr/bin/env bash
# Installs the Debian packages that are missing: tools/install.sh [LIST]
# LIST is a file with one package per line (default: tools/packages.txt). Prints nothing if all
# packages are installed.
set -euo pipefail
list=${1:-$(dirname "$0")/packages.txt}
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p')
missing=()
while read -r package; do
  [ -z "$package" ] || grep -qxF -- "$package" <<<"$installed" || missing+=("$package")
done <"$list"
[ ${#missing[@]} -eq 0 ] && exit 0

echo "installing Debian packages: ${missing[*]}" >&2
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "error: root or sudo is needed to install: ${missing[*]}" >&2
    exit 1
  fi
  sudo=(sudo)
fi
apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=500 -qq)
"${apt[@]}" update >&2
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2
