#!/usr/bin/env bash
# Installs the container software that the end-to-end tests use, as far as it
# is missing: Debian or Ubuntu packages, as root.
set -euo pipefail

packages=(podman runc catatonit busybox-static qemu-user-static skopeo umoci containerd rpm man-db bash-completion)
missing=()
for package in "${packages[@]}"; do
  [[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) == ii* ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi
echo "installing ${missing[*]}"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
