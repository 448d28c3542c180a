package port

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// OpenVeth makes a veth pair for a guest and returns a port on it. The guest's end has the name given, and may be
// moved to any network namespace, renamed, and get another MTU, as a TAP may. A nil cfg is the zero value. The
// caller closes the Device, or attaches it to a switch.
//
//	guest's namespace | of the process, hidden |         of the calling thread
//	                  |                        |
//	     name ---------- near --redirect-- far ------- vxh0 --redirect-- vxt7 <-- Device --> switch
//	                  |                        |                       a hidden TAP
//
// Programs of four instructions on the devices hand each frame on, superframes whole, before a network stack sees
// it. The devices vxh and vxt stand where the calling thread is, under free names. All of them go with the guest's
// end, with Close, and with the process, however it ends, since a namespace that only the process holds has a part
// of them. A packet capture on vxt sees the frames of both directions. When the guest's end is deleted, or its
// namespace, Read and Write of the port fail with what they say of a deleted TAP.
//
// DeviceConfig.Namespace is where the guest's end is made, MAC its address. If name is empty or contains "%d", the
// kernel picks a free name; see [Device.Name]. A veth of that name that exists is opened as by [OpenInterface].
//
// The error wraps
//   - [os.ErrPermission] without CAP_NET_ADMIN and CAP_SYS_ADMIN, which here stands for CAP_BPF too
//   - [syscall.EINVAL] if there is a device of another driver, or a veth that is in a bridge or a bond
//   - [syscall.EBUSY] if another port has the veth
//   - [errors.ErrUnsupported] before Linux 6.6 (tcx), and on other systems
func OpenVeth(name string, cfg *DeviceConfig) (*Device, error) { return openGlued(name, true, cfg) }

// OpenInterface returns a port that takes an existing Ethernet interface from the stack of its host: the end of a
// veth pair whose other end a guest has, or a network card. All that the interface receives comes to the port, and
// what the port writes, the interface sends. A nil cfg is the zero value.
//
//	guest -- veth -- name --redirect-- vxt7 <-- Device --> switch
//	                                 a hidden TAP
//
// It differs from [OpenPacket] in three ways. The host's stack does not receive the frames; what it sends on the
// interface still leaves there, past the port. Frames are those of a TAP: the offloads that a virtio header cannot
// describe are done by the kernel before, and there are several queues without a fan-out. And it needs more of the
// system. Packet sockets on the interface, such as those of tcpdump and underlay/afpacket, see what it receives,
// as before; UDP sockets do not, so the interface cannot be that of an underlay. Programs that are at its tcx hook
// already come first.
//
// The interface stays as it is at Close, but for the MTU and the MAC of cfg, which may be set. It may be renamed
// and get another MTU meanwhile. A network card receives frames to any address while the port is open. When the
// interface is deleted, or moved to another network namespace, Read and Write of the port fail.
//
// The error wraps
//   - [os.ErrPermission] without CAP_NET_ADMIN and CAP_BPF, for a network card CAP_NET_RAW too
//   - [syscall.ENODEV] if the interface does not exist
//   - [syscall.EINVAL] if it has no Ethernet frames, or is in a bridge or a bond
//   - [syscall.EBUSY] if another port has the interface
//   - [errors.ErrUnsupported] before Linux 6.6 (tcx), and on other systems
func OpenInterface(name string, cfg *DeviceConfig) (*Device, error) {
	return openGlued(name, false, cfg)
}

func openGlued(name string, veth bool, cfg *DeviceConfig) (*Device, error) {
	var c DeviceConfig
	if cfg != nil {
		c = *cfg
	}
	g := &glue{veth: veth, namespace: c.Namespace}
	d := &Device{start: time.Now(), glue: g}
	err := c.Check(false)
	switch {
	case !sys.TunSupported:
		err = errors.ErrUnsupported
	case len(name) > 15 || !veth && name == "": // IFNAMSIZ - 1
		return nil, fmt.Errorf("port: %s name %q: want 1 to 15 bytes", d.kind(), name)
	case err == nil:
		err = d.join(name, c)
	}
	if err != nil {
		d.closed.Store(true)
		d.release()
		return nil, fmt.Errorf("port: %s %q: %w", d.kind(), cmp.Or(d.name, name), err)
	}
	return d, nil
}

// join finds the interface or makes the pair, and joins it to a TAP.
func (d *Device) join(name string, c DeviceConfig) error {
	found := false
	err := inNamespace("DeviceConfig", cmp.Or(c.Namespace, c.Home), func() (err error) {
		if found, err = d.glue.find(name, c.Existing); err != nil || !found {
			return err
		}
		d.name, d.found = name, true
		return d.toTAP(c)
	})
	if err != nil || found {
		return err
	}
	return inNamespace("DeviceConfig", c.Home, func() error {
		if err := d.glue.makePair(name, c); err != nil {
			return err
		}
		d.name = d.glue.guest.Name
		return d.toTAP(c)
	})
}

// find looks for an interface that exists, in the namespace of the calling thread.
func (g *glue) find(name string, must bool) (found bool, err error) {
	if g.home, err = sys.OpenLinks(); err != nil {
		return false, fmt.Errorf("rtnetlink socket: %w", err)
	}
	taken := false
	for end := time.Now().Add(going); ; time.Sleep(going / 200) {
		if g.host, err = g.home.ByName(name); err == nil {
			taken, err = g.taken()
		}
		if !taken || err != nil || time.Now().After(end) {
			break
		}
	}
	switch none := name == "" || errors.Is(err, syscall.ENODEV); {
	case none && g.veth && !must:
		g.home.Close()
		g.home = nil
		return false, nil
	case none && g.veth:
		return false, fmt.Errorf("there is no veth with this name: %w", syscall.ENODEV)
	case err != nil:
		return false, fmt.Errorf("looking for it: %w", err)
	case g.veth && g.host.Kind != "veth":
		return false, fmt.Errorf("a device of another driver, %s, not a veth: %w", cmp.Or(g.host.Kind, "without a kind"), syscall.EINVAL)
	case !g.host.Ethernet:
		return false, fmt.Errorf("not an Ethernet interface: %w", syscall.EINVAL)
	case g.host.PortOf != "" && g.host.PortOf != "vrf":
		return false, fmt.Errorf("it is in a %s, which would go on sending there: take it out first: %w", g.host.PortOf, syscall.EINVAL)
	case taken:
		return false, fmt.Errorf("another port has made it: %w", syscall.EBUSY)
	}
	return true, nil
}

// going is how long the devices of a process that was killed may be there still: the kernel clears a namespace
// some time after it has lost its last user.
const going = time.Second

// taken reports whether the interface belongs to another port that made a pair, or is going.
func (g *glue) taken() (bool, error) {
	switch {
	case g.host.Kind != "veth":
		return false, nil
	case g.host.Peer == 0, g.host.PeerNS == sys.NoNumber: // the pair is going, or the namespace of the other end
		return true, nil
	case g.host.PeerNS == sys.Here:
		return false, nil
	}
	peer, err := g.home.ByIndex(g.host.Peer, g.host.PeerNS)
	switch {
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENODEV): // has gone just now
		return true, nil
	case errors.Is(err, os.ErrPermission): // nobody says
		return false, nil
	}
	return peer.Name == nearName || peer.Name == farName, err
}

// Names in the hidden namespace.
const (
	nearName = "vxs-near" // the other end of the guest's
	farName  = "vxs-far"  // the other end of vxh
)

// makePair makes the two veth pairs between the guest and us, in which the hidden namespace is.
func (g *glue) makePair(name string, c DeviceConfig) (err error) {
	if g.home, err = sys.OpenLinks(); err != nil {
		return fmt.Errorf("rtnetlink socket: %w", err)
	}
	if g.hidden, err = sys.NewNamespace(); err != nil {
		return fmt.Errorf("hidden network namespace: %w", needs("CAP_SYS_ADMIN and CAP_NET_ADMIN", err))
	}
	to := g.home
	if c.Namespace != "" {
		err := inNamespace("DeviceConfig", c.Namespace, func() (err error) { to, err = sys.OpenLinks(); return err })
		if err != nil {
			return err
		}
		defer to.Close() // it would keep the namespace
	}
	guest := sys.VethEnd{In: to, Name: cmp.Or(name, "veth%d"), MTU: c.MTU}
	if !c.MAC.IsZero() {
		guest.MAC = net.HardwareAddr(c.MAC[:])
	}
	for _, pair := range [][2]sys.VethEnd{
		{{In: g.hidden, Name: nearName, MTU: maxMTU}, guest},
		{{In: g.hidden, Name: farName, MTU: maxMTU}, {In: g.home, Name: "vxh%d", MTU: c.MTU}},
	} {
		if err := sys.AddVeth(pair[0], pair[1]); err != nil {
			return fmt.Errorf("making a veth pair: %w", needs("CAP_NET_ADMIN", err))
		}
	}
	if g.near, err = g.hidden.ByName(nearName); err == nil {
		g.guest, err = g.hidden.ByIndex(g.near.Peer, g.near.PeerNS)
	}
	if err == nil {
		g.far, err = g.hidden.ByName(farName)
	}
	if err == nil {
		g.host, err = g.home.ByIndex(g.far.Peer, sys.Here)
	}
	if err != nil {
		return fmt.Errorf("looking for the veth pair: %w", err)
	}
	return nil
}

// needs says what an EPERM is for.
func needs(what string, err error) error {
	if errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("needs %s: %w", what, err)
	}
	return err
}
