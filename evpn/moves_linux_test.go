package evpn

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
)

// fromFRR is what FRR says of a MAC.
type fromFRR struct {
	Local     int  `json:"localSequence"`
	Remote    int  `json:"remoteSequence"`
	Duplicate bool `json:"isDuplicate"`
}

func (l *aLab) mac(mac frame.MAC) fromFRR {
	var all map[string]fromFRR
	json.Unmarshal([]byte(l.frr.Do("show evpn mac vni 100 mac "+mac.String()+" json")), &all)
	return all[mac.String()]
}

// at returns where our switch has a MAC.
func (s *site) at(mac frame.MAC) string {
	for _, v := range s.node.Segments() {
		if v.VNI() == 100 {
			if e, ok := v.FDB().Get(mac); ok {
				if e.Origin == fdb.OriginLearned {
					return "here"
				}
				return s.node.Switch().Name(e.Dest)
			}
		}
	}
	return ""
}

// A host moves from FRR to us and back, with sequence numbers 1 to 4. After the fifth it stays, until it is cleared.
func TestMoves(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	h := &host{mac: frame.MAC{2, 0, 0, 0, 9, 9}, ip: netip.MustParseAddr("172.16.0.50")}
	farHost := l.Host("far")
	dev, far := l.Link(farHost, "", l.leaf, "")
	l.leaf.Join(far, "br100")
	near := l.Host("near")
	tap := netns.Open(t, near, func() (*port.Device, error) { return port.OpenTAP("near0", nil) })
	check.OK(t, check.Must(l.us.node.Segment(100, nil))(t).Add(tap, nil))
	near.Up("near0")
	l.us.host.Until("flood lists", func() bool { return l.kernel("vx100", "00:00:00:00:00:00", oursAddr) && l.us.floods(100) == 1 })
	for move := range 6 {
		if move%2 == 0 {
			near.Inject("near0", fake.GratuitousARP(h.mac, h.ip))
			l.us.host.Until("the host here, for FRR", func() bool { return l.us.at(h.mac) == "here" && l.kernel("vx100", h.mac.String(), oursAddr) })
		} else {
			farHost.Inject(dev, fake.GratuitousARP(h.mac, h.ip))
			l.us.host.Until("the host at FRR, for us", func() bool { return l.us.at(h.mac) == theirsAddr+":4789" })
		}
		if x := l.mac(h.mac); max(x.Local, x.Remote) != move || x.Duplicate != (move == 5) {
			t.Errorf("move %d: FRR has %+v", move, x)
		}
	}
	if d := l.us.speaker.Status().Duplicates; len(d) != 1 || d[0] != (Duplicate{100, h.mac, netip.MustParseAddr(theirsAddr)}) {
		t.Fatalf("duplicates %+v", d)
	}
	near.Inject("near0", fake.GratuitousARP(h.mac, h.ip))
	time.Sleep(100 * time.Millisecond)
	if at := l.us.at(h.mac); at != theirsAddr+":4789" {
		t.Errorf("a MAC that moves too often moved to %q", at)
	}
	if !l.us.speaker.ClearDuplicate(100, h.mac) || l.us.speaker.ClearDuplicate(100, h.mac) {
		t.Error("ClearDuplicate")
	}
	l.us.host.Until("the host can move again", func() bool {
		near.Inject("near0", fake.GratuitousARP(h.mac, h.ip))
		return l.us.at(h.mac) == "here"
	})
}
