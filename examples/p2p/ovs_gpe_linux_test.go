package main

import (
	"encoding/hex"
	"strings"
	"testing"
)

// Open vSwitch takes Ethernet in VXLAN-GPE, as the kernel's device does not: both ways, with p2p and with the kernel that carries its
// flows. It refuses copies of flooded frames, which have the B bit (Open vSwitch 3.1), so the guests know each other's MAC.
func TestOpenVSwitchGPE(t *testing.T) {
	l := newOVSLab(t)
	l.gb.TxOff("eth0") // see newOVSLab
	l.ga.Neighbour("eth0", "192.168.7.2", l.gb.MAC("eth0"))
	l.gb.Neighbour("eth0", "192.168.7.1", l.ga.MAC("eth0"))
	for _, kind := range []string{"user", "kernel"} {
		t.Run(kind, func(t *testing.T) {
			l.ovs.VXLAN("vx0", "10.0.0.1", 9, "exts=gpe")
			p := start(t, l.a, "ready dev=vxs0 type=gpe id=9 local=10.0.0.1:4789 mtu=1450",
				strings.Fields("-type gpe -dstport 4789 -id 9 -local 10.0.0.1 -remote 10.0.0.2 -udpcsum off -datapath "+kind)...)
			l.forget()
			l.a.Until("the tunnel works", func() bool {
				_, err := l.gb.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "0.3", "192.168.7.1")
				return err == nil
			})
			l.ga.Ping("192.168.7.2", 20)
			seen := l.a.Capture(l.near, "udp port 4789")
			l.ga.Ping("192.168.7.2", 5)
			heads := map[byte]string{}
			for _, c := range seen.Stop() {
				if c.Data[62] == 8 && c.Data[63] == 0 {
					heads[c.Data[29]] = hex.EncodeToString(c.Data[42:50])
				}
			}
			if want := "0c00000300000900"; heads[1] != want || heads[2] != want {
				t.Errorf("headers %v, want %s", heads, want)
			}
			for _, way := range []string{"", "-R"} {
				t.Log(way, l.ga.IPerf(l.gb, "192.168.7.2", strings.Fields("-n 20M "+way)...))
			}
			s := stop(t, p)
			if all := s.Rx.Bytes + s.Tx.Bytes; kind == "kernel" && float64(s.Offload.Carried.Bytes) < 0.9*float64(all) {
				t.Errorf("%+v carried of rx %+v, tx %+v", s.Offload, s.Rx, s.Tx)
			}
		})
	}
}
