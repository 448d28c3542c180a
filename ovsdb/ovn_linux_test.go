package ovsdb

import (
	"strings"
	"testing"
)

// A logical switch of OVN has a port on a chassis, Open vSwitch with ovn-controller, and by ovn-controller-vtep one of ours. The hosts
// behind them reach each other both ways, by addresses that OVN knows and by ARP that it floods, and still do when they have changed
// places.
func TestOVN(t *testing.T) { servers(t, testOVN) }

func testOVN(t *testing.T, l *lab) {
	far := l.Host("far")
	l.Link(far, "10.0.0.2/24", l.theirs, "")
	l.theirs.IP("link", "set", "eth1", "name", "far")
	l.theirs.IP("addr", "flush", "dev", "eth0") // the bridge of Open vSwitch has it
	far.TxOff("eth0")
	l.guest.TxOff("p1")
	ovn := l.db.OVN(l.theirs, "192.0.2.2", "far")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(ovn.State())
		}
	})
	here, there := l.guest.MAC("p1"), far.MAC("eth0")
	ovn.NB("ls-add", "net", "--", "lsp-add", "net", "far", "--", "lsp-set-addresses", "far", there+" 10.0.0.2",
		"--", "lsp-add", "net", "ours", "--", "lsp-set-type", "ours", "vtep", "--", "lsp-set-addresses", "ours", "unknown",
		"--", "lsp-set-options", "ours", "vtep-physical-switch=us", "vtep-logical-switch=ls0")
	l.db.Ctl("add-ls", "ls0", "--", "bind-ls", "us", "p1", "0", "ls0")
	reach := func(here, there, hereIP, thereIP string) {
		t.Helper()
		l.until("the chassis has "+there, func() bool { return strings.Contains(l.rows(), "mac "+there) })
		l.guest.Ping(thereIP, 3)
		far.Ping(hereIP, 3)
		l.until("the database has "+here+" with us", func() bool {
			local := l.db.Ctl("list-local-macs", "ls0")
			return strings.Contains(local, here) && !strings.Contains(local, there)
		})
	}
	reach(here, there, "10.0.0.1", "10.0.0.2")

	far.IP("addr", "flush", "dev", "eth0")
	far.IP("link", "set", "eth0", "address", here)
	far.Addr("eth0", "10.0.0.1/24")
	l.guest.IP("addr", "flush", "dev", "p1")
	l.guest.IP("link", "set", "p1", "address", there)
	l.guest.Addr("p1", "10.0.0.2/24")
	ovn.NB("lsp-set-addresses", "far", here+" 10.0.0.1")
	reach(there, here, "10.0.0.2", "10.0.0.1")

	ovn.NB("lsp-del", "ours")
	l.until("OVN's rows gone", func() bool { return l.rows() == "" })
}
