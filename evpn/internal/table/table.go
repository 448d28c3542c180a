package table

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/evpn/internal/mobility"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/batch"
)

// Defaults of a Config.
const (
	DefaultMaxHosts  = 1 << 17
	DefaultMaxRoutes = 1 << 17
	DefaultMaxVTEPs  = 1 << 12

	DefaultMaxEthernets = 1 << 12
)

// Config says how a Table works.
type Config struct {
	AS        uint32 // of derived route targets
	RFC8365   bool   // derives them with the mark of RFC 8365, section 5.1.2.1
	RouterID  netip.Addr
	Mobility  mobility.Config
	MaxHosts  int   // MACs of peers in a segment; 0 = DefaultMaxHosts
	MaxAddrs  int   // addresses of a MAC here, and a quarter of the routes of peers to one; 0 = 64
	MaxRoutes int   // prefixes of peers in a VRF; 0 = DefaultMaxRoutes
	MaxVTEPs  int   // VTEPs in the flood list of a segment; 0 = DefaultMaxVTEPs
	Distance  uint8 // of routes

	MaxEthernets int // Ethernet segments of peers; 0 = DefaultMaxEthernets

	Release    time.Duration                      // a MAC that has moved too often may move again after this time; 0 = not until Clear
	Duplicated func(vni frame.VNI, mac frame.MAC) // a MAC has moved too often; may be nil

	// Role says what a port of ours on an Ethernet segment does in a segment; before it is called the port does nothing in particular. May
	// be nil.
	Role func(vni frame.VNI, port string, r Role)

	// Forget has the switch forget where it has learned a MAC and its addresses: a peer had it since, and has it no more. If
	// the host is here, it is learned again. May be nil.
	Forget func(vni frame.VNI, mac frame.MAC, addrs []netip.Addr)
}

// A Table is not safe for concurrent use.
type Table struct {
	cfg      Config
	segments map[frame.VNI]*segment
	vrfs     map[string]*vrf
	byL3VNI  map[frame.VNI]*vrf                 // with derived targets
	imports  map[route.Target][]*segment        // explicit ones
	vrfsOf   map[route.Target][]*vrf            // likewise
	tunnels  []route.Addr                       // of tunnels: see SetLocals
	own      map[route.Addr]bool                // our VTEPs: what leads to one is left out
	numbers  map[any]uint16                     // of a VNI, the name of a VRF or an Ethernet segment, in its RD
	number   uint16                             // the last one
	given    map[route.RD]bool                  // configured ones
	peers    map[netip.Addr]map[route.Key]*path // what each peer has said
	left     map[string]int                     // paths of peers that are used nowhere, by reason

	ethernets map[route.ESI]*ethernet
	far       shared[*ethernet]     // those of peers
	homed     map[*homed]bool       // ours
	ports     map[frame.Dest]*homed // by port
	stirred   map[*ethernet]struct{}

	configured map[frame.VNI]map[frame.MAC]configured // how often
	locals     map[string]map[netip.Prefix]local      // routes of a VRF

	dirty   batch.Queue[place]
	more    bool // the last Flush did not pass all
	said    map[route.Key]saying
	resting map[*host]struct{}      // nobody claims them, but their sequence is remembered
	frozen  map[*host]time.Duration // have moved too often, and since when
	absent  map[*host]time.Duration // their links have failed, and since when
	anew    bool                    // what is imported has changed
	roomy   bool                    // there is room for some that were left out
	relief  time.Duration           // when they may come in
	swept   time.Duration           // when sweep last looked
	ledger  control.Ledger[place]
}

// A place is where routes of peers are used, or ours are from: a host, an entry of a flood list, a prefix, a group of hosts; and the floods,
// gateways and Ethernet segments that are ours.
type place interface {
	rows() []control.Row                 // for the switch
	routes(t *Table) []route.Route       // for peers
	was() *[]route.Key                   // of the routes that peers were told last
	settled(t *Table, now time.Duration) // after a Flush
}

func (c Config) withDefaults() Config {
	c.MaxHosts = cmp.Or(c.MaxHosts, DefaultMaxHosts)
	c.MaxAddrs = cmp.Or(c.MaxAddrs, 64)
	c.MaxRoutes = cmp.Or(c.MaxRoutes, DefaultMaxRoutes)
	c.MaxVTEPs = cmp.Or(c.MaxVTEPs, DefaultMaxVTEPs)
	c.MaxEthernets = cmp.Or(c.MaxEthernets, DefaultMaxEthernets)
	return c
}

// Configure changes the limits, the mobility of hosts, the distance of routes, and how long a duplicate stays one.
func (t *Table) Configure(c Config) {
	c = c.withDefaults()
	was := t.cfg
	t.cfg.MaxHosts, t.cfg.MaxAddrs, t.cfg.MaxRoutes, t.cfg.MaxVTEPs = c.MaxHosts, c.MaxAddrs, c.MaxRoutes, c.MaxVTEPs
	t.cfg.MaxEthernets = c.MaxEthernets
	t.cfg.Mobility, t.cfg.Release, t.cfg.RFC8365 = c.Mobility, c.Release, c.RFC8365
	if was.RFC8365 != c.RFC8365 {
		for _, s := range t.segments {
			t.touchSegment(s)
		}
		for _, v := range t.vrfs {
			t.touchVRF(v)
		}
	}
	if t.cfg.Distance = c.Distance; was.Distance != c.Distance {
		for _, v := range t.vrfs {
			t.touchVRF(v)
		}
	}
	if was.MaxHosts != c.MaxHosts || was.MaxRoutes != c.MaxRoutes || was.MaxVTEPs != c.MaxVTEPs || was.MaxEthernets != c.MaxEthernets {
		t.anew = true
	}
}

// New returns a Table that knows nothing.
func New(c Config) *Table {
	return &Table{
		cfg:        c.withDefaults(),
		segments:   map[frame.VNI]*segment{},
		vrfs:       map[string]*vrf{},
		byL3VNI:    map[frame.VNI]*vrf{},
		imports:    map[route.Target][]*segment{},
		vrfsOf:     map[route.Target][]*vrf{},
		own:        map[route.Addr]bool{},
		numbers:    map[any]uint16{},
		given:      map[route.RD]bool{},
		peers:      map[netip.Addr]map[route.Key]*path{},
		left:       map[string]int{},
		ethernets:  map[route.ESI]*ethernet{},
		homed:      map[*homed]bool{},
		ports:      map[frame.Dest]*homed{},
		stirred:    map[*ethernet]struct{}{},
		configured: map[frame.VNI]map[frame.MAC]configured{},
		locals:     map[string]map[netip.Prefix]local{},
		frozen:     map[*host]time.Duration{},
		absent:     map[*host]time.Duration{},
		said:       map[route.Key]saying{},
		resting:    map[*host]struct{}{},
		ledger:     control.Ledger[place]{Loose: true},
	}
}

func (t *Table) touch(p place) { t.dirty.Add(p) }

// A Teller is told our routes.
type Teller interface {
	Advertise(route.Route)
	Withdraw(route.Key)
}

// Flush passes what has changed: first to the switch, then to the peers, so that a host that has come is here before the others send
// to it. It passes what has changed first, and not much at a time: while there is more, More returns true.
func (t *Table) Flush(now time.Duration, owner string, p control.Programmer, peers Teller) error {
	t.sweep(now)
	if t.roomy && now >= t.relief {
		t.anew, t.relief = true, now+reliefPause
	}
	if t.anew {
		t.again(now)
	}
	t.awaited(now)
	for e := range t.stirred {
		delete(t.stirred, e)
		if e.homed != nil {
			e.homed.elect()
		}
		e.reach(t)
		e.refresh(t)
	}
	dirty := t.batch(now)
	for _, x := range dirty {
		rows := x.rows()
		t.ledger.Set(x, rows...)
		if h, ok := x.(*host); ok && h.override {
			h.override = false
			if len(rows) > 0 {
				t.ledger.Again(x)
			} else if h.here && !h.claimed && t.cfg.Forget != nil {
				var ips []netip.Addr
				for _, a := range h.addrs {
					ips = append(ips, a.ip.Netip())
				}
				t.cfg.Forget(h.s.VNI, h.mac, ips)
			}
		}
	}
	err := t.ledger.Flush(owner, p)
	t.tell(dirty, peers)
	for _, x := range dirty {
		x.settled(t, now)
	}
	return err
}

// reliefPause is the least time between two imports of all routes because there is room: who says and withdraws a few routes, where there are
// as many as may be, cannot have all imported time and again.
const reliefPause = 5 * time.Second

// More reports whether the last Flush has left some of what had changed before.
func (t *Table) More() bool { return t.more }

// Pending reports whether Flush has anything to do.
func (t *Table) Pending() bool { return t.anew || t.dirty.Len()+len(t.stirred) > 0 }

// A saying is a route that the peers were told, and whose it is.
type saying struct {
	route.Route
	by place
}

// tell tells the peers what has changed of the routes of places. One may have a route that another had.
func (t *Table) tell(places []place, peers Teller) {
	var say []saying
	for _, x := range places {
		list, was := x.routes(t), x.was()
		for _, k := range *was {
			if !has(list, k) && t.said[k].by == x {
				delete(t.said, k)
				peers.Withdraw(k)
			}
		}
		*was = nil
		for _, r := range list {
			*was = append(*was, r.Key)
			say = append(say, saying{r, x})
		}
	}
	for _, r := range say {
		if t.said[r.Key].Route != r.Route {
			peers.Advertise(r.Route)
		}
		t.said[r.Key] = r
	}
}

func has(list []route.Route, k route.Key) bool {
	for i := range list {
		if list[i].Key == k {
			return true
		}
	}
	return false
}

// sweep forgets hosts that nobody has claimed for a while, and lets those move again that have rested long enough. It looks at all of them,
// and Flush may be called hundreds of times in a second.
func (t *Table) sweep(now time.Duration) {
	if now-t.swept < time.Second {
		return
	}
	t.swept = now
	for h, since := range t.frozen {
		if t.cfg.Release > 0 && now-since >= t.cfg.Release {
			t.clear(now, h)
		}
	}
	for h, since := range t.absent {
		if now-since >= absence {
			h.addrs = nil
			t.gone(now, h)
		}
	}
	for h := range t.resting {
		if h.idle() && h.moves.Forgotten(now, t.cfg.Mobility) {
			h.drop(t)
		}
	}
}
