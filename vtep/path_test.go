package vtep

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// TestPath keeps Paths until Watch says that they have changed, while everything changes that may: they are always right, and
// they are what the VTEP does with frames.
func TestPath(t *testing.T) {
	for i, policy := range []PeerPolicy{AnyPeer, ListedOnly, ListedPerVNI, AnyPeer} {
		kind := [...]encap.Type{3: encap.TypeGPE}[i]
		t.Run(fmt.Sprint(kind, policy), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(policy), 7))
			u4, u6 := fake4(), fake6()
			v := newVTEP(t, &Config{Type: kind, Peers: policy, Header: Header{TTL: Inherit, TOS: 8, DF: DFInherit}}, u4, u6)
			type key struct{ peer, tag int }
			kept := map[key]string{}
			v.Watch(func() { clear(kept) })
			ask := func(peer, tag int) string {
				p, err := v.Path(uint16(peer), uint32(tag))
				return fmt.Sprintf("%v %p %v %v %v %+v %d %v %v", p.Type, p.Underlay, p.Local, p.Peer, p.VNI, p.Header, p.MTU, p.Heard, err)
			}
			peers := func() []netip.AddrPort { return []netip.AddrPort{at(r.IntN(6) + 1), at6(r.IntN(4) + 1)} }
			nums := map[uint16]bool{}
			for range 2000 {
				vni := frame.VNI(100 + r.IntN(2))
				switch ps := peers(); r.IntN(14) {
				case 0:
					if n, err := v.AddPeer(ps[r.IntN(2)]); err == nil {
						nums[n] = true
					}
				case 1:
					if n, err := v.NextHop(ps[0], 777); err == nil {
						nums[n] = true
					}
				case 2:
					for n := range nums {
						v.DeletePeer(n)
						break
					}
				case 3:
					check.OK(t, v.Control().Open(uint32(vni)))
				case 4:
					v.Control().Shut(uint32(vni))
				case 5:
					_ = v.SetFlood(vni, ps...)
				case 6:
					_ = v.Allow(vni, ps...)
				case 7:
					v.Disallow(vni, ps...)
				case 8:
					check.OK(t, v.SetPeers([]PeerConfig{{Address: ps[0].Addr(), Port: uint16(r.IntN(2) * 5000), Header: Header{TTL: Value(r.IntN(3)), TOS: TOSZero, ECN: ECN(r.IntN(4)), DF: DF(r.IntN(4))}}}))
				case 9:
					if u4.path != nil {
						u4.path(endpoint(t, ps[0]), 600+r.IntN(900), nil)
					}
				case 10:
					gone := v.Control().Retire(func(uint16) bool { return false })
					if len(gone) > 0 {
						clear(kept) // the switch kills them
						v.Control().Free(gone)
						clear(kept)
						for _, n := range gone {
							delete(nums, n)
						}
					}
				case 11:
					old := u4
					u4 = fakeAt(netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(20 + r.IntN(9))}), 4789))
					if v.SetUnderlay(u4) != nil {
						u4 = old
					}
				case 12:
					u4.hear(t, v.Readers()[0], ps[0], vx(vni, inner(1))) // perhaps a new peer: no change of any other
				}
				for peer := range 14 {
					for tag := 100; tag < 102; tag++ {
						now, k := ask(peer, tag), key{peer, tag}
						if was, there := kept[k]; there && was != now && peer != 0 {
							if was[len(was)-7:] != ErrNoPeer.Error() && strings.Replace(was, "false <nil>", "true <nil>", 1) != now { // a new peer is no change, nor one that is heard from now on
								t.Fatalf("peer %d, tag %d: was %s and is %s", peer, tag, was, now)
							}
						}
						kept[k] = now
					}
				}
				checkSent(t, v, u4, u6, uint16(1+r.IntN(12)))
			}
		})
	}
}

// checkSent sends one frame, and compares what leaves with the Path.
func checkSent(t *testing.T, v *VTEP, u4, u6 *fake, peer uint16) {
	t.Helper()
	u4.sent, u6.sent = nil, nil
	o := out(peer, 1)
	check.OK(t, v.Writer(0).Write(o))
	p, err := v.Path(peer, vni)
	all := append(u4.sent, u6.sent...)
	if (err == nil) != (len(all) == 1) {
		t.Fatalf("peer %d: %v, sent %d datagrams, drop %v", peer, err, len(all), o[0].Drop)
	}
	if err != nil {
		return
	}
	x := all[0]
	head := make([]byte, encap.VXLANLen)
	if p.Type == encap.TypeGPE {
		encap.PutGPE(head, p.VNI, frame.Ethernet, false)
	} else {
		encap.PutVXLAN(head, p.VNI)
	}
	ttl := p.Header.TTL
	if ttl == Inherit {
		ttl = 64 // not IP
	}
	tos := max(p.Header.TOS, 0)
	if x.to[0] != p.Peer || !bytes.HasPrefix(x.payload, head) || Value(x.ttl) != ttl || Value(x.tos) != tos || x.df != (p.Header.DF != DFUnset) || x.set != p.Header.Sockets {
		t.Fatalf("sent %+v by the path %+v", x, p)
	}
}

// TestNoPath: other headers, and numbers that are no peers, have none.
func TestNoPath(t *testing.T) {
	v := newVTEP(t, &Config{GBP: true}, fake4())
	one := addPeer(t, v, at(1))
	if _, err := v.Path(one, vni); err != ErrEncapsulation {
		t.Errorf("GBP: %v", err)
	}
	v = newVTEP(t, nil, fake4())
	one = addPeer(t, v, at(1))
	group := check.Must(v.Group(one, addPeer(t, v, at(2))))(t)
	for _, n := range []uint16{0, group, 99} {
		if _, err := v.Path(n, vni); err != ErrNoPeer {
			t.Errorf("peer %d: %v", n, err)
		}
	}
}

// TestCarried: what an offload carried counts as what the VTEP does.
func TestCarried(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	check.OK(t, v.Control().Open(vni))
	one := addPeer(t, v, at(1))
	check.OK(t, v.Writer(0).Write(out(one, 3)))
	u.hear(t, v.Readers()[0], at(1), vx(vni, inner(1)), vx(vni, inner(2)))
	was := v.Stats()
	v.Carried(one, frame.Count{Frames: 2, Bytes: 120}, frame.Count{Frames: 3, Bytes: 180})
	v.Carried(77, frame.Count{Frames: 1}, frame.Count{Frames: 1})
	st := v.Stats()
	p, q := was.Peers[0], st.Peers[0]
	if q.Rx.Frames != 2*p.Rx.Frames || q.Tx.Frames != 2*p.Tx.Frames || q.Rx.Bytes != 2*p.Rx.Bytes || q.Tx.Bytes != 2*p.Tx.Bytes || st.Tx.Frames != 2*was.Tx.Frames || q.LastHeard.IsZero() {
		t.Errorf("was %+v, is %+v", p, q)
	}
}
