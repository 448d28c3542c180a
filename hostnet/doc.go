// Package hostnet makes the host's own network stack a member of a VRF. A switch gives the host a TUN or TAP port; this
// package keeps the kernel's side of it: link up, MTU, addresses, and the routes that lead into it. It is a separate
// module, for Linux: only its importers depend on a library for netlink.
//
//	 kernel: main table                     node
//	+------------------------------+       +--------------------------------------+
//	| 10.65.1.60/32  fd65:1::60/128|       | segment 300: gateway of VRF cluster  |
//	| 10.65.1.0/26 --+             |       |   10.65.1.60/32 -> TUN               |
//	| 10.65.2.0/26 --+--> vxhost0 -+-------+-> 10.65.1.5/32  -> segment of pods   |
//	| 10.96.0.0/12 --+   TUN       |       |   10.65.2.0/26  -> tunnel to node 2  |
//	+------------------------------+       +--------------------------------------+
//	  Host.SetRoutes, proto 118              control.Plane ---Follow---> SetRoutes
//
// In the node, the host is a port of type TUN in a segment with a gateway without a MAC, and its addresses are routes
// into that segment: see the Example. Config.MTU is what fits the tunnels, which the segment of the TUN does not know.
// [Follow] sets a route of the kernel for each prefix that the VRF has a route for, blackholes among them. Without a
// Plane, or with routes of another shape such as flannel's "via 10.244.2.0 onlink" over a TAP, call [Host.SetRoutes], or
// [Host.UpdateRoutes] with what has changed. Routes and next hops go to the kernel many in a system call.
//
// # What is ours
//
// A Host changes and deletes only routes with its protocol number on its device ("ip route show proto 118"), and adds
// with NLM_F_EXCL. If somebody else has a route with the same prefix, metric and table, ours waits until it goes; the
// error names the other one. A process that ends without Close leaves its routes as long as the device lives; the next
// one keeps those that it sets again, without a gap. Leave does so on purpose.
//
// A Route with a MAC comes with a permanent neighbour, which goes with the last route of that next hop.
//
// # Repairs
//
// A goroutine listens to changes. It puts back what others delete or change: routes, addresses, MTU, link up, and
// everything when the device was deleted and made again; neighbours along with these. It looks at most once in
// Config.Interval, and reports to Config.Repaired. A device that is down stays so with Config.Uplink. To stop it from working
// against you, Close the Host.
//
// # Settings of the kernel
//
// The package changes no sysctls. Pods and the host need none. [Host.Check] says what is wrong, one line each:
//
//	net.ipv4.conf.vxhost0.forwarding, net.ipv6.conf.all.forwarding
//	          with Config.Forward: the host forwards between the device and others. net.ipv4.ip_forward sets the
//	          former for all devices; the latter stops router advertisements unless accept_ra is 2
//	net.ipv4.conf.{all,vxhost0}.rp_filter
//	          the higher counts; 1 drops packets from addresses that the kernel has no route for into the device
//	net.ipv6.conf.vxhost0.disable_ipv6
//	          no IPv6 address or route can be set
//
// It also reports a device that is down or that no switch has open, tables that no rule leads to, foreign routes with a
// lower metric, and routes that wait. It does not look at the firewall: forwarded packets pass nftables' forward hook, and
// masquerading there changes the source address that pods see.
//
// # Limits
//
// IPv4 lets routes with one key stand side by side, so one is replaced without a look at others. In IPv6 the replaced
// route is the first with the prefix and metric, so the table is read just before; a foreign route that comes in
// between would be replaced.
//
// Routes must not cover the addresses of tunnel peers, or else the packets of the tunnels enter the VRF: Follow leaves
// out default routes for that reason. Without the process that has the device open, packets of these routes are lost.
package hostnet
