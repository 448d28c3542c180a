// Package qemu boots a small Linux guest on a host of [netns], for what the machine's
// own kernel may not have: ipip, sit and ip6tnl devices as peers. Tests read as
// sentences:
//
//	n := netns.New(t)
//	a := n.Host("a")
//	g := qemu.Boot(t, a, qemu.Config{Link: "tap0", Addr: "10.0.0.2/24", Setup: []string{
//		"ip link add ipip0 type ipip local 10.0.0.2 remote 10.0.0.1",
//		"ip addr add 192.168.7.2/24 dev ipip0",
//		"ip link set ipip0 up",
//	}})
//	a.Addr("tap0", "10.0.0.1/24")
//	g.Run("ip -s link show ipip0")
//
//	 namespace of host a
//	+----------------------------------------------------+
//	|                        QEMU                        |
//	|                       +-------------------------+  |
//	|  tap0 -- virtio-net --+ eth0    ipip0 sit0 ...  |  |
//	|                       |         a kernel of     |  |
//	|  socket -- serial ----+ ttyS1   Debian, in RAM  |  |
//	|                       +-------------------------+  |
//	+----------------------------------------------------+
//
// The guest is the kernel in /boot, its modules, busybox, and ip of iproute2 with its
// libraries, in an initramfs that is made once in a process and never is a file; with more
// modules and programs, where Config says so, it is made for that guest. The
// processor is emulated (TCG), so that a guest boots wherever the tests run, in some
// seconds; one guest serves all subtests of a test. Only amd64 has such guests.
//
// Packets cross the TAP complete: the guest's network card offers no checksum or
// segmentation offload.
//
// QEMU, the TAP and what joins it to a link are gone when the test ends, however it ends.
// Where the packages are missing the test is skipped, or, with CI=true in the environment,
// fails.
//
// The package is for tests only.
package qemu
