package bench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
)

// program is the variable of the environment that makes this program a node, or gobgp alone.
const program = "VXSWITCH_BGP_BENCH"

func startOurs(t *testing.T, h *netns.Host) contender  { return startProgram(t, h, "node") }
func startGoBGP(t *testing.T, h *netns.Host) contender { return startProgram(t, h, "gobgp") }

// programs say whether block i is there.
var programs = map[string]func() (there func(i int) bool, stop func(), err error){"node": runNode, "gobgp": runGoBGP}

// ours is a program of its own that answers questions.
type ours struct {
	t       *testing.T
	process int
	in      *json.Encoder
	out     *json.Decoder
}

// A question is when Count blocks from First on are there, or are not.
type question struct {
	First, Count int
	There        bool
}

func startProgram(t *testing.T, h *netns.Host, name string) contender {
	cmd := netns.Command(context.Background(), h.NS, "env", program+"="+name, check.Must(os.Executable())(t))
	o := &ours{t: t, in: json.NewEncoder(check.Must(cmd.StdinPipe())(t)), out: json.NewDecoder(check.Must(cmd.StdoutPipe())(t))}
	cmd.Stderr = os.Stderr
	check.OK(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	check.OK(t, o.out.Decode(&o.process))
	return o
}

func (o *ours) pid() int { return o.process }

func (o *ours) wait(first, n int, there bool) time.Time {
	o.t.Helper()
	check.OK(o.t, o.in.Encode(question{first, n, there}))
	var at time.Time
	check.OK(o.t, o.out.Decode(&at))
	return at
}

// serve is a program. It tells its process, and then answers questions until there are no more.
func serve(name string, in io.Reader, out io.Writer) error {
	there, stop, err := programs[name]()
	if err != nil {
		return err
	}
	defer stop()
	answers := json.NewEncoder(out)
	if err := answers.Encode(os.Getpid()); err != nil {
		return err
	}
	for questions := json.NewDecoder(in); ; {
		var q question
		if err := questions.Decode(&q); err != nil {
			return nil
		}
		end := time.Now().Add(soon)
		for i := q.First; i < q.First+q.Count; i++ {
			for there(i) != q.There {
				if time.Now().After(end) {
					return errors.New("too late: " + block(i).String())
				}
				time.Sleep(time.Millisecond)
			}
		}
		if err := answers.Encode(time.Now()); err != nil {
			return err
		}
	}
}

func runNode() (there func(int) bool, stop func(), err error) {
	n, err := node.New(&node.Options{Owners: []string{bgp.DefaultOwner}})
	if err != nil {
		return nil, nil, err
	}
	err = n.Apply(&node.Config{
		Ports: []node.Port{{Name: "eth0", Type: node.PortPacket}},
		Segments: []node.Segment{{VNI: 200, Members: []node.Member{{Port: "eth0"}}, Gateway: &node.SegmentGateway{
			VRF: "v", Gateway: node.Gateway{MAC: frame.MAC{2, 0, 0, 0, 0xca, 1}, Addresses: []netip.Prefix{netip.PrefixFrom(ourAddr, 24)}},
		}}},
		VRFs: []node.VRF{{Name: "v"}},
	})
	if err != nil {
		return nil, nil, err
	}
	s, err := bgp.New(n, &bgp.Config{
		AS: as, RouterID: leafAddr, VRF: "v", Segment: 200, Addresses: []netip.Addr{ourAddr},
		Pools: []bgp.Pool{{Prefix: netip.MustParsePrefix("10.0.0.0/8")}}, Peers: []bgp.Peer{{Addr: feederAddr, AS: as, Local: leafAddr}},
	})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go n.Run(ctx)
	go s.Run(ctx)
	vrf := n.Gateway().VRF("v")
	return func(i int) bool { _, ok := vrf.Route(block(i)); return ok }, func() { cancel(); n.Close() }, nil
}
