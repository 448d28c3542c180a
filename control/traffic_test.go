package control_test

import (
	"context"
	"encoding/binary"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

const segment frame.VNI = 100

// site is a switch with a host, a tunnel, and a Plane.
type site struct {
	addr  netip.AddrPort
	sw    *vswitch.Switch
	vsi   *vswitch.VSI
	host  *port.Pipe
	plane *control.Plane
}

func newSite(net *memory.Network, addr string) *site {
	s := &site{addr: netip.MustParseAddrPort(addr), host: port.NewPipe(&port.PipeConfig{Name: "host"})}
	u, err := net.Listen(s.addr, nil)
	check(err)
	v, err := vtep.New(nil, u)
	check(err)
	s.sw, err = vswitch.New(nil)
	check(err)
	s.vsi, err = s.sw.VSI(segment, nil)
	check(err)
	_, err = s.vsi.AttachWith(v, uint32(segment), &vswitch.AttachConfig{NoLearn: true}) // tunnels teach nothing: rows do
	check(err)
	_, err = s.vsi.Attach(s.host, 0)
	check(err)
	s.plane, err = control.New(&control.Config{Switch: s.sw})
	check(err)
	return s
}

// Frames of a host whose rows stay, or go from one owner to another, arrive all, whatever
// else is programmed meanwhile; and a row that does not change keeps its peer and its counters.
// There is no flood list: a frame that finds no entry is lost.
func TestTraffic(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	net := memory.NewNetwork(nil)
	defer net.Close()
	left, right := newSite(net, "10.0.0.1:4789"), newSite(net, "10.0.0.2:4789")
	for _, s := range []*site{left, right} {
		go s.sw.Run(ctx)
		defer s.sw.Close()
	}
	alice, bob := frame.MAC{2, 0, 0, 0, 0, 0xa}, frame.MAC{2, 0, 0, 0, 0, 0xb}
	must := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	row := control.MAC{VNI: segment, MAC: bob, VTEP: right.addr}
	must(left.plane.Program("b", control.Update{Add: rows(row)}))
	was, _ := left.vsi.FDB().Get(bob)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for _, owner := range []string{"a", "c"} {
		all.Go(func() {
			for i := byte(0); ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				u := control.Update{Snapshot: true, Add: rows(control.MAC{VNI: segment, MAC: mac(i), VTEP: at(3 + i%9)})}
				if i%2 == 0 {
					u.Add = append(u.Add, row)
				}
				must(left.plane.Program(owner, u))
				must(left.plane.Program("b", control.Update{Del: rows(row), Add: rows(row)}))
				left.plane.Reapply()
			}
		})
	}
	const frames = 5000
	b := append(append(append([]byte{}, bob[:]...), alice[:]...), 0x88, 0xb5, 0, 0, 0, 0)
	for i := range uint32(frames) {
		binary.BigEndian.PutUint32(b[14:], i)
		must(left.host.Send(b))
		got, err := right.host.Recv(ctx)
		if err != nil || binary.BigEndian.Uint32(got[14:]) != i {
			t.Errorf("frame %d: %x %v", i, got, err)
			break
		}
	}
	close(stop)
	all.Wait()
	if e, _ := left.vsi.FDB().Get(bob); e.Dest != was.Dest {
		t.Errorf("bob is at %v, was at %v", e.Dest, was.Dest)
	}
	if s := left.plane.Stats(); s.GivenWay != 0 || s.MACs < 100 {
		t.Errorf("too little happened meanwhile: %+v", s)
	}
}
