package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	sockets "github.com/vxswitch/vxswitch/underlay" // the name is that of a type here
	"github.com/vxswitch/vxswitch/vtep"
)

// packetAddr is an address that a host does not have: that of its underlay of packet sockets.
func packetAddr(i int) string { return "10.0.0." + strconv.Itoa(i+11) }

// over is an end that differs from another of its kind in the underlay only: udp, packet or portable.
func over(underlay string, addr func(i int) string) end {
	return func(ctx context.Context, l *lab, i int) error {
		if err := l.tunnel(ctx, "ready", l.hosts[i], l.self, "end", underlay, addr(i), addr(1-i)); err != nil {
			return err
		}
		return l.bridge(ctx, i, "vx0")
	}
}

// runEnd is the program of over, with p2p's defaults. It runs until it is killed.
func runEnd(underlay, local, remote string) error {
	queues, o := min(runtime.GOMAXPROCS(0), 4), new(node.Options)
	if underlay == "portable" {
		underlay = "udp"
		o.Listen = func(t *node.Tunnel) (vtep.Underlay, error) { return sockets.ListenPortable(t.AddrPort(), nil) }
	}
	cfg, err := node.Parse(fmt.Appendf(nil, `{
		"tunnels": [{"name": "vx", "local": %q, "underlay": %q, "bind": "under", "queues": %d}],
		"ports": [{"name": "vx0", "queues": %[3]d}],
		"segments": [{"vni": %s, "tunnel": "vx", "flood": [%q], "members": [{"port": "vx0"}]}]}`, local, underlay, queues, vni, remote))
	if err != nil {
		return err
	}
	n, err := node.New(o)
	if err == nil {
		err = n.Apply(cfg)
	}
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return n.Run(context.Background())
}

const (
	spreadFlows = 1024
	spreadPaths = 16
)

// A spread is how the flows of the guests are spread over outer source ports, and by those over the paths
// of a network that goes by them (ECMP), or the queues of a card.
type spread struct {
	Flows, Ports int
	Busiest      int // flows on the busiest of the paths
}

// ports sends packets of many flows, and looks at them on the underlay.
func ports(ctx context.Context, l *lab, _ int) ([]float64, error) {
	in, err := l.start(ctx, "ready", l.hosts[1], l.self, "ports", "under")
	if err != nil {
		return nil, err
	}
	defer in.Kill()
	if _, err := netns.Output(ctx, netns.Timeout, l.guests[0], l.self, "flows", l.guestAddr(1)+sinkPort); err != nil {
		return nil, err
	}
	if err := in.Ended(ctx); err != nil {
		return nil, fmt.Errorf("ports: %w: %s", err, netns.Tail([]byte(in.Output())))
	}
	var s spread
	_, text, _ := strings.Cut(in.Output(), "\n") // "ready"
	err = json.Unmarshal([]byte(text), &s)
	return []float64{float64(s.Ports), 100 * float64(s.Busiest) / float64(s.Flows)}, err
}

// sendFlows sends a packet of each flow.
func sendFlows(addr string) error {
	for range spreadFlows {
		c, err := net.Dial("udp", addr)
		if err != nil {
			return err
		}
		_, err = c.Write(make([]byte, 64))
		if c.Close(); err != nil {
			return err
		}
		time.Sleep(100 * time.Microsecond) // no queue is full
	}
	return nil
}

// countPorts counts the outer source ports of the flows that arrive at an interface, until there are all or
// two seconds have passed.
func countPorts(dev string) (s spread, err error) {
	p, err := port.OpenPacket(dev, nil)
	if err != nil {
		return s, err
	}
	defer p.Close()
	fmt.Println("ready")
	defer time.AfterFunc(2*time.Second, func() { p.Close() }).Stop()
	seen, paths, b := map[uint16]bool{}, [spreadPaths]int{}, frame.NewBatch(nil)
	for s.Flows < spreadFlows {
		if err := p.Readers()[0].Read(b); errors.Is(err, net.ErrClosed) {
			break
		} else if err != nil {
			return s, err
		}
		for i := range b.Frames {
			src, ok := outerPort(b.Frames[i].Bytes())
			if !ok {
				continue
			}
			path := &paths[crc32.ChecksumIEEE([]byte{byte(src >> 8), byte(src)})%spreadPaths]
			*path++
			seen[src] = true
			s.Flows, s.Busiest = s.Flows+1, max(s.Busiest, *path)
		}
	}
	s.Ports = len(seen)
	return s, nil
}

// outerPort returns the outer source port of a VXLAN packet over IPv4 with UDP over IPv4 inside.
func outerPort(b []byte) (uint16, bool) {
	const outer = 14 + 20 + 8 + encap.VXLANLen // Ethernet, IPv4, UDP
	if len(b) < outer+34 || b[23] != 17 || int(b[36])<<8|int(b[37]) != encap.VXLANPort || b[outer+12] != 8 || b[outer+23] != 17 {
		return 0, false
	}
	return uint16(b[34])<<8 | uint16(b[35]), true
}
