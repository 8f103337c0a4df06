#!/bin/bash
# Installs, upgrades, removes and purges a Debian package in a copy of this machine's root, which
# is gone afterwards. Usage: scratch-root.sh PACKAGE FOLDER, in namespaces of its own (unshare).
set -euo pipefail
deb=$1 folder=$2

mount -t tmpfs scratch "$folder"
mkdir "$folder"/{upper,work,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
root=$folder/root
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs run "$root/run"
cp "$deb" "$root/run/waymark.deb"
in_root() { chroot "$root" "$@"; }

in_root dpkg --install --force-depends /run/waymark.deb >&2
in_root getent passwd waymark >&2
[ "$(in_root stat -c '%U %a' /var/lib/waymark)" = 'waymark 700' ]
in_root waymark check >&2
in_root waymark --version >&2
echo 'ok install'

# Under the unit's user, with its folders.
mkdir -p "$root/var/cache/waymark" "$root/srv/www"
in_root chown waymark: /var/cache/waymark
echo '<h1>mine</h1>' > "$root/srv/www/index.html"
chmod 644 "$root/srv/www/index.html"
sed -i 's/127.0.0.1:8080/127.0.0.1:0/' "$root/etc/waymark/server.ini"
in_root setpriv --reuid=waymark --regid=waymark --clear-groups --inh-caps=-all env -i \
  PATH=/usr/bin:/bin XDG_CACHE_HOME=/var/cache \
  waymark serve --config /etc/waymark/server.ini > "$folder/out" &
server=$!
until grep -q 'serves http' "$folder/out"; do sleep 0.1; kill -0 $server; done
url=$(grep -o 'serves http://[^ "]*' "$folder/out" | cut -d' ' -f2)
port=${url##*:}
exec 3<> "/dev/tcp/127.0.0.1/$port"
printf 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
grep -q '<h1>mine</h1>' <&3
echo 'ok serve'

# An upgrade keeps the changed ini file, and the old process while it serves.
in_root dpkg-deb --raw-extract /run/waymark.deb /run/next
sed -i 's/^Version: .*/Version: 99.0.0/' "$root/run/next/DEBIAN/control"
in_root dpkg-deb -Znone --build /run/next /run/next.deb >&2
rm -r "$root/run/next"
in_root dpkg --install --force-depends --force-confdef /run/next.deb >&2
grep -q '127.0.0.1:0' "$root/etc/waymark/server.ini"
kill -0 $server
in_root setpriv --reuid=waymark --regid=waymark --clear-groups env -i \
  PATH=/usr/bin:/bin XDG_CACHE_HOME=/var/cache waymark restart --config /etc/waymark/server.ini >&2
kill "$(cut -d' ' -f1 "$root/var/lib/waymark/serve.pid")"
echo 'ok upgrade'

in_root dpkg --remove waymark >&2
[ ! -e "$root/usr/bin/waymark" ]
[ -e "$root/etc/waymark/server.ini" ]
[ -e "$root/var/lib/waymark/data.mdb" ]
echo 'ok remove'

in_root dpkg --purge waymark >&2
[ ! -e "$root/etc/waymark" ]
[ ! -e "$root/var/lib/waymark" ]
! in_root getent passwd waymark >&2
[ -e "$root/srv/www/index.html" ]
echo 'ok purge'
