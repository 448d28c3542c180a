#!/bin/busybox sh
# The first process of a guest: prepares it, then runs the commands that come in on the
# second serial line.
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox --install -s /bin
export PATH=/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for m in $(cat /modules/order); do
	insmod /modules/$m.ko || echo "module $m: status $?"
done
echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad
echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
ip link set lo up
ip link set eth0 up

exec <>/dev/ttyS1 >&0
stty raw -echo 115200
echo ready
# A command comes as a number, a length and so much base64, and is answered with the number, its
# status and the length of its output, then the output; one that lost a part is asked for
# again. This shell takes its own ip before that of
# the path, but a function before both.
while read -r number length command; do
	if [ "${#command}" != "$length" ]; then
		echo again
		continue
	fi
	out=/tmp/$number
	{
		printf '%s' 'ip() { /sbin/ip "$@"; }; '
		echo "$command" | base64 -d
	} >/tmp/command
	sh /tmp/command >$out 2>&1 </dev/null
	echo "$number $? $(wc -c <$out)"
	cat $out
	rm $out
done
