#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# try_in_chroot.sh PACKAGES [RELEASE [MIRROR]]: installs the wheel, and then the Debian packages, of a folder that `./bootstrap.sh package` made into a fresh
# Debian (bookworm, where they were built there), runs the demo of each and removes it again. As root, with debootstrap and the network; nothing is left behind.
# Exit status 75: it cannot be tried here.
set -euo pipefail
packages=$(readlink -f "$1")
release="${2:-bookworm}"
mirror="${3:-}"
root=$(mktemp -d)

leave() {
    for place in proc sys dev; do mountpoint -q "$root/$place" && umount -R "$root/$place"; done
    rm -rf --one-file-system "$root"
}
trap leave EXIT

inside() { chroot "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy="$http_proxy"} "$@"; }
not_here() { echo "$1: the packages are not tried in a fresh Debian" >&2; exit 75; }
seconds() { printf '%s: %s s\n' "$1" "$((SECONDS - started))"; }

# shellcheck disable=SC2086  # the mirror may be left out
debootstrap --variant=minbase "$release" "$root" $mirror >/dev/null || not_here "no Debian $release could be fetched"
mount -t proc proc "$root/proc" || not_here 'no right to mount'
mount --rbind /sys "$root/sys" && mount --make-rslave "$root/sys" || not_here 'no right to mount'
mount --rbind /dev "$root/dev" && mount --make-rslave "$root/dev" || not_here 'no right to mount'
mkdir "$root/packages"
cp "$packages"/*.deb "$packages"/*.whl "$root/packages/"

inside apt-get install -y -qq --no-install-recommends python3-venv >/dev/null 2>&1
started=$SECONDS
inside sh -euc 'cd /root; python3 -m venv clean; clean/bin/pip install -q --no-index /packages/*.whl; PATH=$PWD/clean/bin:$PATH; rankscope demo -o of-the-wheel >report; grep RS301 report'
seconds 'wheel to diagnosis'
inside sh -euc 'cd /root; clean/bin/pip uninstall -q -y rankscope; ! test -e clean/bin/rankscope'

started=$SECONDS
inside sh -euc 'apt-get install -y -qq --no-install-recommends /packages/rankscope_*.deb >/dev/null; cd /root; rankscope demo -o of-the-package >report; grep RS301 report'
seconds 'Debian package to diagnosis'
for window in "$packages"/rankscope-gui_*.deb; do
    [ -e "$window" ] || continue
    inside sh -euc 'apt-get install -y -qq --no-install-recommends /packages/rankscope-gui_*.deb >/dev/null; cd /root; rankscope view of-the-package --screenshot picture.png; test -s picture.png'
    seconds 'with the timeline, to a picture'
done
inside apt-get purge -y -qq 'rankscope*' >/dev/null
inside sh -euc '! command -v rankscope && ! test -e /usr/lib/rankscope && ! test -e /usr/share/rankscope'
echo 'all is removed again'
