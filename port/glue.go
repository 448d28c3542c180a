package port

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// A glue joins an interface to the TAP of a Device: what one receives, the other sends.
//
// To an interface the TAP's frames are sent, and a veth makes of that that its other end receives them: it looks
// then whether they are to its own MAC, as the host behind expects. bpf_redirect_peer does not: it says that all
// frames are (Linux 6.18), so that a host would also take those that a switch floods. It serves on the way through
// the hidden namespace, where nobody asks, and for frames to the MAC that the guest's end was made with.
type glue struct {
	veth      bool // of OpenVeth
	namespace string

	home   *sys.Links   // of the namespace that the interface and the TAP are in
	host   sys.LinkInfo // the interface
	tap    sys.LinkInfo
	hidden *sys.Links   // nil unless a pair was made
	near   sys.LinkInfo // in hidden: the other end of guest
	far    sys.LinkInfo // in hidden: the other end of host
	guest  sys.LinkInfo // the guest's end

	links   []*sys.BPFLink
	watches []*sys.LinkWatch
	all     *sys.PacketSocket // keeps a network card promiscuous
	running sync.WaitGroup
	lost    atomic.Pointer[error] // why the port has failed
	carrier atomic.Bool           // of the interface

	mu       sync.Mutex
	hostMTU  int // as last seen
	guestMTU int // likewise
}

// toTAP opens the TAP, joins it to the interface and brings all up. It runs in the namespace of the interface.
func (d *Device) toTAP(c DeviceConfig) (err error) {
	g := d.glue
	name := d.name
	tap := fmt.Sprintf("vxt%d", g.host.Index) // one TAP of that name, so one port on the interface
	if err := d.attach(tap, DeviceConfig{Queues: c.Queues, NoOffload: c.NoOffload}); err != nil {
		if errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("another port has the interface: there is the TAP %s: %w", tap, syscall.EBUSY)
		}
		return fmt.Errorf("TAP %s: %w", tap, err)
	}
	d.name = name
	if d.found {
		return fmt.Errorf("there is a persistent TAP %s: %w", tap, syscall.EBUSY)
	}
	d.found = g.hidden == nil
	if g.tap, err = g.home.ByName(tap); err != nil {
		return fmt.Errorf("TAP %s: %w", tap, err)
	}
	if c.MTU != 0 && g.hidden == nil && c.MTU != g.host.MTU {
		if err := g.home.Change(g.host.Index, sys.LinkChange{MTU: c.MTU}); err != nil {
			return fmt.Errorf("DeviceConfig.MTU %d: %w", c.MTU, privilege(err))
		}
		g.host.MTU = c.MTU
	}
	if !c.MAC.IsZero() && g.hidden == nil {
		if err := g.home.Change(g.host.Index, sys.LinkChange{MAC: c.MAC}); err != nil {
			return fmt.Errorf("DeviceConfig.MAC %v: %w", c.MAC, privilege(err))
		}
	}
	g.hostMTU, g.guestMTU = g.host.MTU, g.guest.MTU
	// Nothing is up that is ours: no frame gets past the programs.
	if err := g.quiet(); err != nil {
		return err
	}
	if err := g.redirect(); err != nil {
		return err
	}
	if err := g.joining(); err != nil {
		return err
	}
	if err := g.watch(d); err != nil {
		return err
	}
	// The TAP takes frames of any length, whatever its MTU is.
	if err := d.setup(DeviceConfig{MTU: min(g.host.MTU, maxMTU-ethLen), BusyPoll: c.BusyPoll}, false); err != nil {
		return err
	}
	d.fixed.Store(c.MTU != 0)
	d.mtu.Store(int64(g.host.MTU))
	return g.up(!c.Down)
}

// quiet keeps the host from sending on devices that are not its own.
func (g *glue) quiet() error {
	ours := []place{{g.home, g.tap.Index}}
	if g.hidden != nil {
		ours = append(ours, place{g.home, g.host.Index}, place{g.hidden, g.near.Index}, place{g.hidden, g.far.Index})
	}
	for _, p := range ours {
		if err := p.in.Change(p.index, sys.LinkChange{NoIPv6: true}); err != nil {
			return fmt.Errorf("IPv6 of a hidden device: %w", privilege(err))
		}
	}
	return nil
}

// A place is where a device is.
type place struct {
	in    *sys.Links
	index int
}

// redirect attaches the programs.
func (g *glue) redirect() error {
	back := sys.Redirect{Index: g.host.Index, Peer: g.hidden != nil}
	if err := g.attach(g.host.Index, sys.Redirect{Index: g.tap.Index}); err != nil {
		return err
	}
	if err := g.attach(g.tap.Index, back); err != nil || g.hidden == nil {
		return err
	}
	return g.hidden.Do(func() error {
		if err := g.attach(g.near.Index, sys.Redirect{Index: g.far.Index, Peer: true}); err != nil {
			return err
		}
		return g.attach(g.far.Index, sys.Redirect{Index: g.near.Index, Own: g.guest.MAC})
	})
}

// joining has the far end join the segments that vxh sends, as whoever carries frames past the port may want
// ([HookPair]). A veth does so only for the other end without TSO. What comes by the programs is not sent, nor joined.
func (g *glue) joining() error {
	if g.hidden == nil {
		return nil
	}
	err := g.home.Feature(g.host.Index, sys.FeatureTSO, false)
	if err == nil {
		err = g.hidden.Feature(g.far.Index, sys.FeatureGRO, true)
	}
	if err != nil {
		return fmt.Errorf("features of the hidden devices: %w", privilege(err))
	}
	return nil
}

func (g *glue) attach(index int, to sys.Redirect) error {
	l, err := sys.AttachRedirect(index, to)
	if err != nil {
		return fmt.Errorf("redirecting frames: %w", needs("CAP_BPF and CAP_NET_ADMIN", err))
	}
	g.links = append(g.links, l)
	return nil
}

// up brings the devices up. The near end comes last: the queue of an end that is up before there is a carrier
// drops packets until the kernel's worker has found that there is one, so it is better that of the guest, which
// can see it (Linux 6.18).
func (g *glue) up(guest bool) error {
	set := func(p place) error { return p.in.Change(p.index, sys.LinkChange{Up: true}) }
	var steps []func() error
	if g.hidden != nil && guest {
		steps = append(steps, func() error { return g.atGuest(sys.LinkChange{Up: true}) })
	}
	if g.hidden != nil || guest {
		steps = append(steps, func() error { return set(place{g.home, g.host.Index}) })
	}
	if g.hidden != nil {
		for _, index := range []int{g.far.Index, g.near.Index} {
			steps = append(steps, func() error { return set(place{g.hidden, index}) })
		}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("bringing the device up: %w", privilege(err))
		}
	}
	return nil
}

// errElsewhere is for a guest's end that cannot be reached.
var errElsewhere = errors.New("the guest's end was moved to another network namespace")

// atGuest changes the guest's end, if it is where it was made.
func (g *glue) atGuest(c sys.LinkChange) error {
	near, err := g.hidden.ByIndex(g.near.Index, sys.Here)
	if err != nil {
		return err
	}
	change := func(in *sys.Links) error {
		switch id, err := g.hidden.ID(in); {
		case err != nil:
			return err
		case id == sys.NoNumber || id != near.PeerNS:
			return errElsewhere
		}
		return in.Change(near.Peer, c)
	}
	if err := change(g.home); !errors.Is(err, errElsewhere) || g.namespace == "" {
		return err
	}
	return inNamespace("DeviceConfig", g.namespace, func() error {
		l, err := sys.OpenLinks()
		if err != nil {
			return fmt.Errorf("rtnetlink socket: %w", err)
		}
		defer l.Close()
		return change(l)
	})
}

// close undoes everything. What is gone already is no error.
func (g *glue) close() {
	for _, w := range g.watches {
		w.Close()
	}
	g.running.Wait()
	for _, l := range g.links {
		l.Close()
	}
	if g.all != nil {
		g.all.File.Close()
	}
	if g.hidden != nil {
		for _, name := range []string{nearName, farName} {
			if i, err := g.hidden.ByName(name); err == nil {
				_ = g.hidden.Delete(i.Index)
			}
		}
		g.hidden.Close()
	}
	if g.home != nil {
		g.home.Close()
	}
}

// over returns the error with which the interface was lost, or nil.
func (g *glue) over() error {
	if err := g.lost.Load(); err != nil {
		return *err
	}
	return nil
}
