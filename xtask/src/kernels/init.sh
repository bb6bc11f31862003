#!/bin/busybox sh
# The first process of the guest: loads what disks need, mounts the system read-only and runs the check in it.
# /check/out goes back as a tar archive on the second disk.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
ln -s /proc/self/fd /dev/fd
# Which of them needs which differs between releases: what is refused for what is not there yet has another turn.
for turn in 1 2 3; do
    for module in $(cat /modules/order); do insmod "/modules/$module" 2>/dev/null; done
done
tries=0
while [ ! -e /dev/vdb ] && [ "$tries" -lt 300 ]; do sleep 0.2; tries=$((tries + 1)); done
[ -e /dev/vdb ] || { echo "init: the disks did not come"; dmesg | tail -n 40; }
mount -t ext4 -o ro /dev/vda /system
mount -t tmpfs tmpfs /system/tmp
mount -t proc proc /system/proc
mount -t sysfs sysfs /system/sys
mount -o bind /dev /system/dev
mount -t tracefs tracefs /system/sys/kernel/tracing
ifconfig lo 127.0.0.1 up
hostname guest
echo "fact up=$(uname -r)"
chroot /system /bin/sh /check.sh
dmesg | tail -n 100 >/system/tmp/out/dmesg
tar -C /system/tmp/out -cf /dev/vdb .
sync
poweroff -f
