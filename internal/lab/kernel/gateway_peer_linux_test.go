package kernel

import (
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// kernelVTEP joins a host to the underlay that has a bridge over a vxlan device of a VNI,
// which floods to the peers; and plugs another host, n of a subnet, into port, a device of
// the first.
func (f *fabric) kernelVTEP(vni int, subnet, n byte, peers ...string) (k, vm *netns.Host, addr, port string) {
	f.t.Helper()
	k, addr = f.plug("K")
	k.Sysctl("net.ipv6.conf.default.disable_ipv6", "1") // of bridge and ports, which are nobody's
	vm = f.vm(frame.VNI(vni), subnet, n)
	dev, port := f.n.Link(vm, "", k, "")
	vm.SetMAC(dev, hostMAC(subnet, n).String())
	k.VXLAN("vx0", netns.VXLAN{ID: vni, Local: addr, Dev: "eth0", Flood: peers})
	k.Bridge("br0", "vx0")
	vm.Ready()
	k.Ready()
	return k, vm, addr, port
}

// A host behind the kernel's vxlan and bridge uses our gateway, which for both hosts is on
// another node.
//
//	VM1 -- A === VNI 10 === B === VNI 20 === K, the kernel -- VM5
//	                    G10   G20
func TestKernelUsesCentralGateway(t *testing.T) {
	f := newFabric(t, 2)
	a, b := f.leaves[0], f.leaves[1]
	f.mesh(10, a, b)
	k, vm5, addr, port := f.kernelVTEP(20, 20, 5, b.addr)
	k.IP("link", "set", port, "master", "br0")
	vm5.MTU("eth0", b.v.MTU(0)-encap.EthernetLen)
	behind(vm5, "eth0", 20, 5)
	b.vsi(20, addr)
	b.gateway("red", 10, 10, false)
	b.gateway("red", 20, 20, false)
	vm1 := a.host(10, 10, 1, 1450)
	for _, fam := range []struct {
		name  string
		in    func(subnet, n byte) string
		extra []string
	}{
		{"IPv4", in4, nil},
		{"IPv6", in6, []string{"A>B 10 VM1>all who-has fd00:10::254", "B>A 10 G10>VM1 fd00:10::254 is-at G10"}},
	} {
		t.Run(fam.name, func(t *testing.T) {
			gate, there := fam.in(20, gatewayNo), fam.in(10, 1)
			w := f.watch()
			wantTTL(t, vm5, there, 63)
			w.want(slices.Concat([]string{
				"K>B 20 VM5>all who-has " + gate,
				"B>K 20 G20>VM5 " + gate + " is-at G20",
				"K>B 20 VM5>G20 ping 64",
				"B>A 10 G10>all who-has " + there,
				"A>B 10 VM1>G10 " + there + " is-at VM1",
				"B>A 10 G10>VM1 ping 63",
			}, fam.extra, []string{
				"A>B 10 VM1>G10 pong 64",
				"B>K 20 G20>VM5 pong 63",
			})...)
			t.Log(vm5.IPerf(vm1, there, "-n", "4M"))
			t.Log(vm1.IPerf(vm5, fam.in(20, 5), "-n", "4M"))
			for _, h := range []*netns.Host{vm1, vm5} { // else the last of it is in the next capture
				h.Until("TCP is over", func() bool { return h.Run("ss", "-Htn", "exclude", "listening", "exclude", "time-wait") == "" })
			}
		})
	}
}

// The other router of an L3VNI is the kernel: it routes between a bridge over the vxlan
// device, whose MAC is the router's, and its host's link. Each knows the other by static
// entries, as a control plane would make them.
//
//	VM1 -- A === L3VNI 999 === K, the kernel -- VM7 (subnet 30)
//	    G10  RA              RK
func TestSymmetricIRBWithKernel(t *testing.T) {
	f := newFabric(t, 1)
	a := f.leaves[0]
	a.vsi(10)
	a.gateway("red", 10, 10, false)
	vm1 := a.host(10, 10, 1, 1450)

	k, vm7, addr, port := f.kernelVTEP(999, 30, 7)
	behind(vm7, "eth0", 30, 7)
	rk := frame.MAC{2, 0, 0, 0xdd, 0, 'K'}
	f.names[rk.String()] = "RK"
	k.SetMAC("br0", rk.String())
	for _, dev := range []string{"br0", port} {
		k.Sysctl("net.ipv6.conf."+dev+".disable_ipv6", "0")
	}
	k.Sysctl("net.ipv4.ip_forward", "1")
	k.Sysctl("net.ipv6.conf.all.forwarding", "1")
	k.Addr(port, in4(30, gatewayNo)+"/24,"+in6(30, gatewayNo)+"/64")
	k.Run("bridge", "fdb", "add", a.router().String(), "dev", "vx0", "dst", a.addr)
	k.Neighbour("br0", "169.254.0.1", a.router().String())
	k.Neighbour("br0", "fe80::1", a.router().String())
	k.Route("10.0.10.0/24", "via", "169.254.0.1", "dev", "br0", "onlink")
	k.IP("-6", "route", "add", "fd00:10::/64", "via", "fe80::1", "dev", "br0", "onlink")

	a.reach(a.l3vni("red", 999), "red", rk, addr, "10.0.30.0/24", "fd00:30::/64")
	inSubnets(t, func(t *testing.T, in func(subnet, n byte) string) {
		w := f.watch()
		wantTTL(t, vm1, in(30, 7), 62)
		w.want("A>K 999 RA>RK ping 63", "K>A 999 RK>RA pong 63")
		wantTTL(t, vm7, in(10, 1), 62)
		// VM7's link takes 1500 bytes, the tunnel 1450: the kernel tells it.
		t.Log(vm7.IPerf(vm1, in(10, 1), "-n", "4M"))
		t.Log(vm1.IPerf(vm7, in(30, 7), "-n", "4M"))
	})
	got, want := a.macs(10, 999), "map[10:[G10 VM1] 999:[RA RK]]"
	check.True(t, got == want, "A has %s, want %s", got, want)
	for _, e := range k.FDB("vx0") {
		check.True(t, e.MAC != hostMAC(10, 1).String(), "the kernel has VM1's MAC: %+v", e)
	}
}
