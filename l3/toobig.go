package l3

import (
	"sync"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/icmperr"
	"github.com/vxswitch/vxswitch/setting"
)

// Defaults of [TooBigConfig].
const (
	DefaultPerSender = icmperr.DefaultPerSender
	DefaultTotal     = icmperr.DefaultTotal
)

// TooBigConfig holds the settings of a [TooBig]. The zero value works. All can be changed
// under traffic.
type TooBigConfig struct {
	PerSender int `json:"perSender,omitzero"` // answers to one source address of one network in a second; 0 = 10
	Total     int `json:"total,omitzero"`     // answers in a second in all, half of them to one port or peer; 0 = 1000
}

// A TooBig is the stage for a switch's slot TooBig: it answers unicast frames that are
// longer than their egress takes. What it answers it turns, in place, into
//
//   - for IPv4 with DF, ICMP "fragmentation needed" (type 3, code 4) with the MTU of the
//     next hop (RFC 1191, section 4), 576 bytes at most (RFC 1812, section 4.3.2.3);
//   - for IPv6, ICMPv6 "packet too big" (RFC 4443, section 3.2), 1280 bytes at most,
//
// from the address, IP and MAC, that the frame was for, to the one it came from. VLAN
// tags inside the frame stay. A packet of an IP port is answered likewise. The MTU is that of IP: At.MTU less the Ethernet header
// and those tags. A superframe is judged by its segments; its own header is quoted, as
// Linux does: the sender's stack knows packets by addresses, ports and sequence number.
//
// It answers nothing else; [TooBigStats] names every cause. No host is told of errors
// about errors (RFC 1122, section 3.2.2; RFC 4443, section 2.4), nor that an IPv4 packet
// without DF is too long: a bridge does not fragment, and the frame is dropped.
type TooBig struct {
	stage icmperr.TooBig
	mu    sync.Mutex
	cfg   TooBigConfig // as it was set; under mu
}

// TooBigStats counts the frames a [TooBig] was asked about, each in one field.
type TooBigStats = frame.TooBigStats

// NewTooBig returns a stage. A nil cfg means defaults.
func NewTooBig(cfg *TooBigConfig) (*TooBig, error) {
	t := new(TooBig)
	t.stage.Init(0, 0)
	var c TooBigConfig
	if cfg != nil {
		c = *cfg
	}
	if err := t.Configure(c); err != nil {
		return nil, err
	}
	return t, nil
}

// Configure changes the settings of a stage under traffic.
func (t *TooBig) Configure(cfg TooBigConfig) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cfg = cfg
	t.stage.Set(cfg.PerSender, cfg.Total)
	return nil
}

// Config returns the settings that were last set.
func (t *TooBig) Config() TooBigConfig {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cfg
}

// Check returns what [NewTooBig] and [TooBig.Configure] refuse.
func (c *TooBigConfig) Check() error {
	w := setting.Of("l3: TooBigConfig")
	checkRates(w, c.PerSender, c.Total)
	return w.Err()
}

// checkRates notes what a limiter cannot be set to.
func checkRates(w *setting.Check, perSender, total int) {
	w.Number("PerSender", perSender, 1, icmperr.MaxRate, DefaultPerSender)
	w.Number("Total", total, 1, icmperr.MaxRate, DefaultTotal)
}

// Process answers f, which is longer than at.MTU, with frame.Reply; f is then the
// answer, and not longer than at.MTU. What gets none is frame.Drop(frame.TooBig), and f
// is unchanged. A frame that fits is none of its business: frame.Continue.
func (t *TooBig) Process(f *frame.Frame, at frame.At) frame.Verdict { return t.stage.Process(f, at) }

// Stats returns a snapshot.
func (t *TooBig) Stats() TooBigStats { return t.stage.Stats() }
