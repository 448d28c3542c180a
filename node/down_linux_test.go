package node

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// deviceLab is a node with a device of each kind, and guests that do not change.
//
//	far: kernel vxlan 10.0.10.2 --- node --- steady (TAP moved away) 10.0.10.9
//	                                  |----- made0, a TAP of the node, 10.0.10.3
//	                                  |----- keep0, a persistent TAP, 10.0.10.4
//	                                  |----- veth0, a veth to a host of its own, 10.0.10.5
//	                                  |----- tun0, a TUN of the node, routed: 10.9.0.1
type deviceLab struct {
	*site
	t                 *testing.T
	far, steady, host *netns.Host
}

func newDeviceLab(t *testing.T) *deviceLab {
	t.Helper()
	l := newLab(t)
	d := &deviceLab{t: t}
	d.far = l.plug("far", "192.0.2.2").h
	d.far.VXLAN("vx0", netns.VXLAN{ID: 10, Local: "192.0.2.2", Remote: "192.0.2.1", Dev: "eth0", Addr: "10.0.10.2/24"})
	d.far.IP("route", "add", "10.9.0.0/24", "via", "10.0.10.254")
	d.host = l.n.Host("host")
	d.site = l.plug("node", "192.0.2.1")
	d.keep()
	d.veth("veth0")
	d.run(parse(t, `{
	  "tunnels": [{"name": "vx", "local": "192.0.2.1"}],
	  "ports": [{"name": "steady"}, {"name": "made0", "mac": "02:00:00:00:00:03"}, {"name": "keep0", "mac": "02:00:00:00:00:04"}, {"name": "veth0", "type": "packet"}, {"name": "tun0", "type": "tun"}],
	  "segments": [
	    {"vni": 10, "tunnel": "vx", "flood": ["192.0.2.2"],
	     "members": [{"port": "steady"}, {"port": "made0"}, {"port": "keep0"}, {"port": "veth0"}],
	     "gateway": {"vrf": "red", "addresses": ["10.0.10.254/24"], "mac": "02:00:00:00:0f:fe"}},
	    {"vni": 30, "members": [{"port": "tun0"}], "gateway": {"vrf": "red", "addresses": ["10.0.30.1/32"]}}
	  ],
	  "vrfs": [{"name": "red", "routes": [{"prefix": "10.9.0.0/24", "via": [{"segment": 30}]}]}]}`))
	d.steady = d.guest("steady", "10.0.10.9/24", "")
	for dev, a := range map[string]string{"made0": "10.0.10.3/32", "keep0": "10.0.10.4/32", "tun0": "10.9.0.1/32"} {
		d.addr(dev, a)
	}
	d.pings()
	return d
}

// keep makes the persistent TAP.
func (d *deviceLab) keep() { d.h.IP("tuntap", "add", "dev", "keep0", "mode", "tap") }

// veth makes a veth whose other end has an address in the host.
func (d *deviceLab) veth(name string) {
	d.h.IP("link", "add", name, "type", "veth", "peer", "name", "eth9", "netns", d.host.NS)
	d.h.Up(name)
	d.host.SetMAC("eth9", "02:00:00:00:00:05")
	d.host.Up("eth9")
	d.host.Addr("eth9", "10.0.10.5/24")
}

// addr gives a device of the node an address, through which alone it is reached.
func (d *deviceLab) addr(dev, a string) {
	d.t.Helper()
	d.h.IP("addr", "add", a, "dev", dev)
	table := fmt.Sprint(1000 + int(a[strings.LastIndexByte(a, '/')-1]))
	d.h.Try(d.t.Context(), "ip", "rule", "del", "table", table)
	d.h.IP("rule", "add", "from", strings.TrimSuffix(a, "/32"), "table", table)
	d.h.IP("route", "replace", "10.0.10.0/24", "dev", dev, "table", table)
	for _, x := range []string{"all", dev} {
		d.h.Sysctl("net.ipv4.conf."+x+".rp_filter", "0")
		d.h.Sysctl("net.ipv4.conf."+x+".arp_ignore", "1")
	}
}

// pings has the far host ping what is behind each port.
func (d *deviceLab) pings() {
	d.t.Helper()
	for _, a := range []string{"10.0.10.3", "10.0.10.4", "10.0.10.5", "10.0.10.9", "10.9.0.1"} {
		d.far.Until(a+" answers", func() bool {
			_, err := d.far.Try(d.t.Context(), "ping", "-n", "-c", "1", "-W", "0.5", a)
			return err == nil
		})
	}
}

// want waits until these ports are down.
func (d *deviceLab) want(names ...string) (list []DownPort) {
	d.t.Helper()
	d.h.Until(fmt.Sprintf("down: %q", names), func() bool {
		list = d.Down()
		return slices.EqualFunc(list, names, func(p DownPort, name string) bool { return p.Name == name })
	})
	return list
}

// tries waits until the node has tried a port some more times.
func (d *deviceLab) tries(name string, times int) {
	d.t.Helper()
	next := func() time.Time {
		for _, p := range d.Down() {
			if p.Name == name {
				return p.Next
			}
		}
		d.t.Fatalf("%s is not down", name)
		return time.Time{}
	}
	for range times {
		was := next()
		d.h.Until(name+" is tried", func() bool { return next() != was })
	}
}

// madeAgain waits until the node has made a device again that was deleted, which may take less time than to see it down.
func (d *deviceLab) madeAgain(dev string) {
	d.t.Helper()
	d.h.Until(dev+" is made again", func() bool { return d.has(dev) && len(d.Down()) == 0 })
}

func (d *deviceLab) has(dev string) bool {
	_, err := d.h.Try(d.t.Context(), "ip", "link", "show", "dev", dev)
	return err == nil
}

// Devices are deleted, renamed, moved and made again under traffic: their ports are listed and come back by themselves,
// and the traffic of others does not notice.
func TestDevicesGoAndComeBack(t *testing.T) {
	d := newDeviceLab(t)
	before := dump(d.Node)
	stop := d.steady.Pinging("10.0.10.2")
	// Traffic to all that come and go.
	for _, a := range []string{"10.0.10.3", "10.0.10.4", "10.0.10.5", "10.9.0.1"} {
		d.far.Start("ping", "-n", "-q", "-i", "0.005", a)
	}
	d.h.IP("link", "del", "made0")
	d.madeAgain("made0")
	d.addr("made0", "10.0.10.3/32")

	d.h.IP("link", "del", "tun0")
	d.madeAgain("tun0")
	d.addr("tun0", "10.9.0.1/32")

	d.h.IP("link", "del", "keep0")
	if p := d.want("keep0")[0]; p.Type != PortTAP || p.Next.IsZero() || !strings.Contains(p.Err.Error(), "keep0") {
		t.Errorf("%+v", p)
	}
	d.tries("keep0", 2)
	if p := d.want("keep0")[0]; d.has("keep0") || !strings.Contains(p.Err.Error(), "there is no persistent device with this name") {
		t.Errorf("the node has made a device that was not its own: %+v", p)
	}
	d.keep()
	d.want()
	d.addr("keep0", "10.0.10.4/32")

	d.h.IP("link", "del", "veth0")
	d.want("veth0")
	d.tries("veth0", 2)
	d.veth("veth0")
	d.want()
	d.pings()

	// A device that is renamed stays the port's; when it is deleted, the port goes to the one that has the name now.
	d.h.IP("link", "set", "veth0", "down")
	d.h.IP("link", "set", "veth0", "name", "other0")
	d.h.Up("other0")
	d.pings()
	d.want()
	d.host.IP("link", "set", "eth9", "name", "old9")
	d.host.IP("addr", "flush", "dev", "old9")
	d.veth("veth0")
	d.h.IP("link", "del", "other0")
	d.pings() // it may be back before anybody has seen it down
	d.want()

	// Moved away and back.
	d.h.IP("link", "set", "veth0", "netns", d.steady.NS)
	d.want("veth0")
	d.tries("veth0", 1)
	d.steady.IP("link", "set", "veth0", "netns", d.h.NS)
	d.h.Up("veth0")
	d.want()
	d.pings()

	// All at once; one of them is deleted where it was moved to.
	d.h.IP("link", "set", "made0", "netns", d.host.NS)
	d.host.IP("link", "del", "made0")
	d.h.IP("link", "del", "tun0")
	d.h.IP("link", "del", "keep0")
	d.h.IP("link", "del", "veth0")
	d.keep()
	d.veth("veth0")
	d.h.Until("all have been down, and are back", func() bool {
		return len(d.Down()) == 0 && d.has("made0") && d.has("tun0") && d.running("veth0") && d.running("keep0")
	})
	for dev, a := range map[string]string{"made0": "10.0.10.3/32", "keep0": "10.0.10.4/32", "tun0": "10.9.0.1/32"} {
		d.addr(dev, a)
	}
	d.pings()
	if sent, answered := stop(); answered < sent-1 {
		t.Errorf("%d of %d pings of others answered", answered, sent)
	}
	learned := func(line string) bool { return strings.Contains(line, " learned") || strings.HasPrefix(line, "neigh ") }
	if got, want := slices.DeleteFunc(dump(d.Node), learned), slices.DeleteFunc(before, learned); !slices.Equal(got, want) {
		t.Errorf("\n%s\nbefore:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, err := os.Stat("/sys/class/net/made0"); err == nil {
		t.Error("a device was made where the test runs")
	}
}

// running reports whether a port is attached.
func (d *deviceLab) running(name string) bool {
	for _, p := range d.Switch().Stats().Ports {
		if p.Name == name {
			return true
		}
	}
	return false
}
