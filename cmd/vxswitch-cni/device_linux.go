package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/vishvananda/netlink"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// A device is the interface of a container, which outlives the node. Who finds it again knows it by the name of its port:
//
//	veth   container: IFNAME --- host: the name of the port, taken by the node as a port of type interface
//	tap    container: IFNAME, a persistent TAP with the name of the port as its alternative name, opened by the node
type device struct {
	tap    bool
	port   string // name of the port
	netns  string // path of the container's network namespace
	ifname string
	mtu    int
	mac    net.HardwareAddr // nil: any
	alias  string           // of the host's end, for people and for GC
	host   netlink.Link     // the host's end, nil for a TAP
	made   netlink.Link     // in the container
}

// inside runs f in the network namespace of the container.
func inside(netns string, f func() error) error {
	entered := false
	err := sys.InNamespace(netns, func() error { entered = true; return f() })
	if err != nil && !entered {
		return types.NewError(types.ErrInvalidNetNS, fmt.Sprintf("CNI_NETNS: %q: must be a network namespace: %v", netns, err), "")
	}
	return err
}

// make makes the interface, down and without addresses. An error leaves nothing behind.
func (d *device) make() error {
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer home.Close()
	if err := inside(d.netns, func() error { return d.makeIn(home) }); err != nil {
		return err
	}
	if d.tap {
		return nil
	}
	if err := d.prepareHost(); err != nil {
		return errors.Join(err, d.delete())
	}
	return nil
}

// absent returns an error if the container has an interface with the name already.
func (d *device) absent() error {
	if _, err := netlink.LinkByName(d.ifname); err == nil {
		return types.NewError(types.ErrInvalidEnvironmentVariables, fmt.Sprintf("CNI_IFNAME: %q: the container has an interface with this name", d.ifname), "")
	}
	return nil
}

func (d *device) makeIn(home *os.File) error {
	if err := d.absent(); err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = d.ifname, d.mtu, d.mac
	v := netlink.NewVeth(attrs)
	v.PeerName, v.PeerMTU, v.PeerNamespace = d.port, uint32(d.mtu), netlink.NsFd(home.Fd())
	l, what := netlink.Link(v), fmt.Sprintf("the veth pair %s, %s", d.ifname, d.port)
	if d.tap {
		l, what = &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: d.ifname}, Mode: netlink.TUNTAP_MODE_TAP}, "the TAP "+d.ifname
	}
	if err := netlink.LinkAdd(l); err != nil {
		return fmt.Errorf("making %s: %w", what, err)
	}
	err := d.findMade()
	if err == nil && d.tap {
		err = d.nameTAP()
	}
	if err != nil {
		err = errors.Join(err, deleteLink(d.ifname))
	}
	return err
}

func (d *device) findMade() (err error) {
	if d.made, err = netlink.LinkByName(d.ifname); err != nil {
		return fmt.Errorf("%s: %w", d.ifname, err)
	}
	return nil
}

// nameTAP gives a TAP its other name, its MTU and its MAC.
func (d *device) nameTAP() error {
	if err := netlink.LinkAddAltName(d.made, d.port); err != nil {
		return fmt.Errorf("%s: alternative name %s: %w", d.ifname, d.port, err)
	}
	if err := netlink.LinkSetMTU(d.made, d.mtu); err != nil {
		return fmt.Errorf("%s: MTU %d: %w", d.ifname, d.mtu, err)
	}
	if d.mac == nil {
		return nil
	}
	if err := netlink.LinkSetHardwareAddr(d.made, d.mac); err != nil {
		return fmt.Errorf("%s: MAC %v: %w", d.ifname, d.mac, err)
	}
	return d.findMade()
}

const noAddress = 1 // IN6_ADDR_GEN_MODE_NONE of linux/if_link.h

// prepareHost keeps the host's own stack from sending to the container.
func (d *device) prepareHost() (err error) {
	if d.host, err = netlink.LinkByName(d.port); err != nil {
		return fmt.Errorf("%s: %w", d.port, err)
	}
	if err := netlink.LinkSetIP6AddrGenMode(d.host, noAddress); err != nil && !errors.Is(err, syscall.EAFNOSUPPORT) {
		return fmt.Errorf("%s: no IPv6 address: %w", d.port, err)
	}
	if err := netlink.LinkSetAlias(d.host, d.alias); err != nil {
		return fmt.Errorf("%s: alias %q: %w", d.port, d.alias, err)
	}
	return nil
}

// delete deletes the interface, if there is one, of either kind: the configuration may have had another when it was made. A container
// that has ended has none.
func (d *device) delete() error {
	err := deleteLink(d.port)
	if d.netns == "" {
		return err
	}
	err2 := sys.InNamespace(d.netns, func() error { return deleteLink(d.port) })
	if errors.Is(err2, fs.ErrNotExist) || errors.Is(err2, sys.ErrNamespace) { // /proc/PID/ns/net may be another's by now
		err2 = nil
	}
	return errors.Join(err, err2)
}

// deleteLink deletes a device by one of its names. A veth pair goes with either end.
func deleteLink(name string) error {
	l, err := netlink.LinkByName(name)
	if _, gone := errors.AsType[netlink.LinkNotFoundError](err); gone {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(l)
	}
	if err != nil && !errors.Is(err, syscall.ENODEV) {
		return fmt.Errorf("deleting %s: %w", name, err)
	}
	return nil
}
