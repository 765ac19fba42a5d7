"""Texts of commands that the floor refuses; data, never given to a shell."""

REFUSED = r"""
set -- ~; rm -rf "$@"
set -- / ; rm -rf "$1"
set -- -rf ~; rm "$@"
xargs -I{} rm -rf {} <<< ~
xargs rm -rf <<< ~
xargs -n1 rm -rf <<< "$HOME"
cat > s.sh <<< 'rm -rf ~'; bash s.sh
cat > s.sh <<< 'rm -rf ~'; chmod +x s.sh; ./s.sh
cat >s.sh 2>/dev/null <<< 'rm -rf /'; sh s.sh
tee s.sh <<< 'rm -rf ~'; . ./s.sh
perl -e 'use File::Path; remove_tree($ENV{HOME})'
perl -MFile::Path -e 'rmtree($ENV{"HOME"})'
apt-get purge -y '*'
apt remove 'a*'
apt-get autoremove --purge -y 'lib*'
dnf erase -y '*'
ln -sf /dev/null ~/.bashrc
cp /dev/null ~/.zshrc
truncate -s 0 ~/.profile
systemctl stop sshd
systemctl mask sshd
systemctl disable NetworkManager
systemctl isolate rescue.target
usermod -L root
usermod --lock ada
chage -E 0 ada
modprobe -r ext4
mount -o remount,ro /
mount -o rw,remount /boot
ip link set eth0 down
ip link delete br0
ifconfig eth0 down
dpkg -P libc6
dpkg --purge bash
rpm -e glibc
gh api -X DELETE /repos/x/y
gh api --method DELETE repos/x/y
gh api repos/x/y -XDELETE
glab api --method=DELETE projects/1
launchctl bootout system/com.apple.x
launchctl unload /Library/LaunchDaemons/x.plist
"""

ASKED = r"""
set -- a b; rm "$@"
xargs rm <<< build
apt-get purge -y cowsay
ln -sf build/a b
truncate -s 0 log.txt
systemctl --user stop mine
systemctl restart nginx
mount /dev/sdb1 /mnt
ip addr flush
gh api -X POST /repos/x/y
dpkg -i a.deb
[ * ]
[ -f *.py ]
[ -n a ] && [ ? = b ]
uniq *
uniq a*
printf *
openssl req -new -key server.key
env -a ls rm x
env --argv0=ls rm x
env --nothing ls
"""
"""Close to them, and a person decides."""

RUN = r"""
[[ $x == * ]]
env -i ls
env -u X ls
"""
"""Close to those, and they only read."""
