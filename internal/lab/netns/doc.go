// Package netns builds test networks in network namespaces, with the Linux kernel
// as the oracle; it needs root. Tests read as sentences:
//
//	n := netns.New(t)
//	a, b := n.Host("a"), n.Host("b")
//	n.Link(a, "10.0.0.1/24", b, "10.0.0.2/24")
//	b.VXLAN("vx0", netns.VXLAN{ID: 100, Local: "10.0.0.2", Remote: "10.0.0.1", Addr: "192.168.7.2/24"})
//	a.Do(func() { tap, err = port.OpenTAP("tap0", nil) })
//	a.Run("ping", "-c", "1", "10.0.0.2")
//
//	 namespace vxs-PID-N-a          namespace vxs-PID-N-b
//	+----------------------+       +----------------------------+
//	|  a.Run, a.Start      |       |  b.Run, b.Start            |
//	|  a.Do(Go code)       |       |  vx0: the kernel's VTEP    |
//	|                 eth0 +-veth--+ eth0                       |
//	+----------------------+       +----------------------------+
//
// A switch or a router between hosts is a host too (Switch, Plug, Router). What
// passes a device is captured, or sent past the stack:
//
//	c := b.Capture("eth0", "udp port 4789")
//	a.Inject("eth0", frame)
//	got := c.Want(1, nil)      // or c.Stop(): all that was sent before
//	rows := netns.Fields(t, got, "vxlan", "vxlan.vni", "ip.dsfield.ecn")
//
// The kernel answers for itself: FDB and Peers (bridge fdb), Neighbours, Nstat,
// Counter, ChecksumErrors; IPerf measures, and Transfer, Datagrams and Pinging look at what
// arrives.
//
// Everything a test makes is gone when it ends, however it ends; what a killed
// test process left behind is swept by the next one. Namespaces have the process
// id and a number in their names, so that tests may run in parallel.
//
// A [Net] is for tests. Below it are functions that return errors, for programs too: IP,
// Output, Start, Remove, Sweep.
package netns
